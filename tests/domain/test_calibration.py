import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.calibration import KAPPA_FLOOR, Confusion, Rated, calibrate, doubts, length_effect


def rated(*codes: str, **fields: Any) -> list[Rated]:
    """``pf``: people pass, the judge fails. ``p?``: the judge did not decide."""
    read = {"p": True, "f": False, "?": None}
    return [
        Rated(source=f"s{at}", human=bool(read[code[0]]), judged=read[code[1]], **fields)
        for at, code in enumerate(codes)
    ]


def test_a_failure_is_the_positive_class() -> None:
    found = calibrate(rated(*["ff"] * 6, *["fp"] * 2, *["pf"] * 3, *["pp"] * 9))

    assert found.confusion == Confusion(6, 2, 3, 9)
    assert found.precision == pytest.approx(6 / 9)
    assert found.recall == pytest.approx(6 / 8)
    assert found.f1 == pytest.approx(12 / 17)
    assert found.accuracy == pytest.approx(15 / 20)
    assert found.kappa == pytest.approx((0.75 - 0.51) / 0.49)


def test_what_was_not_decided_stands_beside_the_figures() -> None:
    rows = [*rated("ff", "pp"), *rated("p?", "f?", silence="malformed"), *rated("p?", silence="error")]

    found = calibrate(rows)

    assert (found.n, found.decided, found.coverage) == (5, 2, 0.4)
    assert found.silent == {"malformed": 2, "error": 1}
    assert found.accuracy == 1.0


def test_dkpro_statistics_19_one_class_only_is_undefined_and_not_0() -> None:
    found = calibrate(rated(*["pp"] * 40, votes=(True, True)))

    assert found.kappa is None
    assert found.kappa_interval is None
    assert found.alpha is None
    assert found.fleiss is None
    assert found.f1 is None
    assert "undefined" in doubts(found)[0]


def test_full_agreement_of_few_answers_still_has_a_width() -> None:
    found = calibrate(rated(*["pp"] * 6, *["ff"] * 6))

    assert found.kappa == 1.0
    assert found.kappa_interval is not None
    assert found.kappa_interval.low < 0.7
    assert found.kappa_interval.high == 1.0


def test_answers_of_one_source_widen_the_interval() -> None:
    codes = [*["pp"] * 15, *["ff"] * 15, *["pf"] * 6, *["fp"] * 6]
    alone = calibrate(rated(*codes)).kappa_interval
    shared = [row._replace(source=f"s{at // 3}") for at, row in enumerate(rated(*codes))]
    together = calibrate(shared).kappa_interval

    assert alone is not None
    assert together is not None
    assert together.high - together.low > alone.high - alone.low


def test_a_judge_under_the_floor_is_doubted_and_a_good_one_is_not() -> None:
    good = calibrate(rated(*["pp"] * 20, *["ff"] * 20))
    poor = calibrate(rated(*["pp"] * 12, *["ff"] * 12, *["pf"] * 8, *["fp"] * 8))
    few = calibrate(rated(*["pp"] * 5, *["ff"] * 5))
    against = calibrate(rated(*["pf"] * 20, *["fp"] * 20))
    silent = calibrate([*rated(*["pp"] * 20, *["ff"] * 20), *rated(*["p?"] * 10, silence="unstable")])

    assert doubts(good) == []
    assert poor.kappa is not None
    assert poor.kappa < KAPPA_FLOOR
    assert "κ 0.20, under 0.6" in doubts(poor)[0]
    assert "κ −1.00, under 0.6" in doubts(against)[0]
    assert "10 answers only" in doubts(few)[0]
    assert "20 % of the answers undecided" in doubts(silent)[0]
    assert "People failed none" in doubts(calibrate(rated(*["pp"] * 30, *["pf"] * 3)))[0]
    assert "People passed none" in doubts(calibrate(rated(*["ff"] * 30, *["fp"] * 3)))[0]
    assert "none of the answers" in doubts(calibrate(rated("p?")))[0]


def test_a_judge_that_scores_by_length_is_found_out() -> None:
    long = [Rated(f"s{n}", n % 2 == 0, True, score=n / 40, length=10 * n) for n in range(1, 41)]
    apart = [row._replace(length=(row.length * 7) % 41) for row in long]

    by_length, interval = length_effect(long)
    honest, around = length_effect(apart)

    assert by_length == pytest.approx(1.0)
    assert interval is not None
    assert interval.low > 0.9
    assert honest is not None
    assert around is not None
    assert around.low < 0 < around.high


def test_better_answers_may_be_longer_without_a_length_effect() -> None:
    rows = [Rated(f"a{n}", True, True, score=0.9, length=900 + (n * 7) % 20) for n in range(20)]
    rows += [Rated(f"b{n}", False, False, score=0.1, length=100 + (n * 7) % 20) for n in range(20)]

    assert length_effect(rows) == (None, None)


def test_the_place_of_an_answer_is_counted_over_all_picks() -> None:
    biased = rated(*["pp"] * 20, firsts=4, picks=4, compared=2, contradictions=2)
    fair = rated(*["pp"] * 20, firsts=2, picks=4, compared=2)

    assert calibrate(biased).first_place == 1.0
    assert calibrate(biased).contradicting == 1.0
    assert calibrate(fair).first_place == 0.5
    assert calibrate(fair).contradicting == 0.0
    assert calibrate(rated("pp")).first_place is None


@given(st.lists(st.sampled_from(["pp", "pf", "fp", "ff", "p?", "f?"]), max_size=40))
def test_every_figure_is_finite_and_inside_its_interval(codes: list[str]) -> None:
    found = calibrate(rated(*codes))

    for name in ("kappa", "accuracy", "f1"):
        value, interval = getattr(found, name), getattr(found, f"{name}_interval")
        assert value is None or math.isfinite(value)
        if interval is not None:
            assert interval.low - 1e-9 <= value <= interval.high + 1e-9
