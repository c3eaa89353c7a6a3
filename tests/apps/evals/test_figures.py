"""Sums beside the results: batch by batch they are what the results add up to, whatever happened."""

from decimal import Decimal

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.core.models import WorkUnit
from apps.core.units import unit_report, units_pump
from apps.evals import selectors, services
from apps.evals.models import Result, Run, RunCluster, RunSlice
from apps.evals.services.figures import runs_refigure_missing
from apps.versions.models import Deployment
from domain.contracts import Flag, RunEvalBatch
from domain.summary import summarize
from tests.apps.evals.conftest import episode, finished_report, make_task

pytestmark = pytest.mark.django_db
STATES = ("passed", "failed", "error", "unscored")


@pytest.fixture
def mixed(store, project, actor):
    """Six cases: two families, a tag with two values, two shared sources and two cases alone."""
    suite = services.suite_create(project=project, name="Mixed", by=actor)
    tasks = [
        make_task(
            n,
            family=f"family-{n % 2}",
            source="" if n < 2 else f"source-{n % 2}",
            tags={"length": 128 * (n % 2), "unique": [n]},
        )
        for n in range(6)
    ]
    return services.suite_version_create(suite=suite, tasks=tasks, by=actor)


@pytest.fixture
def begin(mixed, version, actor):
    def make(**changes):
        fields = {
            "suite_version": mixed,
            "version": version,
            "by": actor,
            "batch_size": 2,
            "sampling": {"samples": 2, "temperature": 1.0},
        }
        return services.run_start(**{**fields, **changes})

    return make


def sums_of(run):
    """Everything that is kept beside the results."""
    slices = RunSlice.objects.filter(run=run).values()
    clusters = RunCluster.objects.filter(run=run).values("source", "parts")
    return (
        {
            (row.pop("dimension"), row.pop("value")): row
            for row in ({k: v for k, v in each.items() if k not in ("id", "run_id")} for each in slices)
            if row["attempts"] or not row["cases"]
        },
        {row["source"]: row["parts"] for row in clusters},
    )


def rows_for(unit, states, **fields):
    """What a worker says of a unit: ``states`` are taken in turn, None for a sample it says nothing of."""
    message = RunEvalBatch.model_validate(unit.payload)
    told = iter(states * 99)
    rows = [
        (f"case-{index}", sample, next(told))
        for index in message.indexes
        for sample in range(message.sampling.samples)
    ]
    return [
        episode(case, state, sample, completion_tokens=3, prompt_tokens=7, latency_ms=20.0 + sample, **fields)
        for case, sample, state in rows
        if state is not None
    ]


