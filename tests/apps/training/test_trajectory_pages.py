"""The trajectory viewer: turns, what the sandbox saw, flags, and from a flag to the gauntlet."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.core.models import Alert, WorkUnit
from apps.feedback.models import GauntletEntry, TaskAsset
from apps.training.models import TrainingRun, Trajectory
from apps.training.selectors import watch_of
from apps.training.services.trajectories import canary_ids
from artifacts import ArtifactStore
from domain.contracts import FileChange, Flag, SandboxStep, Step, Verdict
from domain.contracts import Trajectory as Whole
from domain.contracts.trajectory_table import RolloutInfo
from tests.apps.training.conftest import Workers
from workers.trajectory_file import trajectory_file

WRITE = '{"tool": "write_file", "arguments": {"path": "conftest.py", "content": "x"}}'
SUBMIT = '{"tool": "submit", "arguments": {}}'
FAILED = Verdict(state="failed", score=0.0, reasons=("A hidden input fails.",))


def _turn(action: str, command: str, **sandbox: Any) -> Step:
    values = {"status": "ok", "exit_code": 0, "wall_s": 0.25, "user_s": 0.1, "maxrss_bytes": 5 << 20}
    return Step(
        observation=f"tool: seen before {command}",
        action=action,
        finish_reason="stop",
        sandbox=SandboxStep(command=command, **(values | sandbox)),
    )


def _turns(count: int) -> tuple[Step, ...]:
    change = FileChange(
        path="bank.py", change="modified", bytes=20, diff="--- a\n+++ b\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    )
    first = _turn(WRITE, "write_file conftest.py", changes=(change,), snapshot="ab" * 32, stdout="done")
    rest = [_turn(SUBMIT, f"submit {number}", status="nonzero", stderr="boom") for number in range(1, count)]
    return (first, *rest)


Finish = Callable[..., list[Trajectory]]


@pytest.fixture
def finish(run: TrainingRun, workers: Workers, store: ArtifactStore) -> Finish:
    """Finish the run's open rollout batch with these trajectories; returns their rows."""

    def finished(*made: dict[str, Any]) -> list[Trajectory]:
        unit = workers.first("rollout_batch")
        lines = list(store.iter_jsonl(unit.payload["tasks_digest"]))
        key = lines[unit.payload["indexes"][0]]["id"]
        wholes = [
            Whole(**({"task_id": key, "family": "invoice_fields", "sample": number, "reward": 1.0} | values))
            for number, values in enumerate(made)
        ]
        states = [whole.state for whole in wholes]
        info = RolloutInfo(policy_version=0, temperature=1.0)
        result = {
            "trajectories_digest": store.put(trajectory_file(wholes, info)),
            "policy_version": 0,
            "counts": {state: states.count(state) for state in set(states)},
        }
        workers.finish(unit, result)
        return list(Trajectory.objects.order_by("row"))

    return finished


def _flag(step: int = 0) -> Flag:
    reason = "What decides how tests or the interpreter start was written."
    return Flag(detector="edits test configuration", reason=reason, step=step, excerpt="conftest.py")


def test_a_turn_shows_command_output_changes_and_resources(page: Client, finish: Finish) -> None:
    (row,) = finish({"state": "failed", "steps": _turns(2)})

    html = page.get(row.get_absolute_url()).content.decode()

    for words in (
        "write_file conftest.py",
        "done",
        "boom",
        "ended with an error",
        "250 ms",
        "5.0 MiB at most",
    ):
        assert words in html
    assert "abababababababab" in html
    assert re.search(r'<tr class="new"><td>\+</td><td>x = 2</td>', html)
    assert re.search(r'<tr class="gone"><td>−</td><td>x = 1</td>', html)


def test_a_few_turns_are_shown_together_and_many_one_at_a_time(page: Client, finish: Finish) -> None:
    few, many = finish(
        {"state": "failed", "steps": _turns(3)},
        {"state": "failed", "steps": _turns(9), "flags": (_flag(4),)},
    )

    together = page.get(few.get_absolute_url()).content.decode()
    alone = page.get(many.get_absolute_url()).content.decode()
    everything = page.get(f"{many.get_absolute_url()}?turn=all").content.decode()

    assert together.count('class="panel turn-panel"') == 3
    assert alone.count('class="panel turn-panel"') == 1
    assert 'id="turn-5"' in alone  # where the flag is
    assert everything.count('class="panel turn-panel"') == 9


