from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.agreement import cohen_kappa, fleiss_kappa, kappa_interval, krippendorff_alpha

labels = st.sampled_from(["a", "b", "c"]) | st.none()


def test_kappa_agrees_with_a_worked_example() -> None:
    first = ["y"] * 25 + ["n"] * 25
    second = ["y"] * 20 + ["n"] * 5 + ["y"] * 10 + ["n"] * 15

    assert cohen_kappa(first, second) == pytest.approx(0.4)


def test_alpha_agrees_with_krippendorff_s_own_example() -> None:
    observers = [
        "1 2 3 3 2 1 4 1 2 . . .",
        "1 2 3 3 2 2 4 1 2 5 . 3",
        ". 3 3 3 2 3 4 2 2 5 1 .",
        "1 2 3 3 2 4 4 1 2 5 1 .",
    ]
    rows = [[None if cell == "." else cell for cell in row.split()] for row in observers]
    items = list(zip(*rows, strict=True))

    assert krippendorff_alpha(items) == pytest.approx(0.743, abs=0.001)


@given(st.lists(st.tuples(labels, labels), max_size=30))
def test_neither_exceeds_one_and_order_of_raters_is_irrelevant(
    pairs: list[tuple[str | None, str | None]],
) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]

    kappa, alpha = cohen_kappa(first, second), krippendorff_alpha(pairs)

    assert kappa is None or kappa <= 1.0
    assert alpha is None or alpha <= 1.0
    assert kappa == pytest.approx(cohen_kappa(second, first))
    assert alpha == pytest.approx(krippendorff_alpha([(b, a) for a, b in pairs]))


def test_one_class_only_is_undefined_and_not_zero() -> None:
    assert cohen_kappa(["a", "a"], ["a", "a"]) is None
    assert krippendorff_alpha([["a", "a"], ["a", "a"]]) is None


def test_no_shared_item_is_undefined() -> None:
    assert cohen_kappa([], []) is None
    assert cohen_kappa(["a", None], [None, "a"]) is None
    assert krippendorff_alpha([["a", None], [None, "b"]]) is None


def test_missing_ratings_are_ignored() -> None:
    assert cohen_kappa(["a", "b", None], ["a", "b", "a"]) == 1.0
    assert krippendorff_alpha([["a", "a", None], ["b", "b", None], ["a", None, None]]) == 1.0


def test_perfect_disagreement_is_negative() -> None:
    assert (cohen_kappa(["a", "b"], ["b", "a"]) or 0.0) < 0
    assert (krippendorff_alpha([["a", "b"], ["b", "a"]]) or 0.0) < 0


def test_raters_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="per item"):
        cohen_kappa(["a"], [])


def test_dkpro_statistics_19_all_raters_agree_on_one_class_is_undefined_and_not_0() -> None:
    same = ["y"] * 10

    assert cohen_kappa(same, same) is None
    assert krippendorff_alpha([("y", "y", "y")] * 10) is None
    assert fleiss_kappa([("y", "y", "y")] * 10) is None
    assert kappa_interval(same, same, range(10)) is None


def test_fleiss_kappa_agrees_with_his_own_kind_of_example() -> None:
    """Ten items, fourteen raters, five classes (Wikipedia's table of Fleiss' κ): 0.210."""
    counts = [
        (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
        (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
    ]  # fmt: skip
    items = [[label for label, count in enumerate(row) for _ in range(count)] for row in counts]

    assert fleiss_kappa(items) == pytest.approx(0.210, abs=0.001)


def test_fleiss_kappa_leaves_out_items_that_a_rater_missed_and_refuses_uneven_ones() -> None:
    assert fleiss_kappa([("a", "a"), ("b", "b"), ("a", None)]) == 1.0
    with pytest.raises(ValueError, match="one entry per rater"):
        fleiss_kappa([("a", "a"), ("a", "b", "b")])


def test_an_interval_of_kappa_covers_as_it_says() -> None:
    """60 answers, a judge right in nine of ten: about 95 of 100 intervals hold the true κ of 0.8."""
    random = Random(5)
    held = 0
    for _ in range(300):
        human = [random.random() < 0.5 for _ in range(60)]
        judge = [value if random.random() < 0.9 else not value for value in human]
        interval = kappa_interval(human, judge, range(60))
        assert interval is not None
        held += interval.low <= 0.8 <= interval.high

    assert 0.92 <= held / 300 <= 0.99
