"""Two runs over their common cases."""

from urllib.parse import urlencode

import pytest

from apps.core.errors import Refused
from apps.core.models import Membership, Project
from apps.evals import services
from apps.evals.comparison import bootstrap, flips_of, flips_where, run_comparison, sliced
from apps.evals.selectors import run_to_compare
from tests.apps.evals.conftest import make_task, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def two(start, finish):
    """The base run fails case-0 and case-1, the new one case-3 only."""
    base, new = start(), start()
    finish(base, {"case-0": "failed", "case-1": "failed"})
    finish(new, {"case-3": "failed"})
    return new, base


def test_the_difference_is_new_minus_base_over_the_same_cases(two):
    found = run_comparison(*two)

    assert found.difference.mean == 0.25
    assert (found.difference.flips_up, found.difference.flips_down, found.difference.n) == (2, 1, 4)
    assert found.sentence.startswith("Cannot tell yet")
    assert (found.base.pass_rate, found.new.pass_rate) == (0.5, 0.75)


def test_flips_are_listed_both_ways_with_both_results(two):
    new, base = two

    flips = flips_of(new, base, run_comparison(new, base).moved)

    assert [(flip.case.key, flip.up, flip.before.state, flip.after.state) for flip in flips] == [
        ("case-3", False, "passed", "failed"),
        ("case-0", True, "failed", "passed"),
        ("case-1", True, "failed", "passed"),
    ]


def test_only_cases_that_did_not_change_are_compared(start, finish, suite_version, actor):
    base = start()
    finish(base, {"case-0": "failed"})
    tasks = [make_task(0), make_task(1, reference=99), make_task(2), make_task(8)]
    second = services.suite_version_create(suite=suite_version.suite, tasks=tasks, by=actor)
    new = start(suite_version=second)
    finish(new)

    found = run_comparison(new, base)

    assert found.difference.n == 2
    assert (found.only_base, found.only_new) == (2, 2)
    assert not found.same_version
    assert found.base.total == found.new.total == 2


def test_a_case_without_a_score_on_one_side_is_left_out(start, finish):
    base, new = start(), start()
    finish(base, {"case-0": "error"})
    finish(new, {"case-1": "unscored"})

    found = run_comparison(new, base)

    assert (found.difference.n, found.difference.dropped) == (2, 2)
    assert found.moved == []


def test_samples_of_a_case_are_averaged_before_they_are_paired(start, finish):
    sampling = {"samples": 2, "temperature": 1.0}
    base, new = start(sampling=sampling), start(sampling=sampling)
    finish(base, {"case-0": ["passed", "failed"]})
    finish(new)

    found = run_comparison(new, base)

    assert found.difference.mean == pytest.approx(0.125)
    assert found.difference.n == 4
    flip = flips_of(new, base, found.moved)[0]
    assert (flip.before.sample, flip.before.state, flip.after.state) == (1, "failed", "passed")


def test_runs_without_a_common_case_are_refused(start, finish, project, actor):
    base = start()
    finish(base)
    suite = services.suite_create(project=project, name="Other", by=actor)
    other = services.suite_version_create(suite=suite, tasks=[make_task(50)], by=actor)
    new = start(suite_version=other)
    finish(new)

    with pytest.raises(Refused, match="no case in common"):
        run_comparison(new, base)


def test_a_run_is_not_compared_with_itself(two):
    with pytest.raises(Refused, match="does not differ from itself"):
        run_comparison(two[0], two[0])


def test_too_few_cases_say_so(start, finish, project, actor):
    suite = services.suite_create(project=project, name="One", by=actor)
    one = services.suite_version_create(suite=suite, tasks=[make_task(1)], by=actor)
    base, new = start(suite_version=one), start(suite_version=one)
    finish(base, {"case-1": "failed"})
    finish(new)

    assert "n too small" in run_comparison(new, base).sentence