def test_keys_lead_to_the_next_and_the_previous_turn(page: Client, finish: Finish) -> None:
    (row,) = finish({"state": "failed", "steps": _turns(3)})

    html = page.get(f"{row.get_absolute_url()}?turn=2").content.decode()

    assert re.search(r'href="\?turn=3"[^>]*aria-keyshortcuts="ArrowRight j"', html)
    assert re.search(r'href="\?turn=1"[^>]*aria-keyshortcuts="ArrowLeft k"', html)
    assert html.count('class="panel turn-panel"') == 1


def test_flags_say_why_and_lead_to_their_turn(page: Client, finish: Finish) -> None:
    (row,) = finish({"state": "passed", "steps": _turns(2), "flags": (_flag(),), "hidden": FAILED})

    html = page.get(row.get_absolute_url()).content.decode()

    assert "Looks like gaming" in html
    assert "What decides how tests or the interpreter start was written." in html
    assert 'href="?turn=1"' in html
    assert "Hidden verifier" in html
    assert "A hidden input fails." in html


def test_a_picture_of_the_part_is_shown_and_none_that_a_program_printed(page: Client, finish: Finish) -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><rect/></svg>'
    made = _turn(SUBMIT, "render", detail=svg, picture="data:image/png;base64,iVBORw0KGgo=")
    forged = _turn(SUBMIT, "render", detail=svg, picture=f"data:image/svg+xml,{svg}")
    shown, hidden = finish({"state": "failed", "steps": (made,)}, {"state": "failed", "steps": (forged,)})

    html = page.get(shown.get_absolute_url()).content.decode()

    assert 'class="drawing" src="data:image/png;base64,iVBORw0KGgo="' in html
    assert "<svg xmlns" not in html
    assert 'class="drawing"' not in page.get(hidden.get_absolute_url()).content.decode()


def test_the_list_finds_what_is_flagged_and_what_the_hidden_verifier_failed(
    page: Client, finish: Finish
) -> None:
    finish(
        {"state": "passed", "steps": _turns(1), "flags": (_flag(),)},
        {"state": "passed", "steps": _turns(1), "hidden": FAILED},
        {"state": "failed", "steps": _turns(1), "reward": 0.0},
    )
    url = reverse("training:trajectories", args=[TrainingRun.objects.get().pk])

    counts = {
        look: page.get(url, {"look": look}).content.decode().count("<tr><td>")
        for look in ("", "flagged", "hidden_failed", "canary")
    }

    assert counts == {"": 3, "flagged": 1, "hidden_failed": 1, "canary": 0}
    assert "edits test configuration" in page.get(url, {"look": "flagged"}).content.decode()


def test_one_click_makes_a_suspicious_trajectory_an_entry_with_its_turns(
    page: Client, finish: Finish
) -> None:
    (row,) = finish({"state": "failed", "steps": _turns(2), "flags": (_flag(),), "reward": 0.0})
    assert "Keep as an exploit" in page.get(row.get_absolute_url()).content.decode()

    page.post(reverse("training:trajectory_exploit", args=[row.pk]))

    entry = GauntletEntry.objects.exclude(added_by="").get()
    assert (entry.turns, entry.answer, entry.row) == ([WRITE, SUBMIT], "", 2)
    assert WorkUnit.objects.filter(kind="verify_batch").count() == 1  # its gauntlet runs at once


def test_an_unflagged_failure_is_no_exploit(page: Client, finish: Finish) -> None:
    (row,) = finish({"state": "failed", "steps": _turns(2), "reward": 0.0})

    page.post(reverse("training:trajectory_exploit", args=[row.pk]))

    assert not GauntletEntry.objects.exists()


@pytest.fixture
def canaries(run: TrainingRun, store: ArtifactStore) -> None:
    """Every task of the run's dataset is impossible."""
    canary_ids.cache_clear()
    rows = list(store.iter_jsonl(run.dataset.tasks_digest))
    digest = store.put_jsonl([row | {"tags": {"canary": True}} for row in rows])
    type(run.dataset).objects.filter(pk=run.dataset_id).update(tasks_digest=digest)


