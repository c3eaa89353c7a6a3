"""Whether a release advances, holds or rolls back. A pure decision on counts; acting on it is the
caller's.

No data and inconclusive data hold. No evidence of harm is not evidence of safety: advancing needs
an upper limit on the difference, not the absence of an alarm.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from domain.intervals import Interval
from domain.sequential import Harm, SampleRatio, Segment, difference_sequence, harm, sample_ratio

GateVerdict = Literal["advance", "hold", "roll_back"]


@dataclass(frozen=True)
class Step:
    """Canary ``weight`` in (0, 1] and the canary units that this step needs before it may advance."""

    weight: float
    min_units: int

    def __post_init__(self) -> None:
        if not 0.0 < self.weight <= 1.0:
            raise ValueError("A step's weight lies above 0 and at most at 1.")
        if self.min_units < 0:
            raise ValueError("A step's minimum of units cannot be negative.")


@dataclass(frozen=True)
class ReleasePlan:
    """Steps of rising weight; part of the release's numbered revision, fixed before traffic flows.

    ``alpha``: chance of a false roll-back, and of each wrong limit. ``margin``: the increase of the
    failure rate that is acceptable. ``srm_alpha``: chance of a false alarm on the split.
    """

    steps: tuple[Step, ...]
    alpha: float = 0.05
    margin: float = 0.02
    srm_alpha: float = 0.001

    def __post_init__(self) -> None:
        weights = [step.weight for step in self.steps]
        if not weights:
            raise ValueError("A release needs at least one step.")
        if weights != sorted(set(weights)):
            raise ValueError("The weights of a release must rise from step to step.")
        if weights[0] == 1.0:
            raise ValueError("The first step must leave traffic on the control.")
        if not (0.0 < self.alpha < 0.5 and 0.0 < self.srm_alpha < 0.5):
            raise ValueError("Error rates lie above 0 and below one half.")
        if not 0.0 <= self.margin < 1.0:
            raise ValueError("The margin is a share between 0 and 1.")

    @property
    def planned_information(self) -> float:
        """Σ min_units · (1 − weight) over steps with two arms: n₁n₀/(n₁+n₀) at their minimum."""
        return max(1.0, sum(step.min_units * (1.0 - step.weight) for step in self.steps))


@dataclass(frozen=True)
class Guardrail:
    """A limit that the canary must keep, for example ``latency p95`` in ms. ``value`` None is "no
    data" and holds; above ``limit`` it holds too, or rolls back where the plan says so."""

    name: str
    value: float | None
    limit: float
    rolls_back: bool = False
    unit: str = ""

    @property
    def state(self) -> Literal["clear", "breached", "unknown"]:
        if self.value is None or not math.isfinite(self.value):
            return "unknown"
        return "clear" if self.value <= self.limit else "breached"


@dataclass(frozen=True)
class Decision:
    """``difference`` is canary − control failure rate with its limits, None while it is unknown.
    ``e_value`` is evidence of harm: at most 1 while the canary fails less often than its share."""

    verdict: GateVerdict
    reasons: tuple[str, ...]
    e_value: float
    log_e: float
    difference: Interval | None
    srm: SampleRatio
    canary_units: int
    min_units: int


def decide(
    plan: ReleasePlan,
    step_index: int,
    segments: Sequence[Segment],
    guardrails: Sequence[Guardrail] = (),
) -> Decision:
    """Decide at step ``step_index``. ``segments`` are all segments so far, oldest first; those at
    the current step's weight count towards its minimum. "advance" at the last step means promote.

    Raises ``IndexError`` for a step that the plan does not have.
    """
    step = plan.steps[step_index]
    evidence = harm(segments)
    difference = difference_sequence(segments, plan.alpha, plan.planned_information)
    split = sample_ratio(segments, plan.srm_alpha)
    units = sum(s.canary.units for s in segments if math.isclose(s.weight, step.weight))

    stop = _reasons_to_roll_back(plan, segments, evidence, guardrails)
    wait = _reasons_to_hold(plan, step, units, difference, split, guardrails)
    verdict: GateVerdict = "roll_back" if stop else "hold" if wait else "advance"
    return Decision(
        verdict=verdict,
        reasons=tuple(stop or wait or _reasons_to_advance(plan, units, difference)),
        e_value=math.exp(min(evidence.log_e_of_harm, 700.0)),
        log_e=evidence.log_e_of_harm,
        difference=difference,
        srm=split,
        canary_units=units,
        min_units=step.min_units,
    )


def _reasons_to_roll_back(
    plan: ReleasePlan, segments: Sequence[Segment], evidence: Harm, guardrails: Sequence[Guardrail]
) -> list[str]:
    reasons = []
    if evidence.shown(plan.alpha):
        reasons.append(
            f"The canary is worse: {_arms(segments)} (E = {_short(evidence.e_value)}, "
            f"limit {1 / plan.alpha:.0f})."
        )
    reasons += [_breach(rail) for rail in guardrails if rail.rolls_back and rail.state == "breached"]
    return reasons


def _reasons_to_hold(
    plan: ReleasePlan,
    step: Step,
    units: int,
    difference: Interval | None,
    split: SampleRatio,
    guardrails: Sequence[Guardrail],
) -> list[str]:
    reasons = []
    if units == 0:
        reasons.append("No unit has reached the canary at this step yet.")
    elif units < step.min_units:
        reasons.append(f"{units:,} of {step.min_units:,} units have reached the canary at this step.")
    if split.state == "mismatch":
        reasons.append("Traffic does not arrive in the planned shares; the comparison cannot be trusted.")
    for rail in guardrails:
        if rail.state == "unknown":
            reasons.append(f"There is no data for {rail.name}.")
        elif rail.state == "breached":
            reasons.append(_breach(rail))
    if difference is None:
        reasons.append("Canary and control cannot be compared yet.")
    elif difference.high > plan.margin:
        reasons.append(
            f"The canary could still fail {_points(difference.high)} points more often than the control; "
            f"the margin is {_points(plan.margin)}."
        )
    return reasons


def _reasons_to_advance(plan: ReleasePlan, units: int, difference: Interval | None) -> list[str]:
    assert difference is not None  # its absence holds
    if difference.high < 0:
        bound = f"at least {_points(-difference.high)} points less often than the control"
    else:
        bound = f"at most {_points(difference.high)} points more often than the control"
    return [
        f"{units:,} units have reached the canary at this step.",
        f"The canary fails {bound}; the margin is {_points(plan.margin)}.",
    ]


def _arms(segments: Sequence[Segment]) -> str:
    used = [segment for segment in segments if segment.split]
    canary = _rate(sum(s.canary.failures for s in used), sum(s.canary.units for s in used))
    control = _rate(sum(s.control.failures for s in used), sum(s.control.units for s in used))
    return f"{canary} failed on it, {control} on the control"


def _rate(failures: int, units: int) -> str:
    return f"{failures:,} of {units:,} units"


def _breach(rail: Guardrail) -> str:
    unit = f" {rail.unit}" if rail.unit else ""
    return f"{rail.name} is {rail.value:g}{unit}, above its limit of {rail.limit:g}{unit}."


def _points(share: float) -> str:
    return f"{100 * share:.1f}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value < 1e6 else "over a million"
