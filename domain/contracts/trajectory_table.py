"""How trajectories lie in a Parquet file: column names, types, and the JSON inside them.

Pure standard library, so that both sides can use it: a worker writes the table, the trajectory
viewer reads it, each with its own ``pyarrow``. One row is one trajectory. The token columns
are the concatenation of all steps, ready for training; ``steps_json`` holds the rest of each
step and how many tokens it owns. The file's schema metadata carries ``METADATA_KEY``: JSON of
``RolloutInfo``, the facts of sampling that hold for every row.
"""

import json
from collections.abc import Mapping
from typing import Any

from domain.contracts.base import Contract
from domain.contracts.trajectory import Flag, Step, Trajectory
from domain.contracts.verdicts import Verdict
from domain.storable import storable

FORMAT = "flywheel-trajectories-2"
METADATA_KEY = b"flywheel.rollout"

# Column -> Arrow type name, in file order. "[x]" is a list of x.
COLUMNS: dict[str, str] = {
    "task_id": "string",
    "family": "string",
    "group": "string",
    "sample": "int64",
    "seed": "int64",
    "policy_version": "int64",  # of the oldest sampled token
    "state": "string",
    "reward": "float64",  # null: the infrastructure failed, or the verifier could not decide
    "reward_terms_json": "string",
    "finish_reason": "string",  # of the last step
    "prompt_ids": "[int32]",
    "token_ids": "[int32]",
    "logprobs": "[float64]",
    "mask": "[int8]",
    "steps_json": "string",
    "verdict_json": "string",  # "" when there is no verdict
    "hidden_json": "string",  # "" when the hidden verifier was not asked
    "flags_json": "string",
    "error": "string",
    "wall_s": "float64",
    "prompt_tokens": "int64",
    "completion_tokens": "int64",
    "ttft_ms": "float64",
    "latency_ms": "float64",
    "served_model": "string",
}

_PLAIN = (
    "task_id",
    "family",
    "group",
    "sample",
    "seed",
    "state",
    "reward",
    "error",
    "wall_s",
    "prompt_tokens",
    "completion_tokens",
    "ttft_ms",
    "latency_ms",
    "served_model",
)


class RolloutInfo(Contract):
    """How every row of one file was sampled; training refuses what it cannot correct for."""

    format: str = FORMAT
    policy_version: int
    temperature: float
    top_p: float = 1.0
    logprobs: str = "processed"  # of the distribution the token was drawn from; "none" when not returned
    model: str = ""
    group_size: int = 0
    seed: int = 0


def to_row(trajectory: Trajectory, *, policy_version: int = 0) -> dict[str, Any]:
    """One row of the table; its keys are ``COLUMNS``. ``policy_version`` stands for no steps."""
    steps = trajectory.steps
    row: dict[str, Any] = {name: _column(getattr(trajectory, name)) for name in _PLAIN}
    row |= {
        "policy_version": min((step.policy_version for step in steps), default=policy_version),
        "reward_terms_json": _dump(trajectory.reward_terms),
        "finish_reason": steps[-1].finish_reason if steps else "",
        "prompt_ids": list(trajectory.prompt_ids),
        "token_ids": [token for step in steps for token in step.token_ids],
        "logprobs": [value for step in steps for value in step.logprobs],
        "mask": [bit for step in steps for bit in step.mask],
        "steps_json": _dump([_step_head(step) for step in steps]),
        "verdict_json": _dump(trajectory.verdict.model_dump(mode="json")) if trajectory.verdict else "",
        "hidden_json": _dump(trajectory.hidden.model_dump(mode="json")) if trajectory.hidden else "",
        "flags_json": _dump([flag.model_dump() for flag in trajectory.flags]),
    }
    return row


def from_row(row: Mapping[str, Any]) -> Trajectory:
    """The trajectory that ``to_row`` wrote; ``row`` is one element of ``Table.to_pylist()``."""
    steps, start = [], 0
    for head in json.loads(row["steps_json"]):
        stop = start + head.pop("tokens")
        tokens = {name: tuple(row[name][start:stop]) for name in ("token_ids", "logprobs", "mask")}
        steps.append(Step(**head, **tokens))
        start = stop
    return Trajectory(
        **{name: row[name] for name in _PLAIN},
        prompt_ids=tuple(row["prompt_ids"]),
        steps=tuple(steps),
        verdict=Verdict.model_validate_json(row["verdict_json"]) if row["verdict_json"] else None,
        hidden=Verdict.model_validate_json(row["hidden_json"]) if row["hidden_json"] else None,
        flags=tuple(Flag(**flag) for flag in json.loads(row["flags_json"])),
        reward_terms=json.loads(row["reward_terms_json"]),
    )


def _step_head(step: Step) -> dict[str, Any]:
    head = step.model_dump(exclude={"token_ids", "logprobs", "mask"})
    return head | {"tokens": len(step.token_ids)}


def _dump(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return text if _is_text(text) else _dump(storable(value))


def _column(value: Any) -> Any:
    return value if not isinstance(value, str) or _is_text(value) else storable(value)


def _is_text(value: str) -> bool:
    """Half of a surrogate pair has no place in a column of text."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
