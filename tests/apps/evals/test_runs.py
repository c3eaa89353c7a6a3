"""Runs: what may be asked, batches that come twice, errors apart from failures, retry, cancel."""

import pytest

from apps.core.errors import Conflict, Refused
from apps.core.models import AuditEvent, Event, LineageEdge, Project, WorkUnit
from apps.core.permissions import system_actor
from apps.core.units import unit_report, units_pump
from apps.evals import selectors, services
from apps.evals.models import Result, Run
from apps.versions.models import Deployment, Evidence
from apps.versions.tokens import verify_run_token
from domain.contracts import Flag, RunEvalBatch, Verdict
from domain.summary import coverage_text, score_text
from tests.apps.evals.conftest import episode, finished_report, make_task, report_of

pytestmark = pytest.mark.django_db


def gone(unit):
    """A worker's report that no attempt can mend."""
    report = {"type": "UnitFailed", "unit_id": unit.pk, "attempt": unit.attempt}
    return {**report, "error": "engine gone", "retryable": False}


def units_of(run):
    return WorkUnit.objects.filter(owner=run.lineage_key).order_by("pk")


def test_a_run_is_planned_as_batches_with_audit_event_and_lineage(start, version):
    run = start(batch_size=3, sampling={"samples": 2, "temperature": 1.0, "seed": 5})

    messages = [RunEvalBatch.model_validate(unit.payload) for unit in units_of(run)]
    assert [message.indexes for message in messages] == [(0, 1, 2), (3,)]
    assert messages[0].sampling.seed == 5
    assert messages[0].target.model == "pocket"
    assert run.total == 8
    assert AuditEvent.objects.filter(action="run.start", object_id=run.pk).exists()
    assert Event.objects.filter(topic=run.lineage_key, kind="RunStarted").exists()
    assert LineageEdge.objects.filter(parent=version.lineage_key, child=run.lineage_key).exists()


def test_an_endpoint_is_asked_through_the_gateway_with_a_token_of_this_run(start, endpoint):
    run = start(deployment=endpoint)

    target = RunEvalBatch.model_validate(units_of(run).get().payload).target
    claims = verify_run_token(target.token)
    assert claims is not None
    assert (claims.deployment_id, claims.scope) == (endpoint.pk, run.lineage_key)
    assert target.model == "endpoint:frontier"
    assert "sk-1" not in target.model_dump_json()
    assert run.target_name == "frontier"


def test_a_run_needs_exactly_one_target(start, endpoint, version, suite_version, actor):
    for pair in ({"version": None}, {"version": version, "deployment": endpoint}):
        with pytest.raises(Refused, match="Choose one target"):
            services.run_start(**{"suite_version": suite_version, "by": actor, **pair})

    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"edition_kind": "turbo"}, "edition_unknown"),
        ({"sampling": {"temperature": 3}}, "sampling_invalid"),
        ({"sampling": {"samples": 0}}, "sampling_invalid"),
        ({"sampling": {"heat": 1}}, "sampling_invalid"),
    ],
)
def test_a_run_that_cannot_be_made_is_refused_and_leaves_nothing(start, changes, code):
    with pytest.raises(Refused) as caught:
        start(**changes)

    assert caught.value.code == code
    assert not Run.objects.exists()
    assert not WorkUnit.objects.exists()


def test_an_engine_is_not_an_endpoint(start):
    with pytest.raises(Refused, match="not an external endpoint"):
        start(deployment=Deployment.objects.engines().first())

    assert not Run.objects.exists()


def test_a_target_of_another_project_is_refused(suite_version, actor, endpoint):
    other = Project.objects.create(name="Other", slug="other")
    Deployment.objects.filter(pk=endpoint.pk).update(project=other)
    endpoint.refresh_from_db()

    with pytest.raises(Refused, match="belongs to another project"):
        services.run_start(suite_version=suite_version, deployment=endpoint, by=actor)


