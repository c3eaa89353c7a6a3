"""Calls on the way: made, not made, in order, as often as asked."""

from collections.abc import Callable
from typing import Any

import pytest

from domain.contracts import Verdict, VerifierSpec
from domain.rewards import episode_reward
from domain.verifiers import InvalidVerifier, check_spec

Judge = Callable[..., Verdict]
REQUIRED = [
    {"name": "get_order", "arguments": {"order": "O-1"}, "more": True},
    {"name": "refund_order", "arguments": {"order": "O-1", "amount": 10}},
]
LOOK = {"name": "get_order", "arguments": {"order": "O-1"}, "ok": True}
REFUND = {"name": "refund_order", "arguments": {"order": "O-1", "amount": 10.0, "reason": "late"}, "ok": True}


def test_required_calls_pass_whatever_free_arguments_say(judge: Judge) -> None:
    assert _judged(judge, [LOOK, REFUND]).state == "passed"


def test_no_calls_fail_with_nothing(judge: Judge) -> None:
    verdict = _judged(judge, [])

    assert (verdict.state, verdict.score) == ("failed", 0.0)


def test_words_about_calls_are_no_calls(judge: Judge) -> None:
    said = '{"calls": [{"name": "refund_order", "ok": true}]} I called get_order and refund_order.'

    assert _judged(judge, [], answer=said).state == "failed"


def test_a_call_that_was_refused_was_not_made(judge: Judge) -> None:
    assert _judged(judge, [LOOK, REFUND | {"ok": False}]).state == "failed"


@pytest.mark.parametrize("ok", [1, "true", None])
def test_only_true_is_true(judge: Judge, ok: Any) -> None:
    assert _judged(judge, [LOOK, REFUND | {"ok": ok}]).state == "failed"


@pytest.mark.parametrize("amount", ["10", 11, True, None])
def test_arguments_are_compared_by_type_and_value(judge: Judge, amount: Any) -> None:
    call = {"name": "refund_order", "arguments": {"order": "O-1", "amount": amount}, "ok": True}

    assert _judged(judge, [LOOK, call]).state == "failed"


def test_two_equal_calls_are_two_calls(judge: Judge) -> None:
    verdict = _judged(judge, [LOOK, REFUND, REFUND])

    assert (verdict.state, verdict.score) == ("failed", 0.0)
    assert "more often than asked" in verdict.reasons[0]


def test_a_call_that_may_be_repeated_may(judge: Judge) -> None:
    assert _judged(judge, [LOOK, LOOK, LOOK, REFUND]).state == "passed"


def test_one_call_does_not_fulfil_two_equal_requirements(judge: Judge) -> None:
    twice = [{"name": "remind"}, {"name": "remind"}]
    call = {"name": "remind", "arguments": {}, "ok": True}

    assert _judged(judge, [call], required=twice).state == "failed"
    assert _judged(judge, [call, call], required=twice).state == "passed"


def test_overlapping_requirements_are_matched_as_well_as_they_can_be(judge: Judge) -> None:
    loose_first = [{"name": "note"}, {"name": "note", "arguments": {"text": "a"}}]
    calls = [{"name": "note", "arguments": {"text": text}, "ok": True} for text in "ab"]

    assert _judged(judge, calls, required=loose_first).state == "passed"


def test_a_forbidden_call_fails_even_when_it_was_refused(judge: Judge) -> None:
    forbidden = [{"name": "cancel_order"}]
    attempt = {"name": "cancel_order", "arguments": {"order": "O-1"}, "ok": False}

    verdict = _judged(judge, [LOOK, REFUND, attempt], forbidden=forbidden)

    assert (verdict.state, verdict.score) == ("failed", 0.0)


def test_order_is_kept(judge: Judge) -> None:
    order = [["get_order", "refund_order"]]

    assert _judged(judge, [LOOK, REFUND], order=order).state == "passed"
    assert _judged(judge, [REFUND, LOOK], order=order).state == "failed"


def test_trying_everything_is_caught_by_the_number_of_calls(judge: Judge) -> None:
    guesses = [{"name": "get_order", "arguments": {"order": f"O-{n}"}, "ok": True} for n in range(9)]

    assert _judged(judge, [*guesses, REFUND], max_calls=4).state == "failed"


def test_other_calls_can_be_forbidden(judge: Judge) -> None:
    other = {"name": "list_tickets", "arguments": {}, "ok": True}

    assert _judged(judge, [LOOK, other, REFUND]).state == "passed"
    assert _judged(judge, [LOOK, other, REFUND], allow_other=False).state == "failed"


def test_parts_done_are_process_and_pay_less_than_any_success(judge: Judge) -> None:
    part, whole = _judged(judge, [LOOK]), _judged(judge, [LOOK, REFUND])

    rewards = [episode_reward(verdict).value or 0.0 for verdict in (_judged(judge, []), part, whole)]

    assert [check.role for check in part.checks if check.name.startswith("get_order")] == ["process"]
    assert 0.0 == rewards[0] < rewards[1] <= 0.2 < rewards[2]


@pytest.mark.parametrize(
    "evidence", [{}, {"trace": {}}, {"trace": {"calls": "none"}}, {"trace": {"calls": [1]}}]
)
def test_no_trace_decides_nothing(judge: Judge, evidence: Any) -> None:
    assert judge("trace", {"required": REQUIRED}, "", evidence).state == "unscored"


@pytest.mark.parametrize(
    ("params", "reference"),
    [
        ({}, {}),
        ({"allow_other": False}, {"forbidden": [{"name": "a"}]}),
        ({"order": [["a"]]}, {"required": [{"name": "a"}]}),
        ({}, {"required": [{"arguments": {}}]}),
    ],
)
def test_an_unsound_specification_is_refused(params: Any, reference: Any) -> None:
    with pytest.raises(InvalidVerifier):
        check_spec(VerifierSpec(kind="trace", params=params), reference)


def _judged(
    judge: Judge,
    calls: Any,
    *,
    answer: str = "",
    required: Any = None,
    forbidden: Any = (),
    **params: Any,
) -> Verdict:
    reference = {"required": REQUIRED if required is None else required, "forbidden": list(forbidden)}
    return judge("trace", reference, answer, {"trace": {"calls": calls}}, **params)
