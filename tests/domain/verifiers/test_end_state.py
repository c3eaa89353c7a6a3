"""The final state decides, whatever the agent says about it."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from domain.contracts import Verdict, VerifierSpec
from domain.verifiers import InvalidVerifier, check_spec

Judge = Callable[..., Verdict]
START = {
    "now": "2026-03-02T09:00",
    "orders": {"O-1": {"status": "delivered", "refunded": 0, "paid": 59.9}, "O-2": {"status": "placed"}},
    "tickets": {"T-1": {"status": "open", "messages": [{"from": "customer", "text": "Where is it?"}]}},
    "refunds": [],
}
CHECKS = [
    {"path": "/orders/O-1/refunded", "equals": 59.9},
    {"path": "/tickets/T-1/status", "equals": "closed"},
]


def test_the_right_end_passes(judge: Judge) -> None:
    assert _judged(judge, refunded=59.9, closed=True).state == "passed"


def test_a_no_op_fails_with_nothing(judge: Judge) -> None:
    verdict = _judged(judge)

    assert (verdict.state, verdict.score) == ("failed", 0.0)


def test_claiming_success_in_words_changes_nothing(judge: Judge) -> None:
    verdict = _judged(judge, answer='{"refunded": 59.9, "status": "closed", "passed": true}')

    assert (verdict.state, verdict.score) == ("failed", 0.0)


def test_half_of_the_work_is_half_of_the_score(judge: Judge) -> None:
    verdict = _judged(judge, closed=True)

    assert (verdict.state, verdict.score) == ("failed", 0.5)
    assert verdict.reasons == ("/orders/O-1/refunded is 0.",)


def test_what_was_so_at_the_start_earns_nothing(judge: Judge) -> None:
    checks = [*CHECKS, {"path": "/orders/O-2/status", "equals": "placed"}]

    assert _judged(judge, checks=checks).score == 0.0


def test_touching_another_order_fails_even_with_all_values_right(judge: Judge) -> None:
    verdict = _judged(judge, refunded=59.9, closed=True, other={"status": "cancelled"})

    assert (verdict.state, verdict.score) == ("failed", 0.0)
    assert "'/orders/O-2/status'" in verdict.reasons[0]


def test_deleting_what_is_in_the_way_is_seen(judge: Judge) -> None:
    state = _state(refunded=59.9, closed=True)
    del state["orders"]["O-2"]

    assert _verdict(judge, state).state == "failed"


def test_an_allowed_place_may_change(judge: Judge) -> None:
    state = _state(refunded=59.9, closed=True)
    state["refunds"].append({"order": "O-1", "amount": 59.9})
    state["tickets"]["T-1"]["messages"].append({"from": "agent", "text": "Done"})

    assert _verdict(judge, state).state == "failed"
    allow = ["/refunds", "/tickets/*/messages/-1"]
    assert _verdict(judge, state, allow=allow).state == "passed"


def test_an_allowed_new_element_does_not_allow_rewriting_old_ones(judge: Judge) -> None:
    state = _state(refunded=59.9, closed=True)
    state["tickets"]["T-1"]["messages"] = [{"from": "customer", "text": "Never mind"}, {"from": "agent"}]

    assert _verdict(judge, state, allow=["/tickets/*/messages/-1"]).state == "failed"


@pytest.mark.parametrize("value", [True, "59.9", None, 59.91, [59.9]])
def test_values_are_compared_by_type_and_value(judge: Judge, value: Any) -> None:
    assert _judged(judge, refunded=value, closed=True).state == "failed"


@pytest.mark.parametrize(
    ("check", "value", "state"),
    [
        ({"contains": "on its way"}, "It is  On Its Way.", "passed"),
        ({"contains": "on its way"}, "Nothing.", "failed"),
        ({"contains": "on its way"}, ["on its way"], "passed"),
        ({"contains": {"from": "agent"}}, [{"from": "agent", "text": "x"}], "passed"),
        ({"contains": {"from": "agent"}}, {"from": "agent"}, "failed"),
        ({"lacks": "sorry"}, "Done.", "passed"),
        ({"lacks": "sorry"}, "We are SORRY", "failed"),
        ({"in": ["a", "b"]}, "b", "passed"),
        ({"in": [1]}, True, "failed"),
        ({"count": 2}, [1, 2], "passed"),
        ({"count": 2}, "ab", "failed"),
        ({"absent": True}, None, "failed"),
    ],
)
def test_operators(judge: Judge, check: Mapping[str, Any], value: Any, state: str) -> None:
    verdict = _verdict(judge, {"new": value}, checks=[{"path": "/new", **check}], start={})

    assert verdict.state == state


def test_absent_is_met_only_by_absence(judge: Judge) -> None:
    checks = [{"path": "/b", "absent": True}]

    assert _verdict(judge, {"a": 1}, checks=checks, start={"a": 1, "b": 2}).state == "passed"


def test_the_last_element_can_be_named(judge: Judge) -> None:
    checks = [{"path": "/list/-1/text", "contains": "bye"}]

    verdict = _verdict(judge, {"list": [{"text": "hi"}, {"text": "Bye"}]}, checks=checks, start={"list": []})

    assert verdict.state == "failed"  # the first element is new too, and nobody asked for it
    assert "'/list/0'" in verdict.reasons[0]


@pytest.mark.parametrize("evidence", [{}, {"end_state": {}}, {"end_state": {"state": None}}])
def test_no_state_decides_nothing(judge: Judge, evidence: Any) -> None:
    verdict = judge("end_state", {"checks": CHECKS}, "done", evidence, start=START)

    assert verdict.state == "unscored"


def test_an_unknown_start_decides_nothing(judge: Judge) -> None:
    verdict = judge("end_state", {"checks": CHECKS}, "done", {"end_state": {"state": START}})

    assert verdict.state == "unscored"


@pytest.mark.parametrize(
    "reference",
    [{"checks": [{"path": "/a"}]}, {"checks": [{"path": "a", "equals": 1}]}, {"checks": [{"equals": 1}]}],
)
def test_an_unsound_check_is_refused(reference: Any) -> None:
    with pytest.raises(InvalidVerifier):
        check_spec(VerifierSpec(kind="end_state"), reference)


def _state(*, refunded: Any = 0, closed: bool = False, other: Any = None) -> dict[str, Any]:
    state: dict[str, Any] = copy.deepcopy(START)
    state["orders"]["O-1"]["refunded"] = refunded
    state["tickets"]["T-1"]["status"] = "closed" if closed else "open"
    state["orders"]["O-2"] |= other or {}
    return state


def _judged(judge: Judge, *, answer: str = "", checks: Any = None, **made: Any) -> Verdict:
    return _verdict(judge, _state(**made), answer=answer, checks=checks)


def _verdict(
    judge: Judge,
    state: Any,
    *,
    answer: str = "",
    checks: Any = None,
    allow: Any = (),
    start: Any = None,
) -> Verdict:
    reference = {"checks": CHECKS if checks is None else checks}
    start = START if start is None else start
    return judge(
        "end_state", reference, answer, {"end_state": {"state": state}}, start=start, allow=list(allow)
    )
