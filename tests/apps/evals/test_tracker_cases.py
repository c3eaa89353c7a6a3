"""Faults that other tools had in the numbers of a run, each as a test of its own."""

import math

import pytest

from apps.core.errors import Conflict
from apps.core.models import WorkUnit
from apps.core.units import unit_report, units_pump
from apps.evals import selectors, services
from apps.evals.models import Result, Run
from apps.versions.models import Evidence
from domain.contracts import VerifierSpec
from domain.intervals import rate_se
from domain.summary import coverage_text, score_text
from domain.verifiers import InvalidVerifier, check_spec, verify
from tests.apps.evals.conftest import episode, finished_report, make_task, report_of, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def suite_of(store, project, actor):
    def make(tasks):
        suite = services.suite_create(project=project, name=f"Suite of {len(tasks)}", by=actor)
        return services.suite_version_create(suite=suite, tasks=tasks, by=actor)

    return make


def one_batch(run):
    units_pump()
    return WorkUnit.objects.get(owner=run.lineage_key)


def test_inspect_ai_3707_a_rate_over_lost_samples_says_how_many_were_scored(start, finish, suite_of, page):
    run = start(suite_version=suite_of([make_task(n) for n in range(100)]), batch_size=100)

    finish(run, {f"case-{n}": "error" if n < 10 else "failed" if n < 20 else "passed" for n in range(100)})

    summary = selectors.run_summary(run)
    said = "80 of 90 scored answers passed, 10 errors, coverage 90 %"
    assert coverage_text(summary) == said
    assert score_text(summary.pass_rate, summary.interval, summary.scored) == "89 % (81–94), n = 90"
    shown = text(page.get(run.get_absolute_url()))
    assert said in shown
    assert "no gate can be decided on this run" in shown
    assert Evidence.objects.get(source=run.lineage_key).verdict == "undecided"


def test_opik_8134_answers_whose_judge_crashed_are_told_beside_the_score(start, store, suite_of, api, page):
    run = start(suite_version=suite_of([make_task(n) for n in range(10)]), batch_size=10)
    unit = one_batch(run)
    crashed = {"state": "error", "verdict": None, "score": None, "error": "judge: no reply"}
    rows = [episode(f"case-{n}", completion_tokens=4) for n in range(10)]
    rows = [row.model_copy(update=crashed) if n < 5 else row for n, row in enumerate(rows)]

    unit_report(report=finished_report(unit, rows, store))

    told = api.get(f"/api/v1/runs/{run.pk}").json()
    assert (told["figures"]["judged"], told["figures"]["answered"]) == (5, 10)
    assert told["score"]["coverage"] == 0.5
    assert "5 of 10 answers (50 %)" in text(page.get(run.get_absolute_url()))
    assert not selectors.run_summary(run).decidable


def test_lm_eval_2140_with_everything_answered_a_retry_generates_nothing(start, finish, actor):
    run = start()
    finish(run, {"case-1": "failed", "case-2": "unscored"})
    before = WorkUnit.objects.count()

    with pytest.raises(Conflict, match="no errors to retry"):
        services.run_retry_errors(run=run, by=actor)

    assert WorkUnit.objects.count() == before
    run.refresh_from_db()
    assert run.state == Run.State.DONE


def test_lm_eval_3882_the_error_of_an_unweighted_mean_of_families(start, finish, suite_of):
    sizes = {"small": 8, "large": 40}
    tasks = [
        make_task(n + (0 if family == "small" else 8), family=family)
        for family, size in sizes.items()
        for n in range(size)
    ]
    run = start(suite_version=suite_of(tasks), batch_size=64)

    finish(run, {f"case-{n}": "failed" for n in [0, 1, *range(8, 38)]})

    rows = selectors.family_rows(run)
    mean = selectors.families_mean(rows)
    errors = [rate_se(row.tally.moments) for row in rows]
    assert mean.mean == pytest.approx((6 / 8 + 10 / 40) / 2)
    assert mean.se == pytest.approx(math.sqrt(sum(error**2 for error in errors)) / 2)
    assert mean.mean != pytest.approx(selectors.run_summary(run).pass_rate)


