"""The report: figures as they are, and success only where all four things were shown."""

from typing import Any

import pytest

from apps.core.lineage import Node, lineage_record
from apps.loop.turn.context import Turn
from apps.loop.turn.report import turn_report
from tests.apps.loop.fake_api import FakeApi

SCORE = {"pass_rate": 0.5, "scored": 320, "clusters": 150, "low": 0.45, "high": 0.55}


@pytest.fixture
def ended(turn: Turn, fake: FakeApi) -> Turn:
    """A turn that showed everything."""
    turn.state.update(
        base={"id": 1, "number": "1.0"}, trained={"id": 2, "number": "1.1"},
        damaged={"id": 3, "number": "1.2"}, release=1, drill=2,
        in_service={"version": "1.1", "edition": "standard"},
        traffic={"sent": 20, "wrong": 10, "unanswered": 0}, assets={"made": 9, "refused": 1},
        comparison={"mean": 0.2, "low": 0.1, "high": 0.3, "n": 320, "clusters": 150, "verdict": "better",
                    "sentence": "Better by 20 points (+10 to +30).", "base": SCORE, "new": SCORE},
    )  # fmt: skip
    for state, units in (("promoted", 700), ("rolled_back", 57)):
        fake.releases.append(
            {"id": len(fake.releases) + 1, "state": state, "reasons": ["Because."], "units_at_end": units}
        )
    return turn


def test_a_turn_that_showed_everything_succeeded(ended: Turn):
    report = turn_report(ended)

    assert report["succeeded"] is True
    assert report["sentence"] == (
        "1.1 replaced 1.0. Better by 20 points (+10 to +30). The damaged copy was rolled back."
    )


def test_the_report_has_the_figures_of_the_specification(ended: Turn):
    report = turn_report(ended)

    assert report["seed"] == 7
    assert report["baseline"] == {"pass": 0.5, "n": 320, "clusters": 150, "low": 0.45, "high": 0.55}
    assert {"mean", "low", "high", "verdict"} <= set(report["difference"])
    assert report["release"]["decision"] == "promote"
    assert report["release"]["reasons"] == ["Because."]
    assert (report["damaged"]["decision"], report["damaged"]["units_to_rollback"]) == ("roll_back", 57)
    assert report["in_service"] == {"version": "1.1", "edition": "standard"}
    assert report["seconds"] >= 0


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"comparison": {"low": 0.0}}, "1.1 is not shown to be better than 1.0"),
        ({"comparison": {"low": None}}, "1.1 is not shown to be better than 1.0"),
        ({"in_service": {"version": "1.0"}}, "1.1 does not serve"),
        ({"releases": (0, "rolled_back")}, "1.1 was not promoted"),
        ({"releases": (0, "aborted")}, "1.1 was not promoted"),
        ({"releases": (1, "promoted")}, "the damaged copy was not rolled back"),
        ({"releases": (1, "running")}, "the damaged copy was not rolled back"),
    ],
)
def test_one_thing_not_shown_is_no_success(ended: Turn, fake: FakeApi, change: dict[str, Any], missing: str):
    for key, value in change.items():
        if key == "releases":
            fake.releases[value[0]]["state"] = value[1]
        else:
            ended.state[key] = {**ended.state[key], **value}

    report = turn_report(ended)

    assert report["succeeded"] is False
    assert report["sentence"] == f"The turn did not succeed: {missing}."


def test_all_that_was_not_shown_is_named(ended: Turn, fake: FakeApi):
    fake.releases[0]["state"] = fake.releases[1]["state"] = "aborted"

    assert turn_report(ended)["sentence"] == (
        "The turn did not succeed: 1.1 was not promoted; the damaged copy was not rolled back."
    )


def test_the_lineage_leads_to_the_trained_version(ended: Turn):
    lineage_record(
        project=ended.row.project, parent=Node("training.run:1", "turn 1"),
        child=Node("versions.version:2", "version 1.1"),
    )  # fmt: skip

    assert turn_report(ended)["lineage"] == ["turn 1", "version 1.1"]