def test_the_first_choice_is_the_newest_earlier_run(two, start, finish):
    later = start()
    finish(later)

    assert run_to_compare(later) == two[0]
    assert run_to_compare(two[0]) == two[1]
    assert run_to_compare(two[1]) is None


def test_a_changed_case_is_named_and_counted_apart_from_new_and_gone_ones(
    start, finish, suite_version, actor
):
    base = start()
    finish(base)
    tasks = [make_task(0), make_task(1, reference=99), make_task(2), make_task(8)]
    second = services.suite_version_create(suite=suite_version.suite, tasks=tasks, by=actor)
    new = start(suite_version=second)
    finish(new)

    left = run_comparison(new, base).left_out

    assert (left.changed, left.examples, left.only_base, left.only_new) == (1, ["case-1"], 1, 1)


@pytest.fixture
def cut(store, project, actor, start, finish):
    """Sixty cases in two families and six lengths; the new run loses the long ones."""
    suite = services.suite_create(project=project, name="Cut", by=actor)
    tasks = [
        make_task(n, family="a" if n < 30 else "b", source=f"doc-{n // 2}", tags={"length": 2 ** (n % 6)})
        for n in range(60)
    ]
    version = services.suite_version_create(suite=suite, tasks=tasks, by=actor)
    base, new = start(suite_version=version), start(suite_version=version)
    finish(base)
    finish(new, {f"case-{n}": "failed" for n in range(60) if n % 6 == 5})
    return new, base


def test_a_slice_per_value_of_a_tag_in_order(cut):
    found = sliced(run_comparison(*cut, "tag:length"), "tag:length")

    assert [row.label for row in found.rows] == ["1", "2", "4", "8", "16", "32"]
    assert [row.verdict for row in found.rows] == ["cannot_tell"] * 5 + ["worse"]
    assert found.many
    assert found.rows[-1].adjusted is not None


def test_flips_are_listed_one_way_on_one_slice_by_name(cut):
    found = run_comparison(*cut, "family")

    assert len(flips_where(found)) == 10
    assert flips_where(found, moved="better") == []
    assert len(flips_where(found, moved="worse", axis="family", slice_label="b")) == 5
    assert len(flips_where(found, q="CASE-5")) == 3


def test_clusters_are_the_sources_that_cases_share(cut):
    found = run_comparison(*cut)

    assert (found.difference.n, found.difference.clusters) == (60, 30)
    checked = bootstrap(found)
    assert checked is not None
    assert checked == bootstrap(found)
    assert checked.low == pytest.approx(found.difference.low, abs=0.03)


def test_a_comparison_asks_the_same_few_queries_whatever_its_size(cut, django_assert_num_queries):
    with django_assert_num_queries(3):
        run_comparison(*cut, "tag:length")


def compare_url(runs, **query):
    new, base = runs
    return f"/evals/runs/{new.pk}/compare/?" + urlencode({"against": base.pk, **query})


def test_the_page_shows_slices_on_one_axis_and_keeps_filters_in_the_address(page, cut):
    shown = text(page.get(compare_url(cut, by="tag:length")))

    assert "By length" in shown
    assert shown.count('class="zero"') == 7  # the difference and six slices
    assert "stays under 0.05 after Benjamini–Hochberg" in shown
    assert "slice=32#flips" in shown

    shown = text(page.get(compare_url(cut, by="family", slice="b", moved="worse")))
    assert "5 cases of them shown" in shown
    assert '<option value="b" selected>' in shown


def test_a_slice_of_another_axis_is_forgotten_when_the_axis_changes(page, cut):
    shown = text(page.get(compare_url(cut, by="family", slice="32")))

    assert "10 changed cases" in shown


def test_the_page_counts_errors_apart_and_says_what_is_left_out(page, start, finish):
    base, new = start(), start()
    finish(base, {"case-0": "error"})
    finish(new, {"case-1": "unscored"})

    shown = text(page.get(compare_url((new, base))))

    assert "2 cases left out because one side was not scored" in shown
    assert "Errors and unscored samples count for neither side." in shown