steps = st.lists(
    st.tuples(
        st.sampled_from(["report", "report", "again", "lost", "fail", "retry", "pause", "resume"]),
        st.integers(0, 5),
        st.lists(st.sampled_from([*STATES, "passed", "error", None]), min_size=1, max_size=5),
    ),
    max_size=14,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(told=steps)
def test_sums_kept_batch_by_batch_are_those_of_the_results(begin, store, actor, told):
    with transaction.atomic():
        run = begin()
        for step, number, states in told:
            _play(run, step, number, states, store, actor)

        kept = sums_of(run)
        summary = selectors.run_summary(Run.objects.get(pk=run.pk))
        services.run_refigure(run=run)

        assert sums_of(run) == kept
        rows = list(run.results.values_list("state", "case__source", "case_id"))
        brute = summarize([row[0] for row in rows], [row[1] or row[2] for row in rows])
        assert (summary.passed, summary.failed, summary.error) == (brute.passed, brute.failed, brute.error)
        assert summary.interval == brute.interval
        transaction.set_rollback(True)


def _play(run, step, number, states, store, actor):
    """One thing that may happen to a run; what cannot happen now is skipped by the run itself."""
    run.refresh_from_db()
    units_pump()
    units = list(WorkUnit.objects.filter(owner=run.lineage_key).order_by("pk"))
    unit = units[number % len(units)]
    if step == "report":
        unit_report(report=finished_report(unit, rows_for(unit, states), store))
    elif step == "again":
        report = finished_report(unit, rows_for(unit, states), store)
        services.eval_batch_finished(unit, report["result"])
        unit_report(report=report)
        unit_report(report=report)
    elif step == "lost":
        WorkUnit.objects.filter(pk=unit.pk, state="sent").update(attempt=2)
        unit_report(report=finished_report(unit, rows_for(unit, states), store))
    elif step == "fail":
        report = {"type": "UnitFailed", "unit_id": unit.pk, "attempt": unit.attempt}
        unit_report(report={**report, "error": "gone", "retryable": False})
    elif step == "retry" and run.state == Run.State.DONE and selectors.indexes_to_retry(run):
        services.run_retry_errors(run=run, by=actor)
    elif step == "pause" and run.state == Run.State.RUNNING:
        services.run_pause(run=run, by=actor)
    elif step == "resume" and run.state == Run.State.PAUSED:
        services.run_resume(run=run, by=actor)


def test_a_run_is_added_up_by_family_and_by_tags_with_few_values(begin, finish):
    run = begin()

    finish(run, {"case-1": "failed"})

    run.refresh_from_db()
    assert run.dimensions == ["family", "tag:length"]
    assert selectors.tags_of(run) == ["length"]
    assert [(row.value, row.summary.passed, row.n) for row in selectors.family_rows(run)] == [
        ("family-0", 6, 6),
        ("family-1", 4, 6),
    ]
    assert [row.value for row in selectors.slice_rows(run, "length")] == ["0", "128"]
    assert selectors.slice_rows(run, "unique") == []


def test_clusters_are_sources_where_cases_share_one_else_cases(begin, finish):
    run = begin()

    finish(run)

    assert selectors.run_summary(run).interval.clusters == 4


def test_cost_latency_attempts_cache_and_flags_are_kept(begin, store, endpoint, mixed, actor):
    Deployment.objects.filter(pk=endpoint.pk).update(
        input_usd_per_mtok=Decimal("2.5"), output_usd_per_mtok=Decimal("10")
    )
    endpoint.refresh_from_db()
    run = begin(version=None, deployment=endpoint, batch_size=6)
    units_pump()
    unit = WorkUnit.objects.get(owner=run.lineage_key)
    flag = Flag(detector="master_key", reason="Says that it passed.")
    rows = rows_for(unit, ["passed"], ttft_ms=5.0, per_token_ms=7.5, attempts=3)
    rows[0] = rows[0].model_copy(update={"cached": True, "flags": (flag,)})

    unit_report(report=finished_report(unit, rows, store))

    run.refresh_from_db()
    figures = selectors.run_figures(run)
    assert figures.cost_usd == (11 * 7 * Decimal("2.5") + 11 * 3 * Decimal(10)) / 1_000_000
    assert (figures.prompt_tokens, figures.completion_tokens) == (84, 36)
    assert (figures.attempts, figures.cached, figures.flagged) == (36, 1, 1)
    assert figures.latency is not None
    assert figures.latency.n == 11
    assert figures.latency.p50 == pytest.approx(20.5, rel=0.04)
    assert figures.ttft.p99 == pytest.approx(5.0, rel=0.01)
    row = run.results.get(cached=True)
    assert (row.flags[0]["detector"], row.attempts, row.per_token_ms) == ("master_key", 3, 7.5)


def test_prices_are_those_of_the_start(begin, finish, endpoint):
    Deployment.objects.filter(pk=endpoint.pk).update(
        input_usd_per_mtok=Decimal(1), output_usd_per_mtok=Decimal(1)
    )
    endpoint.refresh_from_db()
    run = begin(version=None, deployment=endpoint)
    Deployment.objects.filter(pk=endpoint.pk).update(input_usd_per_mtok=Decimal(100))

    finish(run, prompt_tokens=1_000_000)

    run.refresh_from_db()
    assert selectors.run_figures(run).cost_usd == 12


def test_without_a_price_the_cost_is_unknown_and_never_zero(begin, finish, page):
    run = begin()
    finish(run, prompt_tokens=5)

    assert selectors.run_figures(run).cost_usd is None
    assert '<dd class="num">unknown' in page.get(run.get_absolute_url()).content.decode()


def test_tokens_of_errors_that_a_retry_replaced_are_still_paid_for(begin, store, endpoint, finish, actor):
    Deployment.objects.filter(pk=endpoint.pk).update(
        input_usd_per_mtok=Decimal(1), output_usd_per_mtok=Decimal(1)
    )
    endpoint.refresh_from_db()
    run = begin(version=None, deployment=endpoint, sampling={})
    finish(run, {"case-0": "error"}, prompt_tokens=10)

    services.run_retry_errors(run=run, by=actor)
    finish(run, prompt_tokens=10)

    run.refresh_from_db()
    figures = selectors.run_figures(run)
    assert figures.prompt_tokens == 60
    assert figures.cost_usd == Decimal(70) / 1_000_000
    kept = sums_of(run)
    services.run_refigure(run=run)
    assert sums_of(run) == kept


def test_a_run_from_before_there_were_sums_is_added_up_on_the_spot_and_then_kept(begin, finish):
    run = begin()
    finish(run, {"case-1": "failed", "case-3": "error"})
    kept, summary = sums_of(run), selectors.run_summary(run)
    RunSlice.objects.all().delete()
    RunCluster.objects.all().delete()
    Run.objects.update(dimensions=None)
    run.refresh_from_db()

    assert selectors.run_summary(run) == summary
    assert selectors.family_rows(run) == []
    assert runs_refigure_missing() == 1
    assert runs_refigure_missing() == 0
    assert sums_of(run) == kept
    assert len(selectors.family_rows(run)) == 2


def test_a_batch_of_a_run_without_sums_builds_them_first(begin, store):
    run = begin()
    units_pump()
    first, second, *_ = WorkUnit.objects.filter(owner=run.lineage_key).order_by("pk")
    unit_report(report=finished_report(first, rows_for(first, ["passed"]), store))
    RunSlice.objects.all().delete()
    RunCluster.objects.all().delete()

    unit_report(report=finished_report(second, rows_for(second, ["failed"]), store))

    summary = selectors.run_summary(run)
    assert (summary.passed, summary.failed) == (4, 4)


def test_what_no_database_can_hold_is_made_storable(begin, store):
    run = begin(batch_size=6)
    units_pump()
    unit = WorkUnit.objects.get(owner=run.lineage_key)
    rows = rows_for(unit, ["passed"])
    rows[0] = rows[0].model_copy(
        update={
            "answer": "b\0c",
            "verdict": rows[0].verdict.model_copy(update={"reasons": ("x\0y",)}),
            "prompt_tokens": -5,
            "completion_tokens": 2**40,
            "latency_ms": -1.0,
        }
    )
    rows[1] = rows[1].model_copy(update={"score": 1.5})

    unit_report(report=finished_report(unit, rows, store))

    first, second = run.results.filter(case__key="case-0").order_by("sample")
    assert first.answer == "b\ufffdc"
    assert first.verdict["reasons"] == ["x\ufffdy"]
    assert (first.prompt_tokens, first.completion_tokens, first.latency_ms) == (0, 2**31 - 1, None)
    assert (second.state, second.score) == ("unscored", None)
    assert "not between 0 and 1" in second.error


def test_the_run_list_takes_the_same_queries_however_many_runs(begin, finish, page):
    finish(begin())
    page.get("/evals/runs/")
    with CaptureQueriesContext(connection) as few:
        page.get("/evals/runs/")
    for _ in range(4):
        finish(begin())
    with CaptureQueriesContext(connection) as many:
        page.get("/evals/runs/")

    assert len(many) == len(few)


def test_a_run_page_takes_the_same_queries_however_many_results(
    begin, store, project, version, actor, finish, page
):
    suite = services.suite_create(project=project, name="Large", by=actor)
    large = services.suite_version_create(
        suite=suite,
        tasks=[make_task(n, family=f"f{n % 9}", tags={"length": n % 5}) for n in range(90)],
        by=actor,
    )
    small_run, large_run = begin(), begin(suite_version=large)
    finish(small_run, {"case-1": "failed"})
    finish(large_run, {f"case-{n}": "failed" for n in range(30)})
    counts = []
    for run in (small_run, large_run):
        page.get(run.get_absolute_url())
        with CaptureQueriesContext(connection) as queries:
            page.get(run.get_absolute_url())
        counts.append(len(queries))

    assert counts[0] == counts[1]
    assert Result.objects.filter(run=large_run).count() > 10 * Result.objects.filter(run=small_run).count()
