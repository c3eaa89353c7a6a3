"""Parts and scenes judged from measurements; how they are measured is tested with the sandbox."""

from collections.abc import Callable
from typing import Any

import pytest

from domain.contracts import Verdict, VerifierSpec
from domain.verifiers import InvalidVerifier, check_spec

Judge = Callable[..., Verdict]

SOLID = {
    "watertight": True,
    "solid": True,
    "volume": 1000.0,
    "area": 600.0,
    "low": [0, 0, 0],
    "high": [10, 10, 10],
    "center": [5, 5, 5],
    "inertia": [1.0, 1.0, 1.0],
    "hull": 1000.0,
    "reach": 8.66,
    "bodies": 1,
    "genus": 0,
}
SAME = {"difference": 0.0, "views": {"+x": 1.0, "-z": 1.0}}
SCRIPT = {"script": "part = box(10, 10, 10)"}


def measured(against: Any = SAME, **changes: Any) -> dict[str, Any]:
    report = {"status": "ok", "metrics": {**SOLID, **changes}, "target": SOLID, "against": against}
    return {"geometry": report}


def test_a_part_that_measures_as_its_target_passes(judge: Judge) -> None:
    assert judge("geometry", SCRIPT, "part = …", measured()).state == "passed"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"volume": 1020.0}, "volume is 1020 mm³, not 1000"),
        ({"genus": 1}, "1 through holes, not 0"),
        ({"bodies": 2}, "2 separate bodies, not 1"),
        ({"low": [1, 0, 0]}, "lowest corner"),
        ({"high": [10, 10, 11]}, "highest corner"),
        ({"watertight": False, "solid": False}, "not closed"),
        ({"solid": False}, "through itself"),
    ],
)
def test_what_deviates_is_named(judge: Judge, changes: dict[str, Any], said: str) -> None:
    verdict = judge("geometry", SCRIPT, "part = …", measured(**changes))

    assert verdict.state == "failed"
    assert said in verdict.reasons[0]


def test_a_surface_that_is_no_solid_gets_no_credit_for_its_numbers(judge: Judge) -> None:
    verdict = judge("geometry", SCRIPT, "part = …", measured(solid=False, watertight=False))

    assert verdict.score == 0.0


def test_another_shape_of_the_same_numbers_fails(judge: Judge) -> None:
    apart = {"difference": 0.2, "views": SAME["views"]}

    verdict = judge("geometry", SCRIPT, "part = …", measured(apart))

    assert verdict.state == "failed"
    assert "20.0 % of the volume" in verdict.reasons[0]


def test_a_difference_that_could_not_be_measured_is_no_agreement(judge: Judge) -> None:
    verdict = judge("geometry", SCRIPT, "part = …", measured({"difference": None, "views": {}}))

    assert verdict.state == "failed"


def test_views_are_compared_side_by_side_where_asked(judge: Judge) -> None:
    against = {"difference": 0.0, "views": {"+x": 0.9, "-x": 1.0}}

    verdict = judge("geometry", SCRIPT, "part = …", measured(against), checks=["views"])

    assert verdict.reasons == ("It looks different from +x.",)


def test_numbers_alone_are_enough_for_a_target(judge: Judge) -> None:
    target = {"target": {"volume": 1000, "extents": [10, 10, 10], "genus": 0}}

    assert judge("geometry", target, "part = …", measured(None)).state == "passed"
    verdict = judge("geometry", target, "part = …", measured(None, high=[10, 10, 12]))
    assert verdict.reasons == ("The size is 10 × 10 × 12, not 10 × 10 × 10 mm.",)
    assert verdict.score == pytest.approx(2 / 3)


@pytest.mark.parametrize("kind", ["geometry", "scene"])
@pytest.mark.parametrize(
    ("report", "state"),
    [
        ({"status": "error", "detail": "NameError"}, "failed"),
        ({"status": "oom"}, "failed"),
        ({"status": "nonzero"}, "failed"),
        ({"status": "infra_error"}, "unscored"),
        ({"status": "unavailable"}, "unscored"),
        ({"status": "no such status"}, "unscored"),
        ({"status": "ok"}, "unscored"),
        (None, "unscored"),
    ],
)
def test_a_report_without_measurements(judge: Judge, kind: str, report: Any, state: str) -> None:
    reference = SCRIPT if kind == "geometry" else {"parts": {"a": "part = box(1, 1, 1)"}}

    assert judge(kind, reference, "script", {kind: report}).state == state


