"""From rollout artifacts to rows, and from rows to packs that one forward pass takes.

A pack holds rows with the same prompt: the prompt once, then each row's own tokens, each of
which sees the prompt and itself. Nothing is padded, so no token id can be mistaken for padding
and positions are right by construction. Nothing is tokenized here: ids are those of the engine.
"""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.parquet as pq
import torch
from torch import Tensor

from artifacts import ArtifactStore
from domain.contracts.trajectory_table import METADATA_KEY, RolloutInfo
from workers.context import UnitRefused

_COLUMNS = [
    "task_id",
    "family",
    "group",
    "sample",
    "policy_version",
    "state",
    "reward",
    "finish_reason",
    "prompt_ids",
    "token_ids",
    "logprobs",
    "mask",
    "flags_json",
]


class RolloutsRefused(UnitRefused):
    """These rollouts cannot be trained on; the message names what and which rows."""


@dataclass(frozen=True)
class Row:
    """One trajectory. ``token_ids``, ``logprobs``, ``mask``: [T] each. One that is ``flagged`` looks like
    gaming: its reward and state are withheld, so that it is in no baseline, loss or curriculum."""

    task_id: str
    family: str
    group: str
    sample: int
    policy_version: int
    state: str
    reward: float | None
    finish_reason: str
    prompt_ids: np.ndarray
    token_ids: np.ndarray
    logprobs: np.ndarray
    mask: np.ndarray
    flagged: bool = False

    @property
    def name(self) -> str:
        return f"{self.group or self.task_id}#{self.sample}"


@dataclass(frozen=True)
class Pack:
    """L tokens of one forward pass, N of them trained.

    ``source`` is the position whose hidden state predicts ``target``; ``row`` says which of
    the pack's rows a trained token belongs to. ``visible`` [L, L] is True where a query
    (first axis) may attend.
    """

    input_ids: Tensor  # [L]
    position_ids: Tensor  # [L]
    visible: Tensor  # [L, L]
    source: Tensor  # [N]
    target: Tensor  # [N]
    logp_behav: Tensor  # [N]
    advantage: Tensor  # [N]
    weight: Tensor  # [N]


def read_rollouts(store: ArtifactStore, digests: Sequence[str], *, temperature: float) -> list[Row]:
    """All rows of the artifacts, in order. Group names get their artifact's digest in front, so
    that the same task rolled out twice makes two groups.

    Raises ``RolloutsRefused`` when they were sampled in a way that the loss cannot correct.
    """
    rows: list[Row] = []
    for digest in digests:
        table = pq.read_table(io.BytesIO(store.get(digest)))
        info = RolloutInfo.model_validate_json((table.schema.metadata or {}).get(METADATA_KEY, b"{}"))
        _check_sampling(info, digest, temperature)
        for values in table.select(_COLUMNS).to_pylist():
            values["group"] = f"{digest[:12]}:{values['group']}"
            values["prompt_ids"] = np.asarray(values["prompt_ids"], dtype=np.int64)
            values["token_ids"] = np.asarray(values["token_ids"], dtype=np.int64)
            values["logprobs"] = np.asarray(values["logprobs"], dtype=np.float32)
            values["mask"] = np.asarray(values["mask"], dtype=bool)
            if values.pop("flags_json") not in ("", "[]"):
                values |= {"flagged": True, "reward": None, "state": "cancelled"}
            rows.append(Row(**values))
    _check_rows(rows)
    return rows


def make_packs(
    rows: Sequence[Row], *, advantage: np.ndarray, weight: np.ndarray, pack_tokens: int
) -> list[Pack]:
    """Rows [R] with a scalar advantage and per-token weight each -> packs of at most
    ``pack_tokens`` tokens (a single longer row makes a pack of its own)."""
    by_prompt: dict[bytes, list[int]] = {}
    for index, row in enumerate(rows):
        by_prompt.setdefault(row.prompt_ids.tobytes(), []).append(index)
    packs = []
    for indexes in by_prompt.values():
        for part in _split(rows, indexes, pack_tokens):
            packs.append(_pack([rows[i] for i in part], advantage[part], weight[part]))
    return packs


def _check_sampling(info: RolloutInfo, digest: str, temperature: float) -> None:
    if info.logprobs != "processed":
        raise RolloutsRefused(f"rollouts {digest[:12]} carry no log-probabilities of the sampled tokens")
    if info.top_p != 1.0:
        raise RolloutsRefused(
            f"rollouts {digest[:12]} were sampled with top_p {info.top_p}; training needs 1"
        )
    if info.temperature != temperature:
        raise RolloutsRefused(
            f"rollouts {digest[:12]} were sampled at temperature {info.temperature}, "
            f"the run trains at {temperature}"
        )


def _check_rows(rows: Iterable[Row]) -> None:
    scored = [row for row in rows if row.reward is not None]
    _refuse("have no sampled token to train on", [row for row in scored if not row.mask.any()])
    _refuse("have no prompt", [row for row in scored if not len(row.prompt_ids)])
    _refuse(
        "have a log-probability above 0 or not finite",
        [row for row in scored if not np.isfinite(row.logprobs).all() or (row.logprobs > 1e-4).any()],
    )


def _refuse(what: str, rows: list[Row]) -> None:
    if rows:
        names = ", ".join(row.name for row in rows[:5]) + (", …" if len(rows) > 5 else "")
        raise RolloutsRefused(f"{len(rows)} rows {what}: {names}")


def _split(rows: Sequence[Row], indexes: list[int], pack_tokens: int) -> list[list[int]]:
    parts: list[list[int]] = []
    room = 0
    for index in indexes:
        need = len(rows[index].token_ids)
        if not parts or need > room:
            parts.append([])
            room = pack_tokens - len(rows[index].prompt_ids)
        parts[-1].append(index)
        room -= need
    return parts


def _pack(rows: Sequence[Row], advantage: np.ndarray, weight: np.ndarray) -> Pack:
    prompt = rows[0].prompt_ids
    lengths = [len(row.token_ids) for row in rows]
    segment = np.concatenate([np.zeros(len(prompt)), np.repeat(np.arange(1, len(rows) + 1), lengths)])
    position = np.concatenate([np.arange(len(prompt)), *(len(prompt) + np.arange(n) for n in lengths)])
    starts = len(prompt) + np.cumsum([0, *lengths[:-1]])
    # The first own token is predicted from the prompt's end, every other from the one before it.
    source = np.concatenate(
        [np.r_[len(prompt) - 1, start + np.arange(n - 1)] for start, n in zip(starts, lengths, strict=True)]
    )
    trained = np.concatenate([row.mask for row in rows])
    tokens = np.concatenate([row.token_ids for row in rows])
    same = (segment[:, None] == segment[None, :]) | (segment[None, :] == 0)
    return Pack(
        input_ids=torch.from_numpy(np.concatenate([prompt, tokens])),
        position_ids=torch.from_numpy(position),
        visible=torch.from_numpy(same & np.tri(len(segment), dtype=bool)),
        source=torch.from_numpy(source[trained]),
        target=torch.from_numpy(tokens[trained]),
        logp_behav=torch.from_numpy(np.concatenate([row.logprobs for row in rows])[trained]),
        advantage=torch.from_numpy(np.repeat(advantage, lengths)[trained].astype(np.float32)),
        weight=torch.from_numpy(np.repeat(weight, lengths)[trained].astype(np.float32)),
    )