def test_a_run_ends_with_its_last_batch_and_says_so_once(start, finish):
    run = start(batch_size=1)

    finish(run, {"case-1": "failed"})

    run.refresh_from_db()
    assert run.state == Run.State.DONE
    assert selectors.run_counts(run) == {
        "passed": 3, "failed": 1, "error": 0, "unscored": 0, "cancelled": 0, "waiting": 0,
    }  # fmt: skip
    assert Event.objects.filter(topic=run.lineage_key, kind="RunFinished").count() == 1


def test_a_report_that_comes_twice_is_counted_once(start, store):
    run = start(batch_size=2)
    units_pump()
    unit = units_of(run).first()
    report = report_of(unit, {"case-0": "failed"}, store)

    first, second = unit_report(report=report), unit_report(report=report)

    assert (first, second) == (True, False)
    assert run.results.count() == 2
    assert Event.objects.filter(kind="EvalBatchFinished").count() == 1


def test_two_workers_that_took_one_batch_leave_one_result_per_sample(start, store):
    run = start()
    units_pump()
    lost = units_of(run).get()
    slow = report_of(lost, {}, store)
    WorkUnit.objects.filter(pk=lost.pk).update(state="sent", attempt=2)
    winner = {**report_of(lost, {"case-0": "failed"}, store), "attempt": 2}

    assert unit_report(report=winner)
    assert not unit_report(report=slow)

    assert run.results.count() == 4
    assert run.results.get(case__key="case-0").state == "failed"
    run.refresh_from_db()
    assert run.state == Run.State.DONE


def test_results_stored_again_replace_nothing_that_was_scored(start, store):
    run = start()
    units_pump()
    unit = units_of(run).get()
    services.eval_batch_finished(unit, report_of(unit, {"case-0": "failed"}, store)["result"])

    services.eval_batch_finished(unit, report_of(unit, {}, store)["result"])

    assert run.results.count() == 4
    assert run.results.get(case__key="case-0").state == "failed"


def test_a_sample_that_the_worker_forgot_is_an_error(start, store):
    run = start()
    units_pump()
    unit = units_of(run).get()

    unit_report(report=finished_report(unit, [episode("case-0"), episode("stranger")], store))

    run.refresh_from_db()
    assert run.state == Run.State.DONE
    assert selectors.run_counts(run)["error"] == 3
    assert run.results.get(case__key="case-3").error == "The worker sent no result for it."


def test_a_verdict_without_a_score_is_unscored_not_zero(start, store):
    run = start()
    units_pump()
    unit = units_of(run).get()

    unit_report(report=finished_report(unit, [episode("case-0", score=None)], store))

    row = run.results.get(case__key="case-0")
    assert (row.state, row.score) == ("unscored", None)


@pytest.mark.parametrize("said", ["a\0b", "a\ud800b"])
def test_an_answer_that_no_database_holds_is_stored_and_shown_and_breaks_no_batch(start, store, page, said):
    run = start()
    units_pump()
    unit = units_of(run).get()
    broken = episode("case-0", "failed").model_copy(
        update={
            "answer": said,
            "error": said,
            "served_model": said,
            "verdict": Verdict(state="failed", score=0.0, reasons=(said,)),
            "flags": (Flag(detector="early_exit", reason=said),),
        }
    )

    unit_report(report=finished_report(unit, [broken, episode("case-1")], store))

    row = run.results.get(case__key="case-0")
    assert (row.answer, row.error, row.served_model) == ("a\ufffdb",) * 3
    assert (row.verdict["reasons"], row.flags[0]["reason"]) == (["a\ufffdb"], "a\ufffdb")
    assert run.results.get(case__key="case-1").state == "passed"
    assert page.get(row.get_absolute_url()).status_code == 200


@pytest.mark.parametrize("said", ["a\0b", "a\ud800b"])
def test_an_error_that_no_database_holds_closes_its_unit(start, said):
    run = start()
    units_pump()
    unit = units_of(run).get()

    unit_report(report={**gone(unit), "error": said})

    unit.refresh_from_db()
    assert (unit.state, unit.error) == ("failed", "a\ufffdb")
    assert set(run.results.values_list("error", flat=True)) == {"a\ufffdb"}


