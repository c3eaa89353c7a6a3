from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.routing import (
    NoServer,
    UnknownModel,
    UnknownTaskType,
    assign,
    model_names,
    order_deployments,
    plan_route,
    point,
)


def revision(weight: float | None = 0.1, **changes: Any) -> dict[str, Any]:
    """A revision with one engine per edition, and a release unless ``weight`` is None."""
    canary = {"version_id": 2, "version": "1.1", "model": "run-1-v9-a1", "adapter_digest": "d"}
    values: dict[str, Any] = {
        "revision": 4,
        "arms": {
            "control": {"version_id": 1, "version": "1.0", "model": "pocket", "adapter_digest": ""},
            "canary": None if weight is None else canary,
        },
        "release": None if weight is None else {"id": 7, "salt": "salt", "weight": weight, "segment": 0},
        "editions": {
            "standard": [{"deployment_id": 1, "base_url": "http://s"}],
            "high_speed": [{"deployment_id": 2, "base_url": "http://h"}],
        },
        "externals": {},
        "task_types": {"interactive": "high_speed", "batch": "standard"},
        "default_edition": "standard",
    }
    return values | changes


def plan(model: str = "auto", task_type: str = "", unit: str = "u", **changes: Any) -> Any:
    return plan_route(revision(**changes), model=model, task_type=task_type, unit=unit)


def unit_on(arm: str, weight: float = 0.1) -> str:
    return next(str(n) for n in range(10_000) if assign("salt", str(n), weight) == arm)


@given(st.text(), st.text(), st.floats(0, 1), st.floats(0, 1))
def test_a_ramp_up_never_moves_a_unit_back(salt: str, unit: str, first: float, second: float) -> None:
    low, high = sorted((first, second))

    if assign(salt, unit, low) == "canary":
        assert assign(salt, unit, high) == "canary"


@given(st.text(), st.text())
def test_weight_zero_leaves_no_unit_and_weight_one_takes_all(salt: str, unit: str) -> None:
    assert assign(salt, unit, 0.0) == "control"
    assert assign(salt, unit, 1.0) == "canary"


def test_the_place_of_a_unit_is_fixed_for_ever() -> None:
    assert point("salt", "unit-1") == pytest.approx(0.8116556, abs=1e-6)


def test_shares_are_kept_and_salts_shuffle() -> None:
    units = [str(n) for n in range(20_000)]
    on_canary = {unit for unit in units if assign("a", unit, 0.1) == "canary"}
    again = {unit for unit in units if assign("b", unit, 0.1) == "canary"}

    assert len(on_canary) / 20_000 == pytest.approx(0.1, abs=0.008)
    assert len(on_canary & again) / 20_000 == pytest.approx(0.01, abs=0.004)


def test_returning_users_do_not_raise_the_share_of_the_canary() -> None:
    units = [str(n % 500) for n in range(20_000)]

    assert len({(unit, assign("a", unit, 0.1)) for unit in units}) == 500


def test_the_assigned_arm_comes_first_and_the_control_stands_behind_it() -> None:
    canary, control = (plan("standard", unit=unit_on(arm)) for arm in ("canary", "control"))

    assert [(target.arm, target.version) for target in canary.targets] == [
        ("canary", "1.1"),
        ("control", "1.0"),
    ]
    assert [target.arm for target in control.targets] == ["control"]
    assert (canary.assigned_arm, control.assigned_arm) == ("canary", "control")


def test_a_unit_of_the_control_never_falls_onto_the_canary() -> None:
    targets = plan("auto", unit=unit_on("control")).targets

    assert {target.arm for target in targets} == {"control"}


def test_after_an_abort_no_unit_is_on_the_canary() -> None:
    for aborted in ({"weight": 0.0}, {"weight": None}):
        assert {plan("auto", unit=str(n), **aborted).targets[0].version for n in range(500)} == {"1.0"}


@pytest.mark.parametrize(
    ("model", "task_type", "edition"),
    [
        ("auto", "", "standard"),
        ("auto", "interactive", "high_speed"),
        ("auto:interactive", "", "high_speed"),
        ("auto:batch", "interactive", "standard"),
        ("high-speed", "batch", "high_speed"),
        ("flywheel:1.1:high-speed", "", "high_speed"),
    ],
)
def test_task_types_choose_the_edition_by_alias_or_header(model: str, task_type: str, edition: str) -> None:
    assert plan(model, task_type).targets[0].edition_kind == edition


def test_a_pinned_version_stays_out_of_the_release() -> None:
    pinned = plan("flywheel:1.1", unit=unit_on("control"))

    assert [target.version for target in pinned.targets] == ["1.1"]
    assert (pinned.assigned_arm, pinned.release_id) == ("", None)


@pytest.mark.parametrize("model", ["gpt", "auto:nothing", "autos", "flywheel:9.9", "endpoint:none"])
def test_unknown_models_are_refused(model: str) -> None:
    with pytest.raises(UnknownModel):
        plan(model)


def test_an_unknown_task_type_names_the_known_ones() -> None:
    with pytest.raises(UnknownTaskType, match="batch, interactive"):
        plan("auto", "unheard of")


def test_without_deployments_there_is_no_server() -> None:
    with pytest.raises(NoServer):
        plan("standard", editions={"standard": [], "high_speed": []})


def test_excluded_and_weightless_deployments_serve_nobody() -> None:
    rows = [
        {"deployment_id": 1, "base_url": "http://a", "excluded": True},
        {"deployment_id": 2, "base_url": "http://b", "weight": 0},
        {"deployment_id": 3, "base_url": "http://c"},
    ]

    assert [row["deployment_id"] for row in order_deployments(rows, "u")] == [3]


def test_every_listed_name_is_one_that_routes() -> None:
    names = model_names(revision())

    assert names[0] == "auto"
    assert all(plan(name).targets for name in names)