@pytest.mark.parametrize(
    "query", ["by=nope", "by=family&slice=nope", "moved=x", "q=%00", "page=-4", "by=tag:"]
)
def test_odd_filters_are_survived(page, cut, query):
    new, base = cut

    assert page.get(f"/evals/runs/{new.pk}/compare/?against={base.pk}&{query}").status_code == 200


def test_both_answers_stand_side_by_side(page, two):
    new, base = two
    case = flips_of(new, base, run_comparison(new, base).moved)[0].case

    shown = text(page.get(f"/evals/runs/{new.pk}/compare/{base.pk}/cases/{case.pk}/"))

    assert "What differs" in shown
    assert shown.count("answer 0") >= 2
    assert page.get(f"/evals/runs/{new.pk}/compare/{base.pk}/cases/999999/").status_code == 404
    assert page.get(f"/evals/runs/{new.pk}/compare/99999/cases/{case.pk}/").status_code == 404


def test_other_samples_of_a_case_are_chosen_in_the_address(page, start, finish):
    sampling = {"samples": 2, "temperature": 1.0}
    base, new = start(sampling=sampling), start(sampling=sampling)
    finish(base, {"case-0": ["passed", "failed"]})
    finish(new)
    case = new.results.get(case__key="case-0", sample=0).case_id
    url = f"/evals/runs/{new.pk}/compare/{base.pk}/cases/{case}/"

    assert "answer 1" in text(page.get(url))
    assert "answer 1" not in text(page.get(f"{url}?before=0&after=0"))
    assert page.get(f"{url}?before=nope&after=99").status_code == 200


def test_several_runs_stand_against_one_base(page, two, start, finish):
    new, base = two
    third = start()
    finish(third)

    shown = text(page.get(f"/evals/compare/?base={base.pk}&run={new.pk}&run={third.pk}&run={base.pk}"))

    assert f">run {new.pk}</a>" in shown
    assert f">run {third.pk}</a>" in shown
    assert "Two rows are not compared with each other." in shown
    assert "Choose at least one run" not in shown


def test_several_runs_need_a_base_and_a_run(page, two):
    base = two[1]

    assert "Choose a run first" in text(page.get("/evals/compare/"))
    assert page.get("/evals/compare/?base=99999").status_code == 404
    assert "Choose a run other than the base." in text(
        page.get(f"/evals/compare/?base={base.pk}&run={base.pk}")
    )
    assert "Select a valid choice" in text(page.get(f"/evals/compare/?base={base.pk}&run=99999"))


def test_rest_gives_slices_and_flips(api, cut):
    new, base = cut
    path = f"/api/v1/runs/{new.pk}/compare/{base.pk}"

    whole = api.get(path).json()
    slices = api.get(f"{path}/slices", {"by": "tag:length"}).json()
    flips = api.get(f"{path}/flips", {"moved": "worse", "limit": 3}).json()

    assert whole["left_out"] == {"changed": 0, "only_base": 0, "only_new": 0, "examples": []}
    assert whole["bootstrap"]["low"] < whole["mean"] < whole["bootstrap"]["high"]
    assert [row["verdict"] for row in slices] == ["cannot_tell"] * 5 + ["worse"]
    assert [(row["case"], row["base_state"], row["new_state"]) for row in flips] == [
        ("case-5", "passed", "failed"), ("case-11", "passed", "failed"), ("case-17", "passed", "failed"),
    ]  # fmt: skip
    assert api.get(f"{path}/flips", {"moved": "x"}).status_code == 400
    assert api.get(f"/api/v1/runs/{new.pk}/compare/{new.pk}").status_code == 400


def test_runs_of_another_project_are_not_compared(page, two, project):
    other = Project.objects.create(name="Other", slug="other")
    Membership.objects.filter(project=project).update(project=other)

    assert page.get(compare_url(two)).status_code == 404
    assert page.get(f"/evals/compare/?base={two[0].pk}").status_code == 404
