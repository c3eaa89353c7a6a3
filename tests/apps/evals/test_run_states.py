"""What may be asked of a run, and that a pause, a lost worker or two requests at once lose nothing."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.core.errors import Conflict, Refused
from apps.core.models import AuditEvent, Event, WorkUnit
from apps.core.units import HELD, unit_report, units_pump, units_reap
from apps.evals import selectors, services
from apps.evals.models import Run
from apps.versions import tokens
from domain.contracts import RunEvalBatch
from domain.lifecycle import RUN_ACTIONS, may_act
from tests.apps.evals.conftest import report_of

pytestmark = pytest.mark.django_db

SERVICES = {
    "pause": services.run_pause,
    "resume": services.run_resume,
    "cancel": services.run_cancel,
    "retry_errors": services.run_retry_errors,
}


def units_of(run):
    return WorkUnit.objects.filter(owner=run.lineage_key).order_by("pk")


REFUSED = [
    (action, state)
    for action in sorted(RUN_ACTIONS)
    for state in Run.State.values
    if not may_act(action, state)
]


@pytest.mark.parametrize(("action", "state"), REFUSED)
def test_every_action_in_a_state_that_does_not_allow_it_is_refused_and_changes_nothing(
    start, actor, action, state
):
    run = start()
    Run.objects.filter(pk=run.pk).update(state=state, running_since=None)

    with pytest.raises(Conflict):
        SERVICES[action](run=run, by=actor)

    run.refresh_from_db()
    assert run.state == state
    assert not AuditEvent.objects.filter(action=f"run.{action}").exists()


def test_a_paused_run_sends_nothing_more_and_keeps_what_was_sent(start, store, actor):
    run = start(batch_size=1)
    units_pump()
    sent = list(units_of(run).filter(state="sent"))

    services.run_pause(run=run, by=actor)
    units_pump()

    assert units_of(run).filter(state="pending", not_before=HELD).count() == 4 - len(sent)
    assert units_of(run).filter(state="sent").count() == len(sent)
    for unit in sent:
        assert unit_report(report=report_of(unit, {}, store))
    run.refresh_from_db()
    assert run.state == Run.State.PAUSED
    assert selectors.run_counts(run)["passed"] == len(sent)
    assert AuditEvent.objects.filter(action="run.pause").exists()
    assert Event.objects.filter(topic=run.lineage_key, kind="RunPaused").exists()


def test_a_resumed_run_asks_only_what_is_left(start, store, finish, actor):
    run = start(batch_size=1)
    units_pump()
    first = units_of(run).filter(state="sent").first()
    unit_report(report=report_of(first, {"case-0": "failed"}, store))
    services.run_pause(run=run, by=actor)

    services.run_resume(run=run, by=actor)
    finish(run)

    run.refresh_from_db()
    assert run.state == Run.State.DONE
    assert units_of(run).count() == 4
    assert run.results.get(case__key="case-0").state == "failed"
    assert selectors.run_counts(run)["passed"] == 3


def test_a_worker_lost_while_paused_waits_for_the_resumption(start, finish, actor):
    run = start(batch_size=4)
    units_pump()
    unit = units_of(run).get()
    services.run_pause(run=run, by=actor)
    WorkUnit.objects.filter(pk=unit.pk).update(
        state="running", heartbeat_at=timezone.now() - timedelta(minutes=5)
    )

    assert units_reap() == 1
    assert units_pump() == 0

    unit.refresh_from_db()
    assert (unit.state, unit.not_before) == ("pending", HELD)
    services.run_resume(run=run, by=actor)
    finish(run)
    run.refresh_from_db()
    assert run.state == Run.State.DONE
    assert run.results.count() == 4


def test_the_last_batch_of_a_paused_run_ends_it(start, store, actor):
    run = start()
    units_pump()
    services.run_pause(run=run, by=actor)

    unit_report(report=report_of(units_of(run).get(), {}, store))

    run.refresh_from_db()
    assert run.state == Run.State.DONE
    assert run.running_since is None


def test_a_paused_run_is_cancelled_with_what_it_has(start, store, actor):
    run = start(batch_size=1)
    units_pump()
    unit_report(report=report_of(units_of(run).filter(state="sent").first(), {}, store))
    services.run_pause(run=run, by=actor)

    services.run_cancel(run=run, by=actor)

    run.refresh_from_db()
    summary = selectors.run_summary(run)
    assert (run.state, summary.passed, summary.cancelled) == ("cancelled", 1, 3)
    assert not units_of(run).open().exists()


def test_time_in_a_pause_is_no_time_of_the_run(start, actor):
    run = start(batch_size=1)
    Run.objects.filter(pk=run.pk).update(running_since=timezone.now() - timedelta(seconds=100))
    services.run_pause(run=run, by=actor)
    run.refresh_from_db()

    pace = selectors.run_pace(run, 1)

    assert 100 <= pace.elapsed_s < 160
    assert (pace.per_s, pace.rest_s) == (None, None)


def test_the_pace_counts_from_when_the_run_last_went_on(start, finish, actor):
    run = start(batch_size=1)
    finish(run, {"case-0": "error"})
    services.run_retry_errors(run=run, by=actor)
    run.refresh_from_db()
    run.running_since = timezone.now() - timedelta(seconds=10)

    none_yet = selectors.run_pace(run, run.done_before)
    half = selectors.run_pace(run, run.done_before + 1)

    assert run.done_before == 3
    assert none_yet.per_s is None
    assert half.per_s == pytest.approx(0.1, rel=0.1)
    assert half.rest_s == pytest.approx(0, abs=0.01)


def test_a_batch_is_sent_with_a_token_of_its_moment(
    start, endpoint, sent_messages, monkeypatch, django_capture_on_commit_callbacks
):
    run = start(deployment=endpoint)
    planned = RunEvalBatch.model_validate(units_of(run).get().payload).target.token
    monkeypatch.setattr(tokens.signing.time, "time", lambda: 4_000_000_000.0)

    with django_capture_on_commit_callbacks(execute=True):
        units_pump()

    (sent,) = [args[0] for task, args, _ in sent_messages if task == "workers.run_unit"]
    told = RunEvalBatch.model_validate(sent["payload"]).target.token
    assert tokens.verify_run_token(planned) is None
    assert tokens.verify_run_token(told).scope == run.lineage_key


def test_an_endpoint_that_went_away_keeps_no_other_run_from_being_sent(start, endpoint):
    gone, other = start(deployment=endpoint), start()
    type(endpoint).objects.filter(pk=endpoint.pk).update(retired_at=timezone.now())

    assert units_pump() == 2

    assert units_of(gone).get().state == units_of(other).get().state == "sent"


@pytest.mark.parametrize("changes", [{"batch_size": 0}, {"batch_size": 257}, {"concurrency": 0}])
def test_a_setting_out_of_its_range_is_refused_with_the_range(start, changes):
    with pytest.raises(Refused, match="must lie between 1 and"):
        start(**changes)


def test_settings_reach_the_workers(start):
    run = start(sampling={"max_tokens": 7, "top_p": 0.9}, concurrency=3, cache=True)

    message = RunEvalBatch.model_validate(units_of(run).get().payload)
    assert (message.concurrency, message.cache, message.journal) == (3, True, run.lineage_key)
    assert (message.sampling.max_tokens, message.sampling.top_p) == (7, 0.9)


def test_an_endpoint_is_not_asked_more_at_once_than_it_takes(start, endpoint):
    type(endpoint).objects.filter(pk=endpoint.pk).update(max_concurrency=2)
    endpoint.refresh_from_db()

    run = start(deployment=endpoint, concurrency=50)

    assert run.concurrency == 2


def test_pause_and_resume_are_plain_forms_and_shown_where_they_may_be_done(start, page):
    run = start()
    assert b"/pause/" in page.get(run.get_absolute_url()).content

    page.post(f"{run.get_absolute_url()}pause/")

    paused = page.get(run.get_absolute_url()).content
    run.refresh_from_db()
    assert run.state == Run.State.PAUSED
    assert b"/resume/" in paused
    assert b"/pause/" not in paused
    page.post(f"{run.get_absolute_url()}resume/")
    run.refresh_from_db()
    assert run.state == Run.State.RUNNING


def test_pause_and_resume_over_the_api(start, api):
    run = start()

    paused = api.post(f"/api/v1/runs/{run.pk}/pause")
    again = api.post(f"/api/v1/runs/{run.pk}/pause")
    resumed = api.post(f"/api/v1/runs/{run.pk}/resume")

    assert (paused.status_code, paused.json()["state"]) == (200, "paused")
    assert again.status_code == 409
    assert "paused" in again.json()["error"]["message"]
    assert resumed.json()["state"] == "running"


@pytest.mark.parametrize("action", ["pause", "resume", "cancel", "retry-errors"])
def test_who_may_not_change_runs_may_do_none_of_it(start, client, viewer, action):
    run = start()
    client.force_login(viewer.user)

    answer = client.post(f"{run.get_absolute_url()}{action}/")

    run.refresh_from_db()
    assert answer.status_code == 403
    assert run.state == Run.State.RUNNING


def test_a_run_of_another_project_is_not_found(start, api, project):
    from apps.core.models import Project

    run = start()
    Run.objects.filter(pk=run.pk).update(project=Project.objects.create(name="Other", slug="other"))

    assert api.post(f"/api/v1/runs/{run.pk}/pause").status_code == 404
    assert api.get(f"/api/v1/runs/{run.pk}/slices").status_code == 404


@pytest.mark.parametrize("action", ["pause", "resume", "cancel"])
def test_every_action_locks_the_units_before_the_run_as_a_report_does(start, actor, action):
    """Two orders would wait for each other, and the database would end one of them."""
    run = start()
    if action == "resume":
        services.run_pause(run=run, by=actor)

    with CaptureQueriesContext(connection) as queries:
        getattr(services, f"run_{action}")(run=run, by=actor)

    asked = [query["sql"] for query in queries if query["sql"].startswith("SELECT")]
    assert 'FROM "core_workunit"' in asked[0]
    assert 'FROM "evals_run"' in asked[1]
