"""Arms and deployments: shares, stickiness, ramps."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.routing import order_deployments, plan_route
from tests.apps.gateway.world import canary, routing

UNITS = [f"unit-{i}" for i in range(10_000)]


def assigned(weight: float) -> list[str]:
    revision = routing(["http://a"], **canary(weight))
    return [plan_route(revision, model="auto", task_type="", unit=unit).assigned_arm for unit in UNITS]


def test_split_over_ten_thousand_units_is_within_bounds() -> None:
    share = assigned(0.1).count("canary") / len(UNITS)

    assert abs(share - 0.1) < 4 * (0.1 * 0.9 / len(UNITS)) ** 0.5


def test_a_unit_stays_on_its_arm() -> None:
    assert assigned(0.3) == assigned(0.3)


def test_a_ramp_never_flips_a_canary_unit_back() -> None:
    steps = [assigned(weight) for weight in (0.01, 0.05, 0.1, 0.25, 0.5, 1.0)]

    for before, after in pairwise(steps):
        moved = set(zip(before, after, strict=True))
        assert ("canary", "control") not in moved
        assert ("control", "canary") in moved


def test_weight_zero_leaves_nobody_on_the_canary() -> None:
    assert set(assigned(0.0)) == {"control"}


def test_assigned_canary_falls_back_to_control_and_then_to_the_other_edition() -> None:
    revision = routing(["http://s"], ["http://h"], **canary(1.0))

    plan = plan_route(revision, model="auto", task_type="batch", unit="u")

    assert [(t.base_url, t.arm, t.model) for t in plan.targets] == [
        ("http://s", "canary", "adapter"),
        ("http://s", "control", "base"),
        ("http://h", "control", "base"),
    ]


def test_control_units_never_reach_the_canary() -> None:
    revision = routing(["http://s"], ["http://h"], **canary(0.0))

    plan = plan_route(revision, model="auto", task_type="", unit="u")

    assert {target.version for target in plan.targets} == {"1.0"}


@settings(max_examples=50, deadline=None)
@given(st.text(min_size=1), st.integers(1, 6))
def test_losing_a_deployment_moves_only_its_own_units(unit: str, count: int) -> None:
    deployments = [{"deployment_id": i, "base_url": f"http://{i}"} for i in range(count + 1)]

    everyone = order_deployments(deployments, unit)
    fewer = order_deployments(deployments[:-1], unit)

    assert [d for d in everyone if d["deployment_id"] != count] == fewer