def test_a_batch_that_failed_is_errors_not_failures(start, store):
    run = start(batch_size=2)
    units_pump()
    first, second = units_of(run)
    unit_report(report=report_of(first, {"case-0": "failed"}, store))

    unit_report(report=gone(second))

    run.refresh_from_db()
    summary = selectors.run_summary(run)
    assert (summary.passed, summary.failed, summary.error) == (1, 1, 2)
    assert summary.pass_rate == 0.5
    assert summary.coverage == 0.5
    assert not summary.decidable
    assert run.state == Run.State.DONE


def test_a_run_in_which_nothing_was_answered_failed(start):
    run = start()
    units_pump()
    unit = units_of(run).get()

    unit_report(report=gone(unit))

    run.refresh_from_db()
    assert run.state == Run.State.FAILED
    assert run.error == "Every sample ended in an error: engine gone"
    assert Evidence.objects.get(source=run.lineage_key).verdict == "no_data"


def test_a_rate_never_stands_without_its_errors_and_coverage(store, project, version, actor, finish):
    suite = services.suite_create(project=project, name="Hundred", by=actor)
    hundred = services.suite_version_create(suite=suite, tasks=[make_task(n) for n in range(100)], by=actor)
    run = services.run_start(suite_version=hundred, version=version, by=actor)

    finish(run, {f"case-{n}": "error" if n < 10 else "failed" if n < 20 else "passed" for n in range(100)})

    summary = selectors.run_summary(run)
    assert coverage_text(summary) == "80 of 90 scored answers passed, 10 errors, coverage 90 %"
    assert score_text(summary.pass_rate, summary.interval).startswith("89 % (81–94), n = 90")
    assert not summary.decidable
    evidence = Evidence.objects.get(source=run.lineage_key)
    assert evidence.sentence.endswith("80 of 90 scored answers passed, 10 errors, coverage 90 %.")
    assert evidence.verdict == "undecided"


def test_two_samples_of_one_case_are_both_readable_and_averaged(start, finish):
    run = start(sampling={"samples": 2, "temperature": 1.0})

    finish(run, {"case-0": ["passed", "failed"]})

    rows = run.results.filter(case__key="case-0").order_by("sample")
    assert [(row.sample, row.state, row.answer) for row in rows] == [
        (0, "passed", "answer 0"),
        (1, "failed", "answer 1"),
    ]
    assert selectors.run_summary(run).interval.clusters == 4
    assert selectors.run_summary(run).pass_rate == 7 / 8


def test_evidence_is_recorded_once_with_the_digest_of_the_suite(start, finish, suite_version, version):
    run = start(batch_size=1)

    finish(run)

    evidence = Evidence.objects.get(version=version, kind="suite")
    assert evidence.data["suite_digest"] == suite_version.digest
    assert evidence.data["n"] == 4
    assert evidence.edition_kind == "standard"
    assert evidence.verdict == "measured"


def test_an_endpoint_gets_no_evidence(start, finish, endpoint):
    finish(start(deployment=endpoint))

    assert not Evidence.objects.exists()


def test_a_retry_runs_the_errors_only_and_keeps_what_was_scored(start, finish, actor):
    run = start(batch_size=2)
    finish(run, {"case-1": "error", "case-2": "failed"})
    scored = dict(run.results.exclude(state="error").values_list("case__key", "pk"))

    count = services.run_retry_errors(run=run, by=actor)

    run.refresh_from_db()
    message = RunEvalBatch.model_validate(units_of(run).last().payload)
    assert count == 1
    assert message.indexes == (1,)
    assert run.state == Run.State.RUNNING
    assert selectors.run_progress(run) == {"done": 3, "total": 4}
    finish(run)
    run.refresh_from_db()
    assert run.state == Run.State.DONE
    assert selectors.run_counts(run)["error"] == 0
    assert dict(run.results.filter(case__key__in=scored).values_list("case__key", "pk")) == scored
    assert run.results.get(case__key="case-2").state == "failed"
    assert run.results.get(case__key="case-1").attempt == 2
    assert Evidence.objects.filter(source=run.lineage_key).count() == 1