@pytest.mark.parametrize("kind", ["geometry", "scene"])
def test_silence_fails_whatever_was_measured(judge: Judge, kind: str) -> None:
    reference = SCRIPT if kind == "geometry" else {"parts": {"a": "part = box(1, 1, 1)"}}

    assert judge(kind, reference, " ", measured()).state == "failed"


@pytest.mark.parametrize(
    ("params", "reference"),
    [
        ({}, {}),
        ({"checks": ["difference"]}, {"target": {"volume": 1}}),
        ({"checks": ["colour"]}, SCRIPT),
        ({"difference": 0.9}, SCRIPT),
        ({}, {"target": {"volume": -1}}),
    ],
)
def test_an_unsound_specification_is_refused(params: dict[str, Any], reference: Any) -> None:
    with pytest.raises(InvalidVerifier):
        check_spec(VerifierSpec(kind="geometry", params=params), reference)


PARTS = {"parts": {"a": "part = box(10, 10, 10)", "b": "part = box(10, 10, 10)"}}


def scene(**changes: Any) -> dict[str, Any]:
    upper = {**SOLID, "low": [0, 0, 10], "high": [10, 10, 20]}
    report = {
        "status": "ok",
        "parts": {"a": SOLID, "b": upper},
        "wanted": {"a": SOLID, "b": SOLID},
        "collisions": [],
        "contacts": [["a", "floor"], ["b", "a"]],
        "stands": True,
    }
    return {"scene": {**report, **changes}}


def test_a_scene_that_holds_and_meets_its_goals_passes(judge: Judge) -> None:
    goals = {"on": [["b", "a"], ["a", "floor"]], "height": 20, "below": 20, "within": [10, 10]}

    assert judge("scene", PARTS, "scene = …", scene(), goals=goals).state == "passed"


@pytest.mark.parametrize(
    ("changes", "goals", "said"),
    [
        ({"collisions": [["a", "b", 3.0]]}, {}, "a and b run into each other"),
        ({"stands": False}, {}, "does not stand"),
        ({"stands": None}, {}, "does not stand"),
        ({}, {"on": [["a", "b"]]}, "a does not rest on b"),
        ({}, {"height": 25}, "at least 25 mm"),
        ({}, {"below": 15}, "at most 15 mm"),
        ({}, {"within": [9, 10]}, "over the edge"),
        ({}, {"apart": [["a", "b", 5]]}, "not 5"),
        ({"parts": {"a": SOLID}}, {}, "Missing from the scene: b"),
        ({"wanted": {"a": SOLID}}, {}, "Not asked for: b"),
        ({"wanted": {"a": SOLID, "b": {**SOLID, "volume": 999.0}}}, {}, "was changed"),
        ({"wanted": {"a": SOLID, "b": {**SOLID, "inertia": [1.0, 1.0, 2.0]}}}, {}, "was changed"),
        ({"wanted": {"a": SOLID, "b": {**SOLID, "hull": 1001.0}}}, {}, "was changed"),
        ({"wanted": {"a": SOLID, "b": {**SOLID, "reach": 60.0}}}, {}, "was changed"),
    ],
)
def test_what_is_wrong_with_a_scene_is_named(
    judge: Judge, changes: dict[str, Any], goals: dict[str, Any], said: str
) -> None:
    verdict = judge("scene", PARTS, "scene = …", scene(**changes), goals=goals)

    assert verdict.state == "failed"
    assert said in " ".join(verdict.reasons)


def test_goals_that_name_no_part_are_refused() -> None:
    for goals in ({"on": [["x", "a"]]}, {"apart": [["a", "x", 1]]}):
        with pytest.raises(InvalidVerifier, match="no parts"):
            check_spec(VerifierSpec(kind="scene", params={"goals": goals}), PARTS)
