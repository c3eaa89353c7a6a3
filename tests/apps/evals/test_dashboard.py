"""The dashboard: a suite over versions and endpoints, by page and by API."""

from decimal import Decimal

import pytest

from apps.evals import dashboard_charts as charts
from apps.evals import services
from apps.evals.models import Run, Suite
from apps.evals.selectors.dashboard import MAX_POINTS, dashboard_of
from tests.apps.evals.conftest import make_task, text

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

TOKENS = {"prompt_tokens": 50, "completion_tokens": 10}


@pytest.fixture
def mixed(project, actor) -> Suite:
    """Eight cases in two families."""
    suite = services.suite_create(project=project, name="Mixed", by=actor)
    tasks = [make_task(n).model_copy(update={"family": ("odd", "even")[n % 2]}) for n in range(8)]
    services.suite_version_create(suite=suite, tasks=tasks, by=actor)
    return suite


@pytest.fixture
def ran(mixed, start, finish):
    def build(failed: int = 0, **fields):
        run = start(suite_version=mixed.versions.first())
        finish(run, {f"case-{n}": "failed" for n in range(failed)}, latency_ms=20.0, ttft_ms=5.0, **TOKENS)
        if fields:
            Run.objects.filter(pk=run.pk).update(**fields)
        return run

    return build


def test_the_newest_run_of_a_target_is_its_point(mixed, ran):
    ran(failed=8)
    newest = ran(failed=2)

    found = dashboard_of(mixed)

    assert [(point.run.pk, point.summary.passed) for point in found.points] == [(newest.pk, 6)]


def test_every_run_is_a_point_where_runs_are_asked_for_oldest_first(mixed, ran):
    runs = [ran(failed=n) for n in (3, 1)]

    found = dashboard_of(mixed, by="run")

    assert [point.run.pk for point in found.points] == [run.pk for run in runs]
    assert charts._names(found.points) == [f"{run.target_name}, run {run.pk}" for run in runs]


def test_families_stand_beside_their_points_and_one_can_be_looked_at_alone(mixed, ran):
    ran(failed=1)  # case-0 is "odd"

    whole, odd = dashboard_of(mixed), dashboard_of(mixed, family="odd")

    assert [(row.family, row.summaries[0].passed) for row in whole.families] == [("even", 4), ("odd", 3)]
    assert (odd.points[0].summary.passed, odd.points[0].summary.scored, odd.families) == (3, 4, [])


def test_costs_are_unknown_without_a_price_and_never_zero(mixed, ran):
    ran()
    assert dashboard_of(mixed).points[0].cost_per_1000 is None
    assert charts.cost_figure(dashboard_of(mixed).points) is None

    ran(failed=4, input_usd_per_mtok=Decimal(100), output_usd_per_mtok=Decimal(100))

    point = dashboard_of(mixed).points[0]
    assert point.cost_per_1000 is not None
    assert point.cost_per_1000 > 0
    assert point.cost_per_pass == point.cost_per_1000 * 2 / 1000


def test_older_points_than_fit_are_counted(mixed, ran, monkeypatch):
    monkeypatch.setattr("apps.evals.selectors.dashboard.MAX_POINTS", 2)
    for _ in range(3):
        ran()

    found = dashboard_of(mixed, by="run")

    assert (len(found.points), found.left_out) == (2, 1)
    assert MAX_POINTS > 2


def test_the_page_draws_the_suite_that_the_address_names(page, mixed, ran, suite_version):
    ran(failed=2)

    shown = text(page.get(f"/evals/dashboard/?suite={mixed.pk}"))

    assert "Dashboard <span" in shown
    assert "75 %" in shown
    assert "Median and 95th percentile" in shown
    assert "No price is known" in shown
    assert f'<option value="{mixed.pk}" selected>' in shown


def test_without_a_suite_in_the_address_the_one_that_ran_most_is_shown(
    page, mixed, ran, start, finish, suite_version
):
    for _ in range(2):
        ran()
    finish(start(suite_version=suite_version))

    assert f'<option value="{mixed.pk}" selected>' in text(page.get("/evals/dashboard/"))


@pytest.mark.parametrize(
    "query", ["?suite=999999", "?suite=x&days=x", "?by=moon", "?family=none&edition=big"]
)
def test_an_unknown_filter_is_as_good_as_none(page, ran, query):
    ran()

    assert page.get(f"/evals/dashboard/{query}").status_code == 200


def test_a_project_without_suites_is_told_what_would_be_here(page):
    assert "No suites yet" in text(page.get("/evals/dashboard/"))


def test_the_page_takes_the_same_queries_however_many_runs(page, ran, django_assert_max_num_queries):
    for n in range(5):
        ran(failed=n)

    with django_assert_max_num_queries(18):
        page.get("/evals/dashboard/?by=run")


def test_the_api_gives_the_same_numbers_with_the_suites_digest(api, mixed, ran):
    run = ran(failed=1)

    answer = api.get(f"/api/v1/suites/{mixed.pk}/dashboard").json()

    (point,) = answer["points"]
    assert (point["run_id"], point["score"]["passed"]) == (run.pk, 7)
    assert point["suite_digest"] == mixed.versions.get().digest
    assert point["latency_p50_ms"] == pytest.approx(20, rel=0.02)
    assert point["cost_per_1000_usd"] is None
    assert {row["family"] for row in answer["families"]} == {"even", "odd"}
    assert api.get("/api/v1/suites/999999/dashboard").status_code == 404
