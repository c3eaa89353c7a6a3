"""Short answers against the reference's own rate of matching itself."""

from hypothesis import given
from hypothesis import strategies as st

from domain.drift import ALPHA, Answer, answers_reference, answers_signal
from domain.drift.answers import chance_of_so_few, fewest_matches

N = 20


def answers(text: str = "same") -> list[Answer]:
    return [Answer(f"{text} {number}", "m", "f", 7) for number in range(N)]


REFERENCE = answers_reference([answers()] * 3)


def test_the_same_answers_are_unchanged() -> None:
    found = answers_signal(REFERENCE, answers())

    assert (found.state, found.value, found.reasons) == ("unchanged", N, [])


def test_one_different_answer_is_noise() -> None:
    changed = [Answer("new", "m", "f", 7), *answers()[1:]]

    assert answers_signal(REFERENCE, changed).state == "unchanged"


def test_other_answers_flag() -> None:
    found = answers_signal(REFERENCE, answers("other"))

    assert found.state == "flagged"
    assert found.reasons[0].startswith("0 of 20 answers equal the reference's")


def test_other_answers_of_a_noisy_endpoint_are_no_proof() -> None:
    noisy = answers_reference([answers(), answers(), answers("other")])
    half = [*answers()[:8], *answers("other")[8:]]

    assert answers_signal(noisy, half).state == "unchanged"


def test_too_few_answers_are_unmeasured() -> None:
    found = answers_signal(REFERENCE, [*answers("other")[:15], *[None] * 5])

    assert found.state == "unmeasured"
    assert found.reasons == ["Only 15 of 20 answers came."]


@given(st.integers(0, 40), st.integers(1, 30))
def test_an_unchanged_round_flags_in_fewer_than_one_of_a_thousand(matched: int, asked: int) -> None:
    fewest = fewest_matches(matched, 40, asked)

    assert fewest == 0 or chance_of_so_few(matched, 40, asked, fewest - 1) < ALPHA


@given(st.integers(0, N), st.integers(0, 40))
def test_fewer_matches_are_never_less_suspicious(same: int, matched: int) -> None:
    fewer = chance_of_so_few(matched, 40, N, same)

    assert 0 <= fewer <= chance_of_so_few(matched, 40, N, min(N, same + 1)) <= 1 + 1e-9
