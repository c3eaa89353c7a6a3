"""Failed results on their way to the failures inbox."""

import pytest

from apps.core.crypto import decrypt_json
from apps.core.errors import Conflict, Refused
from apps.core.models import AuditEvent
from apps.evals import services
from apps.feedback.models import Capture
from tests.apps.evals.conftest import make_task

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
