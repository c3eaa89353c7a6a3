import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.engine import speculative
from workers.engine.speculative import DRAFT, Drafter, accepted, own_continuation


def test_what_followed_the_longest_match_is_proposed() -> None:
    assert Drafter().propose([1, 2, 3, 4, 9, 2, 7, 1, 2, 3])[:2] == [4, 9]


def test_of_equal_matches_the_latest_counts() -> None:
    assert own_continuation([5, 1, 5, 2, 5], 1)[0] == 2


def test_nothing_is_proposed_where_nothing_repeats() -> None:
    assert Drafter().propose([1, 2, 3, 4]) == []


def test_finished_answers_are_looked_up_too() -> None:
    drafter = Drafter()
    drafter.learn([1, 2, 3, 10, 11, 12, 13, 14], start=3)

    assert drafter.propose([7, 8, 10, 11]) == [12, 13, 14]


def test_the_latest_answer_replaces_an_older_one() -> None:
    drafter = Drafter()
    drafter.learn([1, 2, 3, 4, 10, 11, 12], start=4)
    drafter.learn([1, 2, 3, 4, 10, 11, 99], start=4)

    assert drafter.propose([8, 10, 11]) == [99]


def test_memory_of_answers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speculative, "_KEPT", 30)
    drafter = Drafter()

    for start in range(0, 1000, 10):
        drafter.learn(list(range(start, start + 10)), start=4)

    assert drafter.propose([500, 4, 5]) == []
    assert drafter.propose([500, 996, 997]) == [998, 999]


def test_only_what_the_model_chose_itself_is_accepted() -> None:
    assert accepted([4, 5, 6], [4, 5, 9, 1]) == 2
    assert accepted([4, 5], [4, 5, 6]) == 2
    assert accepted([], [4]) == 0


@settings(deadline=None)
@given(st.lists(st.integers(min_value=0, max_value=4), max_size=40))
def test_a_proposal_is_a_piece_of_the_text_after_a_copy_of_its_ending(tokens: list[int]) -> None:
    draft = Drafter().propose(tokens)

    assert len(draft) <= DRAFT
    if draft:
        text = ",".join(map(str, tokens))
        assert ",".join(map(str, [tokens[-1], *draft])) in text
