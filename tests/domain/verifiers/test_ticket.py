import json
from typing import Any

import pytest

from domain.contracts import VerifierSpec
from domain.verifiers import InvalidVerifier, check_spec

REPLY = {
    "required": [{"name": "amount", "any": ["19.90"]}],
    "forbidden": [{"name": "promise", "any": ["by tomorrow"]}],
}
REFERENCE = {"status": "closed", "resolution": ["refunded", "refund_full"], "tags": ["late"]}


def state(**changes: Any) -> dict[str, Any]:
    ticket = {
        "status": "closed",
        "resolution": "refunded",
        "tags": ["late"],
        "messages": [
            {"from": "customer", "text": "Where is my money? 19.90!", "at": "2026-03-02T08:00"},
            {"from": "agent", "text": "We paid 19.90 EUR back today.", "at": "2026-03-02T09:00"},
        ],
    }
    return {"end_state": {"state": {"tickets": {"tickets": {"T-1": {**ticket, **changes}}}}}}


def test_a_ticket_that_is_closed_by_the_rules_passes(judge: Any) -> None:
    assert judge("ticket", REFERENCE, "", state(), ticket="T-1", reply=REPLY).state == "passed"


def test_an_open_ticket_earns_nothing(judge: Any) -> None:
    verdict = judge("ticket", REFERENCE, "", state(status="open"), ticket="T-1", reply=REPLY)

    assert verdict.state == "failed"
    assert verdict.score == 0.0


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"resolution": "rejected"}, "resolution"),
        ({"resolution": None}, "resolution"),
        ({"tags": []}, "'late'"),
        ({"tags": ["late", "faulty", "question"]}, "'faulty'"),
        ({"messages": []}, "no reply"),
        ({"messages": [{"from": "customer", "text": "19.90"}]}, "no reply"),
        ({"messages": [{"from": "agent", "text": "We paid 91.90 back."}]}, "amount"),
    ],
)
def test_what_is_wrong_with_a_closure_is_named(judge: Any, changes: Any, named: str) -> None:
    verdict = judge("ticket", REFERENCE, "", state(**changes), ticket="T-1", reply=REPLY)

    assert verdict.state == "failed"
    assert any(named in reason for reason in verdict.reasons)


def test_a_forbidden_promise_earns_nothing(judge: Any) -> None:
    said = [{"from": "agent", "text": "We pay 19.90 back by tomorrow."}]

    assert judge("ticket", REFERENCE, "", state(messages=said), ticket="T-1", reply=REPLY).score == 0.0


def test_only_the_last_reply_counts(judge: Any) -> None:
    said = [{"from": "agent", "text": "We paid 19.90 back."}, {"from": "agent", "text": "Or did we?"}]

    assert judge("ticket", REFERENCE, "", state(messages=said), ticket="T-1", reply=REPLY).state == "failed"


def test_what_is_forbidden_is_forbidden_in_every_reply(judge: Any) -> None:
    right = {"from": "agent", "text": "We paid 19.90 back."}
    promise = {"from": "agent", "text": "You get it by tomorrow."}
    old = [promise, {"from": "customer", "text": "Well?"}, right]

    said = state(messages=[promise, right])
    assert judge("ticket", REFERENCE, "", said, ticket="T-1", reply=REPLY).score == 0.0
    assert judge("ticket", REFERENCE, "", state(messages=old), ticket="T-1", reply=REPLY).state == "passed"


def test_without_an_end_state_nothing_is_decided(judge: Any) -> None:
    assert judge("ticket", REFERENCE, "closed", {}, ticket="T-1").state == "unscored"
    assert judge("ticket", REFERENCE, "closed", {"end_state": {}}, ticket="T-1").state == "unscored"


def test_a_closure_may_be_the_answer_itself(judge: Any) -> None:
    right = {"status": "closed", "resolution": "Refunded", "tags": ["late"], "reply": "We paid 19.90 back."}

    assert judge("ticket", REFERENCE, json.dumps(right), reply=REPLY).state == "passed"
    assert judge("ticket", REFERENCE, json.dumps({**right, "reply": ""}), reply=REPLY).state == "failed"
    assert judge("ticket", REFERENCE, "closed, refunded", reply=REPLY).state == "failed"


def test_a_closure_without_a_code_or_queue_is_no_specification() -> None:
    with pytest.raises(InvalidVerifier, match="resolution or a queue"):
        check_spec(VerifierSpec(kind="ticket", params={"ticket": "T-1"}), {"status": "closed"})
    with pytest.raises(InvalidVerifier, match="empty answer"):
        check_spec(VerifierSpec(kind="ticket", params={"reply": {}}), {"resolution": "x"})
