"""One training segment: rollout artifacts in, checkpoint and adapter out.

The model stays loaded between the segments of a run; a checkpoint decides what it holds, so the
same message gives the same result in any process. An error drops the loaded model: nothing
half-trained is ever built upon.
"""

import io
import json
import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from artifacts import ArtifactStore
from domain.contracts import RunTrainSegment, TrainSegmentResult
from domain.contracts.training import TrainConfig
from domain.curriculum import Curriculum
from workers.context import Context, UnitRefused, adapters_root
from workers.train.batch import RolloutsRefused, Row, read_rollouts
from workers.train.checkpoint import (
    CheckpointRefused,
    TrainState,
    load_checkpoint,
    save_adapter,
    save_checkpoint,
)
from workers.train.grpo import Diverged, Selection, select_rows, train_epochs
from workers.train.policy import Policy

log = logging.getLogger(__name__)


class SegmentFailed(UnitRefused):
    """Training went out of bounds; the message names the artifact that holds the batch."""


@dataclass
class _Session:
    """A run's model and optimizer in this process, and the checkpoint whose state they hold."""

    key: str
    policy: Policy
    optimizer: torch.optim.Optimizer
    checkpoint_digest: str
    state: TrainState


_session: _Session | None = None


def run_train_segment(message: RunTrainSegment, ctx: Context) -> TrainSegmentResult:
    """Train policy version ``policy_version`` into the next one.

    With nothing to train on the result says so in ``skipped``, keeps the version's number and
    its weights, and still counts the rollouts as consumed. Raises ``RolloutsRefused``,
    ``CheckpointRefused``, ``AdapterRefused``, ``SegmentFailed``: none is mended by a retry.
    """
    global _session
    torch.set_num_threads(int(os.environ.get("FLYWHEEL_TORCH_THREADS", "1")))
    started = time.monotonic()
    config = TrainConfig.model_validate(message.config)
    session, _session = _open(message, config, ctx.store), None
    _check_follows(message, session.state)
    rows = read_rollouts(ctx.store, message.rollout_digests, temperature=config.temperature)
    selection = select_rows(rows, config, policy_version=message.policy_version)
    ctx.progress({"rows": len(rows), "groups": len(selection.groups)})
    metrics = _selection_metrics(rows, selection)
    tokens = 0
    if selection.groups:
        trained, tokens = _train(session, selection, config, ctx.store)
        metrics |= trained
        session.state.policy_version += 1
    session.state.consumed += message.rollout_digests
    session.state.curriculum = _practised(session.state.curriculum, rows)
    session.checkpoint_digest = save_checkpoint(ctx.store, session.policy, session.optimizer, session.state)
    metrics["seconds"] = time.monotonic() - started
    _session = session
    return TrainSegmentResult(
        policy_version=session.state.policy_version,
        checkpoint_digest=session.checkpoint_digest,
        adapter_digest=save_adapter(ctx.store, session.policy),
        metrics=metrics,
        tokens_trained=tokens,
        skipped="" if selection.groups else selection.reason,
    )


def _open(message: RunTrainSegment, config: TrainConfig, store: ArtifactStore) -> _Session:
    """The loaded session if it holds what the message asks for, else one put into that state."""
    key = json.dumps(
        [
            message.run_slug,
            message.base_model,
            message.base_digest,
            message.init_adapter_digest,
            message.config,
        ],
        sort_keys=True,
    )
    session = _session if _session and _session.key == key else None
    if session and session.checkpoint_digest == message.checkpoint_digest != "":
        return session
    policy = session.policy if session else _load_policy(message, config, store)
    optimizer = torch.optim.AdamW(
        policy.parameters().values(),
        lr=config.lr,
        betas=(config.beta1, config.beta2),
        weight_decay=config.weight_decay,
    )
    if message.checkpoint_digest:
        state = load_checkpoint(store, message.checkpoint_digest, policy, optimizer)
    else:
        policy.reset()
        state = TrainState(policy_version=message.policy_version)
        torch.manual_seed(config.seed)
    return _Session(key, policy, optimizer, message.checkpoint_digest, state)


def _load_policy(message: RunTrainSegment, config: TrainConfig, store: ArtifactStore) -> Policy:
    base = Path(message.base_model)
    if not base.is_dir() and message.base_digest:  # a worker on another machine than the models
        base = store.materialize(message.base_digest, adapters_root().parent / "models" / message.base_digest)
    init = None
    if message.init_adapter_digest:
        folder = adapters_root() / f"init-{message.init_adapter_digest}"
        init = store.materialize(message.init_adapter_digest, folder)
    return Policy(base, config, init_adapter=init)


def _check_follows(message: RunTrainSegment, state: TrainState) -> None:
    """A segment starts at the version its checkpoint holds and takes only rollouts not taken before."""
    if state.policy_version != message.policy_version:
        raise CheckpointRefused(
            f"the checkpoint holds version {state.policy_version}, "
            f"the segment starts at {message.policy_version}"
        )
    again = set(message.rollout_digests) & set(state.consumed)
    if again or len(set(message.rollout_digests)) < len(message.rollout_digests):
        names = ", ".join(sorted(digest[:12] for digest in again or message.rollout_digests))
        raise RolloutsRefused(f"rollouts were trained on before: {names}")


def _train(
    session: _Session, selection: Selection, config: TrainConfig, store: ArtifactStore
) -> tuple[dict[str, float], int]:
    try:
        metrics, steps, tokens = train_epochs(
            session.policy, session.optimizer, selection, config, steps_done=session.state.optimizer_steps
        )
    except Diverged as error:
        raise SegmentFailed(f"{error}; the batch is artifact {_keep(error.rows, store)}") from error
    session.state.optimizer_steps += steps
    session.state.tokens_trained += tokens
    return metrics | {"optimizer_steps": float(steps)}, tokens


def _keep(rows: Sequence[Row], store: ArtifactStore) -> str:
    """Store the rows as Parquet, for a person to look at."""
    sink = io.BytesIO()
    columns = {name: [getattr(row, name) for row in rows] for name in Row.__dataclass_fields__}
    pq.write_table(pa.table(columns), sink, compression="zstd")
    return store.put(sink.getvalue())


def _practised(curriculum: dict[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """The curriculum's state after these groups; answers that nobody could judge say nothing."""
    progress = Curriculum.from_dict(curriculum) if curriculum else Curriculum()
    groups: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row.state in ("passed", "failed"):
            groups.setdefault((row.group, row.task_id), []).append(float(row.state == "passed"))
    for (_, task_id), passed in groups.items():
        progress = progress.updated(task_id, fmean(passed))
    return progress.to_dict()


def _selection_metrics(rows: Sequence[Row], selection: Selection) -> dict[str, float]:
    rewards = [row.reward for row in rows if row.reward is not None]
    metrics = {
        "rows": float(len(rows)),
        "rows_trained": float(sum(map(len, selection.groups))),
        "groups_trained": float(len(selection.groups)),
        **{name: float(number) for name, number in selection.left_out.items()},
    }
    if rewards:
        metrics["reward_mean"] = fmean(rewards)
    if selection.advantages:
        flat = [abs(value) for group in selection.advantages for value in group]
        metrics["advantage_abs_mean"] = fmean(flat)
    return metrics
