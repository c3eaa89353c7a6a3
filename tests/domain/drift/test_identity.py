"""What an endpoint says of itself."""

import pytest

from domain.drift import Answer, identity_reference, identity_signal

N = 20


def answers(**changes: object) -> list[Answer]:
    fields = {"text": "same", "model": "m", "fingerprint": "f", "prompt_tokens": 7, **changes}
    return [Answer(**fields) for _ in range(N)]  # type: ignore[arg-type]


REFERENCE = identity_reference([answers()] * 3)


def test_the_same_names_and_counts_are_unchanged() -> None:
    assert identity_signal(REFERENCE, answers()).state == "unchanged"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "m-2"}, "calls itself “m-2”, before “m”"),
        ({"fingerprint": "g"}, "fingerprint is new"),
        ({"prompt_tokens": 8}, "20 of 20 prompts now count another number of tokens"),
    ],
)
def test_one_difference_flags(changes: dict[str, object], words: str) -> None:
    found = identity_signal(REFERENCE, answers(**changes))

    assert found.state == "flagged"
    assert words in found.reasons[0]


def test_one_answer_is_enough_for_a_difference() -> None:
    assert identity_signal(REFERENCE, [*answers(model="m-2")[:1], *[None] * 19]).state == "flagged"


def test_no_answer_measures_nothing() -> None:
    assert identity_signal(REFERENCE, [None] * N).state == "unmeasured"


def test_a_fingerprint_that_the_reference_saw_is_not_new() -> None:
    reference = identity_reference([answers(), answers(fingerprint="g"), answers()])

    assert identity_signal(reference, answers(fingerprint="g")).state == "unchanged"


def test_a_fingerprint_that_changes_all_the_time_is_not_judged() -> None:
    passes = [answers(), [row._replace(fingerprint=f"f{n}") for n, row in enumerate(answers())]]

    reference = identity_reference(passes)

    assert identity_signal(reference, answers(fingerprint="new")).state == "unchanged"


def test_token_counts_that_are_no_longer_told_are_no_change_of_the_model() -> None:
    found = identity_signal(REFERENCE, answers(prompt_tokens=None))

    assert (found.state, found.detail["counts_compared"]) == ("unchanged", 0)


def test_token_counts_that_vary_by_themselves_are_not_judged() -> None:
    reference = identity_reference([answers(), answers(prompt_tokens=9)])

    assert identity_signal(reference, answers(prompt_tokens=11)).state == "unchanged"
