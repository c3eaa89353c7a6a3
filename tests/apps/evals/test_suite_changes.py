"""What differs between two versions of a suite, and the digest beside every score."""

import pytest
from django.urls import reverse

from apps.evals import services
from apps.evals.suite_diff import entries_shown, suite_diff
from tests.apps.evals.conftest import make_task, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def second(suite_version, actor):
    """case-0 stays, case-1 expects something else, case-2 and case-3 are gone, case-7 is new."""
    tasks = [make_task(0), make_task(1, reference=99, source="shop"), make_task(7)]
    return services.suite_version_create(suite=suite_version.suite, tasks=tasks, by=actor)


def test_added_removed_and_changed_are_told_apart_field_by_field(suite_version, second, actor):
    diff = suite_diff(suite_version, second)

    shown = {entry.key: entry for entry in entries_shown(diff.entries, actor)}
    assert (diff.added, diff.removed, diff.changed, diff.unchanged) == (1, 2, 1, 1)
    assert {key: entry.kind for key, entry in shown.items()} == {
        "case-1": "changed", "case-7": "added", "case-2": "removed", "case-3": "removed",
    }  # fmt: skip
    assert [tuple(field) for field in shown["case-1"].fields] == [
        ("reference", "2", "99"),
        ("source", "", "shop"),
    ]


def test_the_same_cases_in_another_order_are_said_to_be_that(suite_version, actor):
    turned = services.suite_version_create(
        suite=suite_version.suite, tasks=[make_task(n) for n in (3, 2, 1, 0)], by=actor
    )

    diff = suite_diff(suite_version, turned)

    assert (diff.entries, diff.unchanged, diff.moved) == ([], 4, True)


def test_the_page_compares_the_last_two_and_any_two(page, suite_version, second):
    here = reverse("evals:suite_changes", args=[suite_version.suite_id])

    last = text(page.get(here))
    same = text(page.get(f"{here}?old=2&new=2"))
    added = text(page.get(f"{here}?kind=added"))
    back = text(page.get(f"{here}?old=2&new=1"))

    assert "<b>1 added</b>, <b>2 removed</b>, <b>1 changed</b>, 1 unchanged." in last
    assert "case-1" in last
    assert "The same version on both sides." in same
    assert "case-7" in added
    assert "case-2" not in added
    assert "<b>2 added</b>, <b>1 removed</b>" in back
    assert suite_version.digest[:12] in last
    assert here in text(page.get(suite_version.suite.get_absolute_url()))


def test_a_suite_without_versions_has_no_changes(page, project, actor):
    suite = services.suite_create(project=project, name="Empty", by=actor)

    assert "No version yet" in text(page.get(reverse("evals:suite_changes", args=[suite.pk])))


def test_the_page_of_changes_takes_the_same_queries_however_many(
    page, suite_version, actor, django_assert_max_num_queries
):
    services.suite_version_create(
        suite=suite_version.suite, tasks=[make_task(n, reference=-n) for n in range(40)], by=actor
    )

    with django_assert_max_num_queries(16):
        page.get(reverse("evals:suite_changes", args=[suite_version.suite_id]))


def test_the_api_counts_and_pages(api, suite_version, second):
    root = f"/api/v1/suites/{suite_version.suite_id}/changes"

    first = api.get(f"{root}?old=1&new=2&limit=1").json()
    removed = api.get(f"{root}?old=1&new=2&kind=removed&offset=1").json()

    assert (first["added"], first["removed"], first["changed"], first["unchanged"]) == (1, 2, 1, 1)
    assert [row["key"] for row in first["cases"]] == ["case-1"]
    assert first["new_digest"] == second.digest
    assert [row["key"] for row in removed["cases"]] == ["case-3"]
    assert api.get(f"{root}?old=1&new=9").status_code == 404
    assert api.get(f"{root}?old=1&new=2&kind=odd").status_code == 400


def test_cases_are_paged_in_order(api, suite_version):
    root = f"/api/v1/suites/{suite_version.suite_id}/versions/1/cases"

    first = api.get(f"{root}?limit=3").json()
    rest = api.get(f"{root}?limit=3&after={first['next']}").json()

    assert [row["key"] for row in first["cases"] + rest["cases"]] == [f"case-{n}" for n in range(4)]
    assert (first["count"], rest["next"], first["digest"]) == (4, None, suite_version.digest)
    assert api.get(f"{root}?split=odd").status_code == 400


def test_mlflow_25821_two_scores_on_two_suite_versions_each_carry_the_suites_digest(
    api, page, suite_version, second, start, finish
):
    runs = [start(suite_version=version) for version in (suite_version, second)]
    for run in runs:
        finish(run)

    listed = {row["id"]: row["suite_digest"] for row in api.get("/api/v1/runs").json()}
    detail = api.get(f"/api/v1/runs/{runs[1].pk}").json()
    compared = api.get(f"/api/v1/runs/{runs[1].pk}/compare/{runs[0].pk}").json()
    pages = [
        text(page.get(address))
        for address in (
            reverse("evals:runs"),
            reverse("evals:suites"),
            runs[1].get_absolute_url(),
            f"{reverse('evals:compare', args=[runs[1].pk])}?against={runs[0].pk}",
        )
    ]

    assert listed == {run.pk: run.suite_version.digest for run in runs}
    assert detail["suite_digest"] == second.digest
    assert (compared["base_suite_digest"], compared["new_suite_digest"]) == (
        suite_version.digest,
        second.digest,
    )
    assert all(second.digest[:8] in body for body in pages)
    assert suite_version.digest[:8] in pages[0]
    assert suite_version.digest[:8] in pages[3]
