"""Slices of a comparison."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from domain.slices import MAX_SLICES, NONE, OTHERS, slice_differences, slice_labels

values = st.lists(st.one_of(st.none(), st.text(min_size=1, max_size=4), st.integers(0, 500).map(str)))


def test_few_numbers_are_slices_in_order():
    labels, order = slice_labels(["512", "128", None, "1024", "128"])

    assert order == ["128", "512", "1024", NONE]
    assert labels == ["512", "128", NONE, "1024", "128"]


def test_many_numbers_are_cut_at_their_quantiles():
    labels, order = slice_labels([str(number) for number in range(600)])

    assert len(order) == 6
    assert order[0].startswith("0 to ")
    assert order[-1].endswith("to 599")
    assert all(90 <= labels.count(label) <= 110 for label in order)


def test_words_come_by_size_and_the_smallest_of_many_together():
    words = [f"w{number}" for number in range(50) for _ in range(50 - number)]

    labels, order = slice_labels(words)

    assert order[:2] == ["w0", "w1"]
    assert len(order) == MAX_SLICES
    assert order[-1] == OTHERS
    assert labels.count(OTHERS) == sum(50 - number for number in range(MAX_SLICES - 1, 50))


@given(values)
def test_every_case_is_in_exactly_one_slice(found: list[str | None]):
    labels, order = slice_labels(found)

    assert len(labels) == len(found)
    assert set(labels) == set(order)
    assert len(order) == len(set(order))


def test_a_slice_has_its_own_difference():
    base, new = [0.0] * 40, [1.0] * 20 + [0.0] * 20
    labels = ["a"] * 20 + ["b"] * 20

    found = slice_differences(base, new, range(40), labels, ["a", "b"])

    assert [row.difference.mean for row in found.rows] == [1.0, 0.0]
    assert [row.verdict for row in found.rows] == ["better", "cannot_tell"]
    assert not found.many


def test_a_small_slice_says_so_and_decides_nothing():
    found = slice_differences([0.0] * 6, [1.0] * 6, range(6), ["a"] * 6, ["a"])

    assert found.rows[0].small
    assert found.rows[0].verdict == "cannot_tell"


def test_among_many_slices_only_what_stands_after_correction_is_a_finding():
    rng = np.random.default_rng(2)
    labels = [f"s{at // 40:02}" for at in range(800)]
    base = (rng.random(800) < 0.5).astype(float)
    new = base.copy()
    new[:40] = 1.0  # one slice truly differs
    new[40:48], base[40:48] = 1.0, 0.0  # one would seem to, alone
    base[48:50], new[48:50] = 1.0, 0.0

    found = slice_differences(list(base), list(new), range(800), labels, sorted(set(labels)))

    assert found.many
    assert found.tested == 20
    assert found.rows[0].verdict == "better"
    assert found.rows[1].adjusted is not None
    assert found.rows[1].adjusted > (found.rows[1].difference.p_value or 0)


def test_equal_runs_rarely_differ_on_any_slice():
    rng, wrong = np.random.default_rng(6), 0
    labels = [f"s{at // 30}" for at in range(300)]
    for _ in range(200):
        base, new = ((rng.random(300) < 0.7).astype(float) for _ in range(2))
        found = slice_differences(list(base), list(new), range(300), labels, sorted(set(labels)))
        wrong += any(row.verdict != "cannot_tell" for row in found.rows)

    assert wrong / 200 < 0.1
