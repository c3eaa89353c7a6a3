"""The index of trajectories: one row each, pointing into the Parquet artifact that holds the tokens."""

import io
import json
from functools import lru_cache
from typing import Any

import pyarrow.parquet as pq

from apps.training.models import TrainingRun, Trajectory
from artifacts import get_store
from domain.grpo import ZERO_VARIANCE

_COLUMNS = [
    "task_id",
    "family",
    "group",
    "sample",
    "state",
    "reward",
    "policy_version",
    "finish_reason",
    "completion_tokens",
    "steps_json",
    "hidden_json",
    "flags_json",
]
CUT_OFF = "cut off"


def trajectories_index(*, run: TrainingRun, step: int, digest: str) -> int:
    """Index the artifact ``digest``; indexing twice leaves one row per trajectory.

    Returns how many of its groups teach something: two or more rewards, not all equal.
    """
    canaries = canary_ids(run.dataset.tasks_digest)
    rows = pq.read_table(io.BytesIO(get_store().get(digest)), columns=_COLUMNS).to_pylist()
    Trajectory.objects.bulk_create(
        [_indexed(run, step, digest, number, row, canaries) for number, row in enumerate(rows)],
        ignore_conflicts=True,
        batch_size=500,
    )
    return _useful(rows)


@lru_cache(maxsize=8)
def canary_ids(tasks_digest: str) -> frozenset[str]:
    """Impossible tasks of a dataset; the artifact of a digest never changes."""
    tasks = get_store().iter_jsonl(tasks_digest)
    return frozenset(str(task["id"]) for task in tasks if (task.get("tags") or {}).get("canary"))


def _indexed(
    run: TrainingRun, step: int, digest: str, number: int, row: dict[str, Any], canaries: frozenset[str]
) -> Trajectory:
    detectors = list(dict.fromkeys(flag["detector"] for flag in json.loads(row["flags_json"])))
    return Trajectory(
        run=run,
        digest=digest,
        row=number,
        step=step,
        policy_version=row["policy_version"],
        task_key=row["task_id"],
        family=row["family"],
        sample=row["sample"],
        state=row["state"],
        reward=row["reward"],
        tokens=row["completion_tokens"],
        turns=len(json.loads(row["steps_json"])),
        flags=[*detectors, *([CUT_OFF] if row["finish_reason"] == "length" else [])],
        flagged=bool(detectors),
        hidden=json.loads(row["hidden_json"])["state"] if row["hidden_json"] else "",
        canary=row["task_id"] in canaries,
    )


def _useful(rows: list[dict[str, Any]]) -> int:
    groups: dict[str, list[float]] = {}
    for row in rows:
        if row["reward"] is not None:
            groups.setdefault(row["group"] or row["task_id"], []).append(row["reward"])
    return sum(len(found) > 1 and max(found) - min(found) >= ZERO_VARIANCE for found in groups.values())
