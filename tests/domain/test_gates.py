import numpy as np
import pytest

from domain.gates import Guardrail, ReleasePlan, Step, decide
from domain.sequential import ArmCounts, Segment

PLAN = ReleasePlan(steps=(Step(0.1, 100), Step(0.5, 200), Step(1.0, 0)), margin=0.05)
GOOD = Segment(0.1, ArmCounts(400, 8), ArmCounts(3600, 180))
BAD = Segment(0.1, ArmCounts(200, 60), ArmCounts(1800, 90))
CLEAR = Guardrail("Latency p95", 300, 400, unit="ms")


def test_a_good_canary_with_enough_units_advances() -> None:
    decision = decide(PLAN, 0, [GOOD], [CLEAR])

    assert decision.verdict == "advance"
    assert decision.srm.state == "ok"
    assert decision.difference is not None
    assert decision.difference.high <= PLAN.margin
    assert decision.reasons[0] == "400 units have reached the canary at this step."


def test_a_bad_canary_rolls_back_and_the_reason_holds_the_counts() -> None:
    decision = decide(PLAN, 0, [BAD])

    assert decision.verdict == "roll_back"
    assert decision.e_value >= 20
    assert "60 of 200 units failed on it, 90 of 1,800 units on the control" in decision.reasons[0]


@pytest.mark.parametrize("segments", [[], [Segment(0.1, ArmCounts(), ArmCounts())]])
def test_no_data_holds(segments: list[Segment]) -> None:
    decision = decide(PLAN, 0, segments)

    assert decision.verdict == "hold"
    assert decision.srm.state == "unknown"
    assert decision.difference is None
    assert decision.reasons[0] == "No unit has reached the canary at this step yet."


def test_traffic_that_stops_after_a_step_holds_at_the_next_one() -> None:
    assert decide(PLAN, 1, [GOOD]).verdict == "hold"
    assert decide(PLAN, 1, [GOOD, Segment(0.5, ArmCounts(), ArmCounts())]).verdict == "hold"


def test_too_few_units_hold_however_good_they_are() -> None:
    early = Segment(0.1, ArmCounts(99, 0), ArmCounts(900, 300))

    decision = decide(PLAN, 0, [early])

    assert decision.verdict == "hold"
    assert decision.reasons == ("99 of 100 units have reached the canary at this step.",)


def test_no_evidence_of_harm_is_not_evidence_of_safety() -> None:
    noisy = Segment(0.1, ArmCounts(110, 33), ArmCounts(990, 297))

    decision = decide(PLAN, 0, [noisy])

    assert decision.verdict == "hold"
    assert "could still fail" in decision.reasons[0]


@pytest.mark.parametrize("value", [None, float("nan"), 500.0])
def test_a_guardrail_without_data_or_over_its_limit_holds(value: float | None) -> None:
    decision = decide(PLAN, 0, [GOOD], [Guardrail("Latency p95", value, 400, unit="ms")])

    assert decision.verdict == "hold"
    assert "Latency p95" in decision.reasons[0]


def test_a_hard_guardrail_rolls_back() -> None:
    decision = decide(PLAN, 0, [GOOD], [Guardrail("Error rate", 0.5, 0.1, rolls_back=True)])

    assert decision.verdict == "roll_back"
    assert decision.reasons == ("Error rate is 0.5, above its limit of 0.1.",)


def test_arms_swapped_in_the_data_never_promote_a_worse_canary() -> None:
    swapped = Segment(0.1, BAD.control, BAD.canary)

    decision = decide(PLAN, 0, [swapped])

    assert decision.verdict != "advance"
    assert decision.srm.state == "mismatch"


def test_harm_is_acted_on_even_when_the_split_is_off() -> None:
    leaking = Segment(0.1, ArmCounts(1000, 400), ArmCounts(1000, 20))

    assert decide(PLAN, 0, [leaking]).verdict == "roll_back"


def test_harm_in_an_earlier_step_is_remembered() -> None:
    late = Segment(0.5, ArmCounts(250, 10), ArmCounts(250, 10))

    assert decide(PLAN, 1, [BAD, late]).verdict == "roll_back"


def test_the_last_step_without_a_control_rests_on_the_earlier_ones() -> None:
    half = Segment(0.5, ArmCounts(400, 8), ArmCounts(400, 20))
    full = Segment(1.0, ArmCounts(50, 1), ArmCounts())

    assert decide(PLAN, 2, [GOOD, half, full]).verdict == "advance"
    assert decide(PLAN, 2, [full]).verdict == "hold"


def test_an_unknown_step_is_an_error() -> None:
    with pytest.raises(IndexError):
        decide(PLAN, 3, [])


@pytest.mark.parametrize(
    ("steps", "options"),
    [
        ((), {}),
        ((Step(0.5, 1), Step(0.1, 1)), {}),
        ((Step(0.1, 1), Step(0.1, 1)), {}),
        ((Step(1.0, 1),), {}),
        ((Step(0.1, 1),), {"alpha": 0.0}),
        ((Step(0.1, 1),), {"margin": 1.0}),
    ],
)
def test_a_plan_that_cannot_work_is_refused(steps: tuple[Step, ...], options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        ReleasePlan(steps=steps, **options)


@pytest.mark.parametrize(("weight", "units"), [(0.0, 1), (1.1, 1), (0.5, -1)])
def test_a_step_that_cannot_work_is_refused(weight: float, units: int) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        Step(weight, units)


def test_a_canary_worse_by_twice_the_margin_is_rarely_promoted() -> None:
    rng = np.random.default_rng(21)
    plan = ReleasePlan(steps=(Step(0.2, 100),), margin=0.05)
    promoted = sum(_outcome(plan, rng, canary=0.2, control=0.1) == "advance" for _ in range(200))

    assert promoted / 200 <= 0.02


def test_a_much_better_canary_is_usually_promoted_and_a_broken_one_rolled_back() -> None:
    rng = np.random.default_rng(22)
    plan = ReleasePlan(steps=(Step(0.2, 60),), margin=0.05)

    better = [_outcome(plan, rng, canary=0.15, control=0.45) for _ in range(60)]
    broken = [_outcome(plan, rng, canary=0.95, control=0.45) for _ in range(60)]

    assert better.count("advance") >= 57
    assert broken.count("roll_back") == 60


def _outcome(plan: ReleasePlan, rng: np.random.Generator, canary: float, control: float) -> str:
    """The first decision other than hold over 1,500 units, looked at every 10."""
    weight = plan.steps[0].weight
    on_canary = rng.random(1500) < weight
    failed = rng.random(1500) < np.where(on_canary, canary, control)
    for n in range(10, 1501, 10):
        arms = [
            ArmCounts(int(mask[:n].sum()), int((mask & failed)[:n].sum())) for mask in (on_canary, ~on_canary)
        ]
        verdict = decide(plan, 0, [Segment(weight, *arms)]).verdict
        if verdict != "hold":
            return verdict
    return "hold"


def test_a_better_canary_is_no_evidence_of_harm_however_sure_that_is() -> None:
    better = Segment(0.5, ArmCounts(500, 20), ArmCounts(500, 250))

    decision = decide(ReleasePlan(steps=(Step(0.5, 10),)), 0, [better])

    assert decision.verdict == "advance"
    assert decision.e_value <= 1.0