def test_a_retry_does_not_change_a_scored_sample_of_a_case_with_an_error(start, finish, actor):
    run = start(sampling={"samples": 2, "temperature": 1.0})
    finish(run, {"case-0": ["failed", "error"]})

    services.run_retry_errors(run=run, by=actor)
    finish(run)

    rows = run.results.filter(case__key="case-0").order_by("sample")
    assert [row.state for row in rows] == ["failed", "passed"]


def test_with_nothing_left_to_generate_nothing_is_planned(start, finish, actor):
    run = start()
    finish(run, {"case-1": "failed", "case-2": "unscored"})
    before = WorkUnit.objects.count()

    with pytest.raises(Conflict, match="no errors to retry"):
        services.run_retry_errors(run=run, by=actor)

    run.refresh_from_db()
    assert run.state == Run.State.DONE
    assert WorkUnit.objects.count() == before


def test_a_running_run_is_not_retried(start, actor):
    with pytest.raises(Conflict, match="Wait until the run has ended"):
        services.run_retry_errors(run=start(), by=actor)


def test_a_cancelled_run_stays_as_it_is(start, actor):
    run = start()
    services.run_cancel(run=run, by=actor)

    with pytest.raises(Conflict, match="Start a new one"):
        services.run_retry_errors(run=run, by=actor)


def test_cancelling_keeps_results_and_counts_the_rest_as_cancelled(start, store, actor):
    run = start(batch_size=2)
    units_pump()
    first, second = units_of(run)
    unit_report(report=report_of(first, {}, store))

    services.run_cancel(run=run, by=actor)

    assert not unit_report(report=report_of(second, {}, store))
    run.refresh_from_db()
    summary = selectors.run_summary(run)
    assert run.state == Run.State.CANCELLED
    assert (summary.passed, summary.cancelled, summary.coverage) == (2, 2, 0.5)
    assert not units_of(run).open().exists()
    assert AuditEvent.objects.filter(action="run.cancel").exists()


def test_a_run_that_has_ended_is_not_cancelled(start, finish, actor):
    run = start()
    finish(run)

    with pytest.raises(Conflict, match="is done and cannot become cancelled"):
        services.run_cancel(run=run, by=actor)


def test_a_running_run_covers_only_what_has_been_scored(start, store):
    run = start(batch_size=1)
    units_pump()
    unit_report(report=report_of(units_of(run).first(), {}, store))

    summary = selectors.run_summary(run)

    assert (summary.scored, summary.total, summary.coverage) == (1, 4, 0.25)
    assert not summary.decidable


def test_progress_counts_what_a_running_batch_has_done(start):
    run = start(batch_size=2)
    units_pump()
    unit = units_of(run).first()
    unit_report(report={"type": "UnitStarted", "unit_id": unit.pk, "attempt": 1, "worker": "w"})
    unit_report(report={"type": "UnitHeartbeat", "unit_id": unit.pk, "attempt": 1, "progress": {"done": 1}})

    assert selectors.run_progress(run) == {"done": 1, "total": 4}


def test_a_score_of_zero_is_a_score(start, finish):
    run = start()
    finish(run, {f"case-{n}": "failed" for n in range(4)})

    assert selectors.run_summary(run).pass_rate == 0.0
    assert set(Result.objects.values_list("score", flat=True)) == {0.0}


def test_a_run_larger_than_the_limit_is_refused(start, monkeypatch):
    monkeypatch.setattr("apps.evals.services.runs.MAX_SAMPLES", 3)

    with pytest.raises(Refused, match="at most 3"):
        start()


def test_the_system_may_start_a_run(suite_version, version, project):
    run = services.run_start(suite_version=suite_version, version=version, by=system_actor(project, "gate"))

    assert run.created_by == "gate"
