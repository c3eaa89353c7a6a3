"""Suites of chosen lengths and depths, and the map of a run over them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core.errors import Refused
from apps.evals import services
from apps.evals.context_lengths import TooShort, sentences_for
from apps.evals.maps import map_figure, run_maps
from apps.evals.models import Suite
from apps.evals.selectors import has_map, map_versions_of
from domain.long_context import TASKS
from tests.apps.evals.conftest import text

pytestmark = pytest.mark.django_db


@pytest.fixture
def make(fake_model, store, project, version, actor):
    def build(**changes):
        fields = {"project": project, "name": "Needles", "version": version, "per_cell": 1, "by": actor}
        return services.context_suite_create(**{**fields, **changes})

    return build


def words(case):
    return len(case.task["messages"][0]["content"].split())


def test_every_cell_has_its_cases_with_tags(make):
    made = make(lengths=[60, 90], depths=[0, 100], per_cell=2)

    tags = [(case.tags["length"], case.tags["depth"]) for case in made.cases.all()]
    assert sorted(tags) == sorted([(60, 0), (60, 100), (90, 0), (90, 100)] * 2)
    assert len({case.task["messages"][0]["content"] for case in made.cases.all()}) == 8


def test_a_case_fills_its_length_and_does_not_exceed_it(make):
    made = make(lengths=[60, 90])

    longest_sentence = 12
    for case in made.cases.all():
        assert case.tags["length"] - longest_sentence < words(case) <= case.tags["length"]


def test_lengths_are_chosen_to_fit_the_model(make, fake_model):
    fake_model.room = 200

    made = make()

    lengths = {case.tags["length"] for case in made.cases.all()}
    assert max(lengths) == 184
    assert len(lengths) == 4


def test_the_same_seed_makes_the_same_version(make):
    assert make(lengths=[60], seed=3) == make(lengths=[60], seed=3)


def test_another_seed_makes_the_next_version(make):
    make(lengths=[60], seed=3)

    assert make(lengths=[60], seed=4).number == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"lengths": [500]}, "500 tokens do not fit: this model takes 120"),
        ({"lengths": [3]}, "The facts and the question alone take"),
        ({"lengths": [0]}, "positive number"),
        ({"depths": [101]}, "from 0 to 100"),
        ({"depths": []}, "from 0 to 100"),
        ({"per_cell": 0}, "1 to 50 cases"),
        ({"lengths": [60, 90], "per_cell": 50, "depths": list(range(20))}, "at most 512 cases"),
        ({"lengths": list(range(60, 80)), "depths": list(range(20))}, "at most 64 cells"),
    ],
)
def test_what_cannot_be_built_is_refused_and_leaves_nothing(make, changes, words):
    with pytest.raises(Refused, match=words):
        make(**changes)

    assert not Suite.objects.exists()


def test_a_target_that_does_not_answer_is_refused(make, fake_model):
    fake_model.status = 404

    with pytest.raises(Refused, match=r"could not count tokens\. It answered “.*” with status 404"):
        make()


def test_a_target_without_tokenize_is_estimated_by_the_usage_it_reports(make, fake_model):
    fake_model.refuse = lambda body: 404 if "add_generation_prompt" in body else None

    made = make(lengths=[300, 600])

    assert made.note.endswith("lengths estimated from reported usage")
    assert len(fake_model.asked) == 2
    assert all(0.9 < words(case) / case.tags["length"] < 1.05 for case in made.cases.all())


def test_a_target_that_tells_no_usage_either_is_refused(make, fake_model):
    fake_model.refuse = lambda body: 404 if "add_generation_prompt" in body else None
    fake_model.usage = False

    with pytest.raises(Refused, match="Nor does it report how many tokens a prompt has"):
        make(lengths=[300])


def test_every_kind_that_is_asked_for_gets_its_cells_and_its_map(make, fake_model, start, finish):
    fake_model.room = 2000
    made = make(kinds=list(TASKS), lengths=[400], depths=[0, 50])
    run = start(suite_version=made)
    finish(run, {"context-variables-0-400-0-0": "failed"})

    found = run_maps(run)

    assert list(found) == [f"long_context_{kind}" for kind in TASKS]
    assert [cell.rate for cell in found["long_context_variables"].by_depth] == [0.0, 1.0]
    assert [cell.n for cell in found["long_context_multi_hop"].by_length] == [2]


def test_an_unknown_kind_is_refused(make):
    with pytest.raises(Refused, match="“poems” is not one"):
        make(kinds=["poems"])


def test_more_text_than_a_map_may_hold_is_refused(make, fake_model):
    fake_model.room = None

    with pytest.raises(Refused, match="at most 8,000,000"):
        make(lengths=[1_000_000], per_cell=5, depths=[0, 50])


def test_the_page_of_a_map_chooses_among_what_was_asked_for(make, fake_model, start, finish, page):
    fake_model.room = 2000
    run = start(suite_version=make(kinds=["retrieval", "multi_hop"], lengths=[300], depths=[0]))
    finish(run)

    shown = text(page.get(f"/evals/runs/{run.pk}/map/?family=long_context_multi_hop"))

    assert "Chain of three facts, by length and depth" in shown
    assert "Depth of the last fact of the chain" in shown
    assert "One fact, by length" in text(page.get(f"/evals/runs/{run.pk}/map/?family=nothing"))


@given(st.integers(1, 400), st.integers(1, 60), st.integers(0, 100_000), st.integers(0, 3))
def test_filler_fills_a_length_with_few_counts(base, each, length, wobble):
    counts = []

    def count(text):
        counts.append(text)
        n = len(text)
        return base + each * n + (n * 7919) % (wobble + 1) * (each > wobble)

    if length < base:
        with pytest.raises(TooShort):
            sentences_for(length, lambda n: "x" * n, count)
        return
    found = sentences_for(length, lambda n: "x" * n, count)

    assert count("x" * found) <= length < count("x" * (found + 1))
    assert len(counts) < 25


def test_the_map_shows_rate_and_n_of_every_cell(make, start, finish):
    made = make(lengths=[60, 90], depths=[0, 100], per_cell=2)
    run = start(suite_version=made)
    finish(
        run,
        {
            "context-retrieval-0-60-0-0": "failed",
            "context-retrieval-0-90-100-0": "error",
            "context-retrieval-0-90-100-1": "error",
        },
    )

    found = run_maps(run)["long_context_retrieval"]

    assert (found.lengths, found.depths) == ([60, 90], [0, 100])
    cells = {(cell.length, cell.depth): (cell.rate, cell.n, cell.lost) for row in found.rows for cell in row}
    assert cells == {
        (60, 0): (0.5, 2, 0),
        (90, 0): (1.0, 2, 0),
        (60, 100): (1.0, 2, 0),
        (90, 100): (None, 0, 2),
    }
    figure = map_figure(found)["data"][0]
    assert figure["z"] == [[0.5, 1.0], [1.0, None]]
    assert figure["text"][1][1] == "not scored"


def test_an_ordinary_run_has_no_map(start, finish, suite_version, project):
    run = start()
    finish(run)

    assert run_maps(run) == {}
    assert not has_map(suite_version)
    assert not map_versions_of(project).exists()
