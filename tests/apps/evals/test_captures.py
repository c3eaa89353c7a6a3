"""Failed results on their way to the failures inbox."""

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.core.crypto import decrypt_json
from apps.core.errors import Conflict, Refused
from apps.core.models import AuditEvent, WorkUnit
from apps.core.units import unit_cancel, units_pump, units_reap
from apps.core.web_units import unit_run
from apps.evals import services
from apps.feedback.models import Capture
from tests.apps.evals.conftest import make_task, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(start, finish):
    """One failure, one error, one unscored, one pass."""
    run = start()
    finish(run, {"case-0": "failed", "case-1": "error", "case-2": "unscored"})
    run.refresh_from_db()
    return run


def test_failed_results_are_captured_and_nothing_else(run, actor, version):
    assert services.results_capture(run=run, by=actor) == 1

    capture = Capture.objects.get()
    result = run.results.get(state="failed")
    content = decrypt_json(capture.raw)
    assert capture.external_id == f"evals.result:{result.pk}"
    assert (capture.source, capture.family, capture.version, capture.failed) == (
        "eval",
        "sums",
        version,
        True,
    )
    assert content["messages"] == [{"role": "user", "content": "What is 0 plus 1?"}]
    assert content["answer"] == "answer 0"
    assert content["verifier"]["kind"] == "numeric"
    assert content["reference"] == 1
    assert result.captured_at is not None
    assert AuditEvent.objects.get(action="run.capture_failures").detail == {
        "captured": 1,
        "refused": 0,
        "apart": 0,
    }


def test_capturing_again_makes_nothing_twice(run, actor):
    services.results_capture(run=run, by=actor)

    assert services.results_capture(run=run, by=actor) == 0

    assert Capture.objects.count() == 1


def test_capturing_after_the_mark_was_lost_finds_the_capture(run, actor):
    services.results_capture(run=run, by=actor)
    run.results.update(captured_at=None)

    services.results_capture(run=run, by=actor)

    assert Capture.objects.count() == 1
    assert run.results.get(state="failed").captured_at is not None


def test_the_source_of_a_case_is_the_cluster_of_its_capture(start, finish, project, actor, store):
    suite = services.suite_create(project=project, name="Sourced", by=actor)
    version = services.suite_version_create(suite=suite, tasks=[make_task(1, source="vendor-3")], by=actor)
    run = start(suite_version=version)
    finish(run, {"case-1": "failed"})
    run.refresh_from_db()

    services.results_capture(run=run, by=actor)

    assert Capture.objects.get().cluster == "vendor-3"


def test_a_running_run_is_not_captured(start, actor):
    with pytest.raises(Conflict, match="Wait until the run has ended"):
        services.results_capture(run=start(), by=actor)


def test_a_run_without_failures_says_so(start, finish, actor):
    run = start()
    finish(run)
    run.refresh_from_db()

    with pytest.raises(Conflict, match="no failed results"):
        services.results_capture(run=run, by=actor)


def test_what_cannot_be_captured_is_refused_and_stays_uncaptured(start, finish, project, actor, store):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    task = make_task(1, messages=({"role": "user", "content": [image]},))
    suite = services.suite_create(project=project, name="Pictures", by=actor)
    version = services.suite_version_create(suite=suite, tasks=[task], by=actor)
    run = start(suite_version=version)
    finish(run, {"case-1": "failed"})
    run.refresh_from_db()

    with pytest.raises(Refused, match="hold images"):
        services.results_capture(run=run, by=actor)

    assert run.results.get().captured_at is None
    assert not Capture.objects.exists()


# Many


@pytest.fixture
def many(start, finish, monkeypatch):
    """More failures than a request captures."""
    monkeypatch.setattr("apps.evals.services.captures.AT_ONCE", 2)
    monkeypatch.setattr("apps.evals.services.captures._CHUNK", 2)
    run = start()
    finish(run, {f"case-{n}": "failed" for n in range(3)})
    run.refresh_from_db()
    return run


def taken():
    """The message of the unit that waits."""
    units_pump()
    unit = WorkUnit.objects.get(state="sent")
    return {"unit_id": unit.pk, "attempt": unit.attempt, "kind": unit.kind, "payload": unit.payload}


def test_many_failures_are_captured_by_a_worker_once(many, actor):
    assert services.results_capture(run=many, by=actor) is None
    assert services.results_capture(run=many, by=actor) is None  # asked twice
    assert not Capture.objects.exists()
    message = taken()

    unit_run(message=message)
    unit_run(message=message)

    assert Capture.objects.count() == 3
    event = AuditEvent.objects.get(action="run.capture_failures")
    assert (event.actor, event.detail["captured"]) == ("ada", 3)
    assert services.results_capture(run=many, by=actor) == 0


def test_a_killed_worker_s_captures_stay_and_the_next_goes_on(many, actor, monkeypatch):
    services.results_capture(run=many, by=actor)

    class Killed(BaseException):
        pass

    def count(done):
        if done == 2:
            raise Killed

    with monkeypatch.context() as dying:
        dying.setattr("apps.core.web_units.UnitProgress.__call__", lambda self, done, total: count(done))
        with pytest.raises(Killed):
            unit_run(message=taken())
    assert Capture.objects.count() == 2
    WorkUnit.objects.filter(state="running").update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    units_reap()
    unit_run(message=taken())

    assert Capture.objects.count() == 3
    assert many.results.filter(captured_at=None, state="failed").count() == 0


def test_the_run_s_page_shows_how_far_it_is_and_can_stop_it(many, actor, page):
    answer = page.post(f"/evals/runs/{many.pk}/capture-failures/")
    assert answer.url == many.get_absolute_url()
    unit = WorkUnit.objects.get(kind="results_capture")
    WorkUnit.objects.filter(pk=unit.pk).update(progress={"done": 1, "total": 3})

    shown = text(page.get(many.get_absolute_url()))
    assert "1 of 3 failed results" in shown
    assert f'data-live="{many.lineage_key}"' in shown
    assert f"/settings/work/{unit.pk}/cancel/" in shown
    assert "capture-failures" not in shown

    page.post(f"/settings/work/{unit.pk}/cancel/")
    assert "capture-failures" in text(page.get(many.get_absolute_url()))
    assert services.results_capture(run=many, by=actor) is None  # and it can be asked for again
    unit_run(message=taken())
    assert Capture.objects.count() == 3


def test_what_a_worker_cannot_capture_is_said_on_the_page(many, actor, page):
    services.results_capture(run=many, by=actor)
    unit_cancel(unit=WorkUnit.objects.get(kind="results_capture"), by=actor)
    WorkUnit.objects.filter(kind="results_capture").update(state="failed", error="They are too large.")

    assert "Not all failures were sent to Failures: They are too large." in text(
        page.get(many.get_absolute_url())
    )


def test_a_run_s_retry_does_not_wait_for_its_captures(many, actor):
    services.results_capture(run=many, by=actor)

    assert not WorkUnit.objects.filter(owner=many.lineage_key).open().exists()


def test_many_failures_are_accepted_over_rest_and_asked_after(many, api):
    place = f"/api/v1/runs/{many.pk}/capture-failures"
    assert api.get(place).status_code == 404

    accepted = api.post(place)

    assert (accepted.status_code, accepted.headers["Location"]) == (202, place)
    assert accepted.json()["state"] == "pending"
    unit_run(message=taken())
    assert api.get(place).json()["state"] == "done"
    assert api.post(place).json() == {"captured": 0}
