"""What an episode's answers took: the first token, all of it, and each token after the first."""

import pytest

from workers.engine.client import ChatCompletion, Completion
from workers.played import Played


def chat(
    latency_ms: float, ttft_ms: float | None = None, tokens: int = 11, **more: bool | int
) -> ChatCompletion:
    return ChatCompletion("x", (), "stop", 5, tokens, "m", ttft_ms, latency_ms, **more)  # type: ignore[arg-type]


def played(*replies: ChatCompletion | Completion) -> Played:
    done = Played()
    for reply in replies:
        done.note(reply)
    return done


def test_a_streamed_answer_has_a_first_token_and_a_pace_after_it() -> None:
    done = played(chat(1200.0, 200.0, 11))

    assert (done.ttft_ms, done.latency_ms, done.per_token_ms) == (200.0, 1200.0, 100.0)


def test_an_answer_in_one_piece_has_neither() -> None:
    done = played(chat(1200.0))

    assert (done.ttft_ms, done.latency_ms, done.per_token_ms) == (None, 1200.0, None)


@pytest.mark.parametrize("tokens", [0, 1])
def test_one_token_has_no_pace(tokens: int) -> None:
    assert played(chat(300.0, 200.0, tokens)).per_token_ms is None


def test_several_turns_add_up_without_their_first_tokens() -> None:
    done = played(chat(1200.0, 200.0, 11), chat(800.0, 600.0, 3), chat(400.0))

    assert done.ttft_ms == 200.0
    assert done.latency_ms == 2400.0
    assert done.per_token_ms == pytest.approx((1000 + 200) / (10 + 2))


def test_the_first_turn_alone_has_the_first_token() -> None:
    assert played(chat(400.0), chat(800.0, 600.0)).ttft_ms is None


def test_attempts_are_counted_beyond_the_first_of_each_turn() -> None:
    assert played(chat(1.0), chat(1.0, attempts=3), chat(1.0, attempts=2)).attempts == 4


@pytest.mark.parametrize(("flags", "cached"), [([], False), ([True, False], False), ([True, True], True)])
def test_an_episode_is_cached_when_all_of_it_is(flags: list[bool], cached: bool) -> None:
    assert played(*(chat(1.0, 1.0, cached=flag) for flag in flags)).cached is cached


def test_tokens_of_an_engine_are_timed_as_a_whole() -> None:
    done = played(Completion((1, 2), (-0.1, -0.2), "x", "stop", 3, 2, "m", 50.0))

    assert (done.ttft_ms, done.latency_ms, done.per_token_ms) == (None, 50.0, None)
