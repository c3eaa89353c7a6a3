"""The figures of a turn: how much is asked, held out, trained and released. No outcome is among them."""

from functools import lru_cache
from typing import Any

from domain.contracts import TaskSpec
from packs.registry import pack_named

PACK = "starter"
FAMILY = "invoice_fields"

TRAFFIC = 480  # requests that are watched for failures
FEWEST_FAILURES = 20  # fewer are not worth a training run
HELD_OUT = 320  # cases that are evaluated and never trained on
RELEASE_CAP = 2400  # requests after which a release that still holds is given up
DRILL_CASES = 40
STEPS = 40
# Two steps, then everything by promotion. The margin is what the demo's owner would tolerate.
RELEASE_PLAN: dict[str, Any] = {
    "steps": [{"weight": 0.1, "min_units": 40}, {"weight": 0.5, "min_units": 60}],
    "alpha": 0.05,
    "margin": 0.05,
}
# What the pocket model learns well with; a large model wants other numbers.
TRAIN: dict[str, Any] = {
    "groups": 8,
    "group_size": 8,
    "refills": 0,
    "train": {"lora_r": 16, "lora_alpha": 32.0, "lr": 2e-3},
}


def watched(seed: int) -> tuple[TaskSpec, ...]:
    """Questions of the traffic that is watched for failures."""
    return _questions(seed)[:TRAFFIC]


def held_out(seed: int) -> tuple[TaskSpec, ...]:
    """Cases that no user asks in this turn."""
    return _questions(seed)[TRAFFIC : TRAFFIC + HELD_OUT]


def flowing(seed: int, stage: str) -> tuple[TaskSpec, ...]:
    """Questions that flow while ``stage``, "release" or "drill", runs; no two stages share one."""
    first = TRAFFIC + HELD_OUT + (RELEASE_CAP if stage == "drill" else 0)
    return _questions(seed)[first : first + RELEASE_CAP]


@lru_cache(maxsize=4)
def _questions(seed: int) -> tuple[TaskSpec, ...]:
    """Everything asked under ``seed``; the model saw none of it when it was made."""
    count = TRAFFIC + HELD_OUT + 2 * RELEASE_CAP
    return tuple(pack_named(PACK).generate(FAMILY, seed=seed, count=count, reserved=True))
