"""Stepping through a trajectory with the keyboard, in a real browser."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from apps.core.models import User
from apps.training.models import TrainingRun, Trajectory
from artifacts import ArtifactStore
from domain.contracts import SandboxStep, Step
from domain.contracts import Trajectory as Whole
from domain.contracts.trajectory_table import RolloutInfo
from tests.apps.training.conftest import Workers
from tests.browser import signed_in_tab
from workers.trajectory_file import trajectory_file

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def row(run: TrainingRun, workers: Workers, store: ArtifactStore) -> Trajectory:
    """Eight turns."""
    unit = workers.first("rollout_batch")
    steps = tuple(
        Step(action=f"say {number}", sandbox=SandboxStep(command=f"run {number}", stdout=f"out {number}"))
        for number in range(1, 9)
    )
    whole = Whole(task_id="t", family="invoice_fields", steps=steps, state="failed", reward=0.0)
    digest = store.put(trajectory_file([whole], RolloutInfo(policy_version=0, temperature=1.0)))
    workers.finish(unit, {"trajectories_digest": digest, "policy_version": 0, "counts": {"failed": 1}})
    return Trajectory.objects.get()


@pytest.fixture
def tab(live_server: Any, client: Client, admin: User) -> Iterator[Any]:
    client.force_login(admin)
    with signed_in_tab(client, live_server.url) as page:
        yield page


def test_arrows_and_letters_step_through_the_turns_without_loading_the_page(
    tab: Any, row: Trajectory
) -> None:
    tab.goto(row.get_absolute_url())
    tab.evaluate("window.stays = true")

    seen = []
    for key in ("ArrowRight", "j", "ArrowLeft", "k"):
        before = tab.url
        tab.keyboard.press(key)
        tab.wait_for_function("url => location.href !== url", arg=before)
        tab.wait_for_selector(f"#turn-{tab.url.rpartition('=')[2]}")
        seen.append((tab.url.rpartition("?")[2], tab.inner_text(".turn-panel .command")))

    assert seen == [("turn=2", "run 2"), ("turn=3", "run 3"), ("turn=2", "run 2"), ("turn=1", "run 1")]
    assert tab.evaluate("window.stays") is True
    assert tab.locator(".turn-panel").count() == 1


def test_a_shows_all_turns(tab: Any, row: Trajectory) -> None:
    tab.goto(f"{row.get_absolute_url()}?turn=3")

    tab.keyboard.press("a")

    tab.wait_for_url("**?turn=all")
    tab.wait_for_function("() => document.querySelectorAll('.turn-panel').length === 8")
