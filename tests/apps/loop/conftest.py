"""A running turn, and the small world that it is driven against."""

from collections.abc import Callable
from typing import Any

import pytest

from apps.core.models import Project
from apps.core.permissions import Actor
from apps.loop.models import DemoTurn
from apps.loop.services import turn_start
from apps.loop.turn import plan
from apps.loop.turn.context import Turn
from packs.registry import pack_named
from tests.apps.loop.fake_api import FakeApi


@pytest.fixture
def row(project: Project, actor: Actor) -> DemoTurn:
    return turn_start(project=project, seed=7, by=actor)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn of few questions."""
    for name, value in {
        "TRAFFIC": 20, "FEWEST_FAILURES": 5, "HELD_OUT": 6, "DRILL_CASES": 3, "RELEASE_CAP": 30,
    }.items():  # fmt: skip
        monkeypatch.setattr(plan, name, value)
    plan._questions.cache_clear()


@pytest.fixture
def fake(small: None) -> FakeApi:
    pack = pack_named(plan.PACK)
    tasks = [*plan.watched(7), *plan.flowing(7, "release"), *plan.flowing(7, "drill")]
    return FakeApi({str(task.messages[-1].content): pack.gold_answer(task) for task in tasks})


@pytest.fixture
def turn(row: DemoTurn, fake: FakeApi, monkeypatch: pytest.MonkeyPatch) -> Turn:
    monkeypatch.setattr(Turn, "pause", lambda self, seconds: None)
    return Turn(row, api=fake)


@pytest.fixture
def fully(turn: Turn) -> Callable[[Callable[[Turn], bool]], int]:
    """Call a phase until it is done; returns how many calls that took."""

    def run(phase: Callable[[Turn], Any], limit: int = 50) -> int:
        for calls in range(1, limit + 1):
            if phase(turn):
                return calls
        raise AssertionError(f"{phase.__name__} was not done after {limit} calls")

    return run