def test_deepeval_2242_tools_expected_and_none_called_is_no_success():
    call = make_task(
        1,
        verifier=VerifierSpec(kind="tool_call"),
        reference={"name": "refund", "arguments": {"amount": 5}},
    )
    trace = make_task(
        1, verifier=VerifierSpec(kind="trace"), reference={"required": [{"name": "refund", "arguments": {}}]}
    )

    for answer in ("I refunded it.", "", "[]", '{"tool_calls": []}'):
        assert verify(call, answer, {}).score == 0.0
        assert verify(trace, answer, {"trace": {"calls": []}}).score == 0.0


@pytest.mark.parametrize(
    ("kind", "reference"),
    [("tool_call", None), ("tool_call", {}), ("trace", {}), ("trace", {"required": []})],
)
def test_deepeval_2242_where_no_tool_is_expected_the_verifier_does_not_apply(kind, reference):
    """Refused before anything runs, so that no case counts as 1.0 because nothing was wanted."""
    with pytest.raises(InvalidVerifier):
        check_spec(VerifierSpec(kind=kind), reference)


def test_deepeval_2242_without_a_trace_nothing_is_decided():
    task = make_task(
        1, verifier=VerifierSpec(kind="trace"), reference={"required": [{"name": "refund", "arguments": {}}]}
    )

    verdict = verify(task, "I refunded it.", {})

    assert (verdict.state, verdict.score) == ("unscored", None)


def test_langfuse_16492_two_workers_that_took_one_batch_count_once(start, store):
    run = start()
    unit = one_batch(run)
    slow = report_of(unit, {}, store, completion_tokens=5)
    WorkUnit.objects.filter(pk=unit.pk).update(state="sent", attempt=2)
    winner = {**report_of(unit, {"case-0": "failed"}, store, completion_tokens=5), "attempt": 2}

    said = [unit_report(report=report) for report in (winner, slow, winner)]

    assert said == [True, False, False]
    summary, figures = selectors.run_summary(run), selectors.run_figures(run)
    assert (summary.passed, summary.failed, summary.total) == (3, 1, 4)
    assert (figures.completion_tokens, figures.attempts) == (20, 4)
    assert Result.objects.filter(run=run).count() == 4


def test_langfuse_13823_a_report_that_is_heard_twice_adds_nothing(start, store):
    run = start()
    unit = one_batch(run)
    report = report_of(unit, {"case-0": "error"}, store, completion_tokens=5)
    services.eval_batch_finished(unit, report["result"])
    before = selectors.run_figures(run)

    services.eval_batch_finished(unit, report["result"])

    assert selectors.run_figures(run) == before
    assert selectors.run_summary(run).total == 4


def test_langfuse_9319_two_samples_of_one_case_are_readable_and_averaged(start, finish, page):
    run = start(sampling={"samples": 2, "temperature": 1.0})

    finish(run, {"case-0": ["passed", "failed"]})

    first, second = run.results.filter(case__key="case-0").order_by("sample")
    assert (first.state, first.answer, second.state, second.answer) == (
        "passed", "answer 0", "failed", "answer 1",
    )  # fmt: skip
    assert "sample 1" in text(page.get(first.get_absolute_url()))
    rows = {row.k: row for row in selectors.run_pass_at(run)}
    assert rows[1].any_rate == 7 / 8  # a case counts by the mean of its samples
    assert (rows[2].any_rate, rows[2].all_rate, rows[2].cases) == (1.0, 3 / 4, 4)


def test_phoenix_7965_a_score_of_zero_is_shown_as_zero(start, finish, page, api):
    run = start()
    finish(run, {f"case-{n}": "failed" for n in range(4)})

    row = run.results.first()

    assert "score 0<" in page.get(row.get_absolute_url()).content.decode()
    assert '<td class="num">0</td>' in page.get(run.get_absolute_url()).content.decode()
    assert api.get(f"/api/v1/runs/{run.pk}/results").json()[0]["score"] == 0.0
    told = api.get(f"/api/v1/runs/{run.pk}").json()
    assert (told["score"]["pass_rate"], told["figures"]["score_mean"]) == (0.0, 0.0)


def test_mlflow_25821_a_score_carries_the_digest_of_its_suite_version(start, finish, suite_of, version):
    runs = [start(suite_version=suite_of([make_task(n) for n in range(size)])) for size in (3, 4)]

    for run in runs:
        finish(run)

    for run in runs:
        evidence = Evidence.objects.get(source=run.lineage_key)
        assert evidence.data["suite_digest"] == run.suite_version.digest
    assert runs[0].suite_version.digest != runs[1].suite_version.digest
