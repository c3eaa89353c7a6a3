"""Texts that an answer must hold, or must not."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.contracts import ChatMessage, TaskSpec, VerifierSpec
from domain.verifiers import verify


@pytest.mark.parametrize(
    ("params", "answer", "state", "score"),
    [
        ({"texts": ["refund", "Monday"]}, "A refund on Monday.", "passed", 1.0),
        ({"texts": ["refund", "Monday"]}, "A refund soon.", "failed", 0.5),
        ({"texts": ["Refund"]}, "A refund.", "failed", 0.0),
        ({"texts": ["Refund"], "ignore_case": True}, "A refund.", "passed", 1.0),
        ({"texts": ["STRASSE"], "ignore_case": True}, "Hauptstraße 1", "passed", 1.0),
        ({"texts": ["a", "b"], "mode": "any"}, "xbx", "passed", 1.0),
        ({"texts": ["a", "b"], "mode": "any"}, "xyz", "failed", 0.0),
        ({"texts": ["sorry", "cannot"], "mode": "none"}, "Here it is.", "passed", 1.0),
        ({"texts": ["sorry", "cannot"], "mode": "none"}, "I am sorry.", "failed", 0.0),
        ({"texts": ["Dear"], "where": "start"}, "\n Dear Ann", "passed", 1.0),
        ({"texts": ["Dear"], "where": "start"}, "My Dear", "failed", 0.0),
        ({"texts": ["Yours"], "where": "end"}, "Yours \n", "passed", 1.0),
        ({"texts": ["Yours"], "where": "end"}, "Yours, Ann", "failed", 0.0),
        ({"texts": ["Yours"], "where": "end", "mode": "none"}, "Yours, Ann", "passed", 1.0),
        ({"texts": ["日本"]}, "これは日本です", "passed", 1.0),
    ],
)
def test_texts_are_looked_for_where_they_must_be(
    judge: Any, params: Any, answer: str, state: str, score: float
) -> None:
    verdict = judge("contains", None, answer, **params)

    assert (verdict.state, verdict.score) == (state, score)


def test_every_missing_text_is_named(judge: Any) -> None:
    verdict = judge("contains", None, "x", texts=["a", "b"])

    assert verdict.reasons == (
        "'a' does not stand in the answer.",
        "'b' does not stand in the answer.",
    )


def test_a_forbidden_text_that_is_there_is_a_guard(judge: Any) -> None:
    (check,) = judge("contains", None, "I am sorry", texts=["sorry"], mode="none").checks

    assert (check.role, check.score) == ("guard", 0.0)


def test_three_megabytes_are_read_in_seconds(judge: Any) -> None:
    answer = "ab" * 1_500_000
    texts = [f"{'ab' * 900}{index}" for index in range(100)]
    began = time.thread_time()

    verdict = judge("contains", None, answer, texts=texts, ignore_case=True)

    assert verdict.state == "failed"
    assert time.thread_time() - began < 20.0


@given(st.text(max_size=30), st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=4, unique=True))
def test_none_is_the_opposite_of_any(answer: str, texts: list[str]) -> None:
    texts = [text for text in texts if text.strip()] or ["a"]
    states = {}
    for mode in ("any", "none"):
        task = TaskSpec(
            id="t",
            family="f",
            messages=(ChatMessage(role="user", content="?"),),
            verifier=VerifierSpec(kind="contains", params={"texts": texts, "mode": mode}),
            reference=None,
        )
        states[mode] = verify(task, answer, {}).state

    assert set(states.values()) == {"passed", "failed"}
