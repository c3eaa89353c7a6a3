"""A support ticket is closed as the rules of the house demand.

Looked at is the ticket in the end state of the environment: status, resolution code, queue, priority
and tags by value, and the last reply to the customer by the rules for prose; what is forbidden is
forbidden in earlier replies too. Where a task has no environment, the answer is the closure itself, as
one JSON object with the same fields and ``reply``.
"""

from collections.abc import Mapping
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict, VerifierSpec
from domain.verifiers import registry
from domain.verifiers.base import Evidence, InvalidVerifier, VerifierKind, failed, passed, shown, unscored
from domain.verifiers.exact import normalized
from domain.verifiers.strict_json import NotStrictJson, parse_strict_object

EVIDENCE = "end_state"
_FIELDS = ("status", "resolution", "queue", "priority", "tags")


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    params, reference = task.verifier.params, task.reference
    if params.get("ticket"):
        report = evidence.get(EVIDENCE)
        if not isinstance(report, Mapping) or not isinstance(report.get("state"), Mapping):
            return unscored("The end state is missing: no environment reported it.")
        tickets = report["state"].get("tickets", {}).get("tickets", {})
        if params["ticket"] not in tickets:
            return failed(f"There is no ticket {params['ticket']}.")
        ticket = tickets[params["ticket"]]
        said = _replies(ticket)
    else:
        try:
            ticket = parse_strict_object(answer, fence=params.get("fence", False))
        except NotStrictJson as error:
            return failed(
                str(error), checks=[Check(name="json", role="format", score=0.0, reason=str(error))]
            )
        said = [reply] if isinstance(reply := ticket.get("reply"), str) and reply.strip() else []

    checks = [_field_check(name, ticket.get(name), reference[name]) for name in _FIELDS if name in reference]
    if "reply" in params:
        checks += _reply_checks(task, said)
    reasons = [check.reason for check in checks if check.reason]
    if not reasons:
        return passed(checks)
    terminal = [check.score for check in checks if check.role == "terminal" and check.score is not None]
    broken = any(check.role == "guard" and check.score == 0.0 for check in checks)
    done = (
        _field_check("status", ticket.get("status"), reference["status"]).score
        if "status" in reference
        else 1.0
    )
    score = 0.0 if broken or not done else sum(terminal) / len(terminal)
    return failed(*reasons, score=min(score, 0.99), checks=checks)


def _replies(ticket: Mapping[str, Any]) -> list[str]:
    """What the agent wrote since the customer last did."""
    said: list[str] = []
    for entry in ticket.get("messages", []):
        said = [*said, entry["text"]] if entry.get("from") == "agent" else []
    return said


def _field_check(name: str, got: Any, wanted: Any) -> Check:
    """``wanted`` is a value, a list of values of which one is right, or for tags all that there are."""
    if name == "tags":
        have = {normalized(str(tag)) for tag in got} if isinstance(got, list) else set()
        asked = {normalized(tag) for tag in wanted}
        missing, more = sorted(asked - have), sorted(have - asked)
        reason = f"The tag {shown(more[0], 40)} does not belong." if more else ""
        reason = f"The tag {missing[0]!r} is missing." if missing else reason
    else:
        accepted = wanted if isinstance(wanted, list) else [wanted]
        fits = isinstance(got, str) and normalized(got) in {normalized(value) for value in accepted}
        reason = "" if fits else f"The ticket's {name} is {shown(got, 60)}, which is not right."
    return Check(name=name, score=0.0 if reason else 1.0, reason=reason)


def _reply_checks(task: TaskSpec, said: list[str]) -> list[Check]:
    """The rules for prose on the last reply; what is forbidden is forbidden in every reply."""
    if not any(reply.strip() for reply in said):
        return [Check(name="reply", score=0.0, reason="The customer got no reply.")]
    rules = task.verifier.params["reply"]
    checks = _by_rules(task, rules, said[-1])
    if len(said) > 1 and rules.get("forbidden"):
        earlier = {"forbidden": rules["forbidden"], "required": rules["required"]}
        checks += [
            check for check in _by_rules(task, earlier, "\n\n".join(said[:-1])) if check.role == "guard"
        ]
    return [check.model_copy(update={"name": f"reply: {check.name}"}) for check in checks]


def _by_rules(task: TaskSpec, rules: Mapping[str, Any], text: str) -> list[Check]:
    spec = VerifierSpec(kind="rules", params=dict(rules))
    nested = task.model_copy(update={"verifier": spec, "reference": None})
    return list(registry.verify(nested, text, {}).checks)


def _check(params: Mapping[str, Any], reference: Any) -> None:
    if "resolution" not in reference and "queue" not in reference:
        raise InvalidVerifier("Verifier 'ticket', reference: a resolution or a queue must be given.")
    if "reply" in params:
        registry.check_spec(VerifierSpec(kind="rules", params=params["reply"]), None)
        if not params["reply"].get("required"):
            raise InvalidVerifier("Verifier 'ticket': a reply needs a fact that it must state.")


_VALUE = {"anyOf": [{"type": "string"}, {"type": "array", "minItems": 1, "items": {"type": "string"}}]}
KIND = VerifierKind(
    name="ticket",
    title="Ticket closure",
    description=(
        "The ticket ends with the right status, resolution code, queue, priority and tags, and the last "
        "reply to the customer states what it must and promises nothing it must not."
    ),
    verify=_verify,
    needs=frozenset({EVIDENCE}),
    params_schema={
        "type": "object",
        "properties": {
            "ticket": {"type": "string", "minLength": 1},
            "reply": {"type": "object"},
            "fence": {"type": "boolean"},
        },
        "additionalProperties": False,
    },
    reference_schema={
        "type": "object",
        "minProperties": 1,
        "properties": {
            **{name: _VALUE for name in _FIELDS if name != "tags"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "additionalProperties": False,
    },
    check=_check,
)
