"""Decisions about cases. History is append-only: a changed or undone label stays as a row."""

from django.db import transaction
from django.utils import timezone

from apps.core.errors import Conflict, Refused
from apps.core.events import publish
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.feedback.cases import check_lease
from apps.feedback.models import Capture, FailureCase, Label
from apps.feedback.schemas import NOT_A_FAILURE, schema_in_force
from domain.lifecycle import IllegalMove, check_move

MAX_TEXT = 64 * 1024
State = FailureCase.State


def case_label(
    *,
    case: FailureCase,
    kind: str,
    severity: str,
    correction: str = "",
    note: str = "",
    by: Actor,
) -> Label:
    """Decide what went wrong. What was typed is anonymized before it is stored.

    A second decision of the same actor replaces the first. "Not a failure" dismisses the case.
    Raises ``Refused`` for unknown kinds and ``Conflict`` while somebody else holds the lease.
    """
    schema = schema_in_force(case.project)
    _check_choice(kind, [row["slug"] for row in schema.kinds], "kind")
    severities = [row["slug"] for row in schema.severities]
    if kind == NOT_A_FAILURE:
        severity = severity if severity in severities else ""
    else:
        _check_choice(severity, severities, "severity")
    if max(len(correction), len(note)) > MAX_TEXT:
        raise Refused("The correction or note is too long; 64 KiB are enough for everyone.", code="too_long")
    words = _anonymized(case, {"correction": correction.strip(), "note": note.strip()})
    with transaction.atomic():
        case = FailureCase.objects.select_for_update().select_related("project").get(pk=case.pk)
        check_lease(case=case, by=by)
        _move(case, State.DISMISSED if kind == NOT_A_FAILURE else State.LABELLED)
        replaced = Label.objects.filter(case=case, by=by.name, undone_at=None).update(
            undone_at=timezone.now()
        )
        label = Label.objects.create(
            case=case, schema_number=schema.number, kind=kind, severity=severity, by=by.name, **words
        )
        case.kind, case.severity = kind, severity
        case.leased_by, case.leased_until, case.lease_token = "", None, ""
        case.save(update_fields=["state", "kind", "severity", "leased_by", "leased_until", "lease_token"])
        audit(actor=by, action="case.label", obj=case, kind=kind, severity=severity, replaced=bool(replaced))
        publish(project=case.project, topic="feedback.cases", kind="CaseLabelled", case=case.pk)
    return label


def label_undo(*, label: Label, by: Actor) -> FailureCase:
    """Take a decision back; the case follows the latest one that is left, or waits again."""
    if label.by != by.name and not by.may("admin"):
        raise Refused("Only its author or an admin can undo a label.", code="not_yours", status=403)
    with transaction.atomic():
        case = FailureCase.objects.select_for_update().select_related("project").get(pk=label.case_id)
        taken = Label.objects.filter(pk=label.pk, undone_at=None).update(undone_at=timezone.now())
        if not taken:
            raise Conflict("This label was undone or replaced already.", code="label_undone")
        left = Label.objects.filter(case=case, undone_at=None).order_by("-pk").first()
        if left is None:
            _move(case, State.NEW)
        else:
            _move(case, State.DISMISSED if left.kind == NOT_A_FAILURE else State.LABELLED)
        case.kind, case.severity = (left.kind, left.severity) if left else ("", "")
        case.save(update_fields=["state", "kind", "severity"])
        audit(actor=by, action="label.undo", obj=case, label=label.pk)
        publish(project=case.project, topic="feedback.cases", kind="LabelUndone", case=case.pk)
    return case


def cases_label_group(
    *, case: FailureCase, kind: str, severity: str, by: Actor, limit: int = 200
) -> list[Label]:
    """Give every open case of ``case``'s group the same decision, each with its own label; cases that
    somebody else works on are left out. A correction fits one case only and is not copied."""
    now = timezone.now()
    alike = FailureCase.objects.filter(
        project=case.project, group_key=case.group_key, state=State.NEW
    ).select_related("project", "capture")
    return [
        case_label(case=other, kind=kind, severity=severity, by=by)
        for other in alike.order_by("pk")[:limit]
        if other.leased_by in ("", by.name) or other.leased_until is None or other.leased_until <= now
    ]


def move_case(case: FailureCase, new: str) -> None:
    """Set ``case.state`` after ``domain.lifecycle`` agreed; the caller locks and saves."""
    _move(case, new)


def _move(case: FailureCase, new: str) -> None:
    """A changed mind about a dismissed case passes through "to label" again."""
    old = case.state
    if old == new:
        return
    path = [State.NEW, new] if old == State.DISMISSED and new == State.LABELLED else [new]
    for step in path:
        try:
            check_move("case", _word(old), _word(step))
        except IllegalMove:
            raise Conflict(
                f"This case {_sentence(old)}; it cannot be changed any more.", code="illegal_move"
            ) from None
        old = step
    case.state = new


def _word(state: str) -> str:
    """``domain.lifecycle`` names a case that waits for people by what was done to it."""
    return "anonymized" if state == State.NEW else state


def _sentence(state: str) -> str:
    return {State.ASSET: "became a task", State.DISMISSED: "is dismissed"}.get(
        State(state), f"is {State(state).label.lower()}"
    )


def _check_choice(value: str, allowed: list[str], what: str) -> None:
    if not value:
        raise Refused(f"Choose a {what} before saving.", code=f"{what}_missing")
    if value not in allowed:
        raise Refused(f"“{value[:60]}” is not a {what} here.", code=f"{what}_unknown", allowed=allowed)


def _anonymized(case: FailureCase, words: dict[str, str]) -> dict[str, str]:
    if not any(words.values()):
        return words
    from apps.feedback import anonymizer

    anonymizer.get_anonymizer()  # the model takes seconds to load, and must not hold the lock meanwhile
    with transaction.atomic():
        capture = Capture.objects.select_for_update().get(pk=case.capture_id)
        done = anonymizer.anonymize_content(
            words, anonymizer.rules_in_force(case.project), known=capture.pseudonyms
        )
        if done.pseudonyms.keys() - capture.pseudonyms.keys():
            capture.pseudonyms |= done.pseudonyms
            capture.save(update_fields=["pseudonyms"])
    return {"correction": done.content["correction"], "note": done.content["note"]}