def test_passing_impossible_tasks_raises_an_alarm(
    page: Client, canaries: None, run: TrainingRun, finish: Finish
) -> None:
    finish({"state": "passed", "steps": _turns(1)}, {"state": "failed", "steps": _turns(1), "reward": 0.0})

    alert = Alert.objects.get(key=f"training.canary:{run.pk}")
    assert (alert.level, alert.title) == ("fail", f"Impossible tasks are passed in “{run.name}”")
    assert "1 of 2 impossible tasks were passed (50 %; alarm at 2 %)" in alert.detail
    assert alert.detail in page.get(run.get_absolute_url()).content.decode()


def test_passes_that_the_hidden_verifier_fails_raise_an_alarm(run: TrainingRun, finish: Finish) -> None:
    finish({"state": "passed", "steps": _turns(1), "hidden": FAILED})

    assert "1 of 1 passes" in Alert.objects.get(key=f"training.hidden:{run.pk}").detail


def test_errors_raise_an_alarm_and_beyond_half_hold_the_run(run: TrainingRun, finish: Finish) -> None:
    error = {"state": "error", "error": "no sandbox", "reward": None}
    finish({"state": "passed", "steps": _turns(1)}, error, error)

    run.refresh_from_db()
    assert "2 of 3 episodes of the last step" in Alert.objects.get(key=f"training.errors:{run.pk}").detail
    assert (run.state, run.error[:19]) == ("paused", "Generating step 1: ")


def test_a_quiet_run_raises_no_alarm_and_counts_what_it_saw(run: TrainingRun, finish: Finish) -> None:
    passed = Verdict(state="passed", score=1.0)
    finish(
        {"state": "passed", "steps": _turns(1), "hidden": passed},
        {"state": "passed", "steps": _turns(1), "flags": (_flag(),)},
    )

    watch = watch_of(run)
    assert (watch.episodes, watch.flagged, watch.hidden, watch.hidden_failed) == (2, 1, 1, 0)
    assert not Alert.objects.exists()
    points = dict(run.metrics.filter(step=0).values_list("name", "value"))
    assert (points["flagged_share"], points["hidden_failed_share"], points["error_share"]) == (0.5, 0.0, 0.0)
    assert "canary_pass_share" not in points


def test_what_is_flagged_or_refuted_feeds_no_supervised_data(run: TrainingRun, finish: Finish) -> None:
    clean, *_ = finish(
        {"state": "passed", "steps": _turns(1)},
        {"state": "passed", "steps": _turns(1), "flags": (_flag(),)},
        {"state": "passed", "steps": _turns(1), "hidden": FAILED},
        {"state": "failed", "steps": _turns(1), "reward": 0.0},
    )

    assert list(Trajectory.objects.filter(run=run).clean()) == [clean]
    assert Trajectory.objects.flagged().count() == 1


def test_a_composite_task_shows_its_graph_with_what_passed(page: Client, finish: Finish) -> None:
    from domain.contracts import Check

    nodes = [
        {"name": "net", "kind": "numeric", "reference": 1},
        {"name": "total", "kind": "numeric", "reference": 2, "after": ["net"]},
    ]
    checks = (Check(name="net", score=1.0), Check(name="total", score=0.0, reason="wrong"))
    verdict = Verdict(state="failed", score=0.5, checks=checks)
    (row,) = finish({"state": "failed", "steps": _turns(1), "verdict": verdict, "reward": 0.1})
    asset = TaskAsset.objects.get(key=row.task_key)
    asset.task["verifier"] = {"kind": "graph", "params": {"nodes": nodes}}
    asset.save()

    html = page.get(row.get_absolute_url()).content.decode()

    assert "Task graph of 2 parts: net first; total after net" in html
    assert 'class="graph-pass"' in html
    assert 'class="graph-fail"' in html


def test_the_viewer_pins_its_queries(
    page: Client, finish: Finish, django_assert_max_num_queries: Any
) -> None:
    (row,) = finish({"state": "failed", "steps": _turns(9), "flags": (_flag(),)})

    with django_assert_max_num_queries(24):
        page.get(row.get_absolute_url())
