"""Captures: taking exchanges in, always encrypted, and what becomes of them until they are anonymized.

Leaves out the anonymization itself (``anonymizer``) and what the gateway reports (``inferences``).
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.core.crypto import InvalidToken, decrypt_json, encrypt_json, keyed_hash
from apps.core.dispatch import dispatch
from apps.core.errors import Refused
from apps.core.events import publish
from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.feedback.cases import case_open
from apps.feedback.contents import MAX_ITEMS, Invalid, content_checked, identifier_checked
from apps.feedback.models import Capture, FeedbackSignal, HeldExchange
from apps.versions.models import ModelVersion

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 5
RESEND_AFTER = timedelta(seconds=20)
SWEEP_BATCH = 200


def captures_ingest(
    *, project: Project, items: Sequence[Mapping[str, Any]], by: Actor
) -> list[dict[str, str]]:
    """Take 1–1,000 exchanges; the answer says for each ``created``, ``exists`` or ``invalid``.

    The first of two items with one ``external_id`` counts. Raises ``Refused`` for an empty or too
    long list; a bad item spoils only itself.
    """
    if not 1 <= len(items) <= MAX_ITEMS:
        raise Refused(f"Send 1 to {MAX_ITEMS:,} items; these are {len(items):,}.", code="items_count")
    results: list[dict[str, str]] = []
    fresh: dict[str, Capture] = {}
    for item in items:
        try:
            capture = _capture_of(project, item)
        except Invalid as refused:
            given = item.get("external_id") if isinstance(item, Mapping) else None
            shown = str(given) if _is_identifier(given) else ""
            results.append({"external_id": shown, "status": "invalid", "message": str(refused)})
            continue
        status = "exists" if capture.external_id in fresh else "created"
        fresh.setdefault(capture.external_id, capture)
        results.append({"external_id": capture.external_id, "status": status, "message": ""})
    known = captures_store(captures=list(fresh.values()))
    for result in results:
        if result["status"] == "created" and result["external_id"] in known:
            result["status"] = "exists"
    created = sum(result["status"] == "created" for result in results)
    if created:
        audit(actor=by, action="captures.ingest", created=created)
    return results


def case_capture(
    *,
    project: Project,
    source: str,
    external_id: str,
    content: Mapping[str, Any],
    family: str = "",
    cluster: str = "",
    operation: str = "",
    version: ModelVersion | None = None,
    failed: bool = True,
) -> Capture:
    """Take one exchange from inside the application (a failed result of an evaluation).

    Idempotent on ``external_id``. Raises ``Refused`` when the content is malformed.
    """
    try:
        checked = content_checked(content)
    except Invalid as refused:
        raise Refused(str(refused), code="content_invalid") from None
    capture = Capture(
        project=project,
        source=source,
        external_id=external_id[:120],
        family=family[:100],
        cluster=cluster_key(cluster),
        operation=operation,
        version=version,
        failed=failed,
        raw=encrypt_json(checked),
        raw_expires_at=_expiry(),
    )
    captures_store(captures=[capture])
    return Capture.objects.get(project=project, external_id=capture.external_id)


def captures_store(*, captures: list[Capture]) -> set[str]:
    """Insert what is new and send it to be anonymized; returns the external ids that existed.

    All captures belong to one project.
    """
    if not captures:
        return set()
    project = captures[0].project
    ids = [capture.external_id for capture in captures]
    with transaction.atomic():
        mine = Capture.objects.filter(project=project, external_id__in=ids)
        known = set(mine.values_list("external_id", flat=True))
        now = timezone.now()
        new = [capture for capture in captures if capture.external_id not in known]
        for capture in new:
            capture.dispatched_at = now
        Capture.objects.bulk_create(new, ignore_conflicts=True, batch_size=200)
        fresh = [external_id for external_id in ids if external_id not in known]
        for pk in mine.filter(external_id__in=fresh).order_by("pk").values_list("pk", flat=True):
            dispatch("feedback.anonymize", pk, queue="anonymize")
        if fresh:
            publish(project=project, topic="feedback.captures", kind="CapturesTaken", count=len(fresh))
    return known


def captures_fail(*, captures: Iterable[Capture]) -> None:
    """Count these exchanges as failures from now on; what is anonymized becomes a case at once."""
    for capture in captures:
        if not capture.failed:
            capture.failed = True
            capture.save(update_fields=["failed"])
        if capture.state == Capture.State.ANONYMIZED:
            case_open(capture=capture)


def held_claim(*, held: HeldExchange, family: str, version_id: int | None) -> Capture:
    """Turn a held exchange into a capture that failed: feedback said so in time."""
    capture = Capture(
        project=held.project,
        source=Capture.Source.FEEDBACK,
        external_id=held.external_id,
        operation=held.operation,
        family=family,
        cluster=held.cluster,
        version_id=version_id,
        failed=True,
        raw=held.raw,
        raw_expires_at=_expiry(),
    )
    captures_store(captures=[capture])
    held.delete()
    return Capture.objects.get(project=capture.project, external_id=capture.external_id)


def capture_anonymize(*, capture: Capture) -> Capture:
    """Replace the ciphertext by anonymized content, in one transaction; a failure becomes a case.

    Does nothing for a capture that is done. What cannot be anonymized is refused after five
    attempts, and its ciphertext deleted.
    """
    from apps.feedback import anonymizer

    rules = anonymizer.rules_in_force(capture.project)
    locked = Capture.objects.select_related("project").get(pk=capture.pk)
    if locked.state != Capture.State.RAW:
        return locked
    signals = list(_waiting_signals(locked))
    try:
        content = decrypt_json(bytes(locked.raw or b""))
        said = [decrypt_json(bytes(signal.raw)) for signal in signals]
        done = anonymizer.anonymize_content(_with_feedback(content, signals, said), rules)
    except Exception as error:  # whatever it is: counted, tried again, and refused in the end
        logger.warning("capture not anonymized capture=%s type=%s", locked.pk, type(error).__name__)
        return _attempt_failed(locked, error)
    with transaction.atomic():
        locked = Capture.objects.select_for_update().select_related("project").get(pk=capture.pk)
        if locked.state != Capture.State.RAW:
            return locked
        locked.state, locked.raw, locked.content = Capture.State.ANONYMIZED, None, done.content
        locked.spans, locked.pseudonyms = done.spans, done.pseudonyms
        locked.rules_number, locked.anonymized_at, locked.error = rules.number, timezone.now(), ""
        locked.save()
        _signals_done(signals, done.content.get("feedback", []))
        publish(
            project=locked.project, topic="feedback.captures", kind="CaptureAnonymized", capture=locked.pk
        )
        if locked.failed:
            case_open(capture=locked)
        for pk in _waiting_signals(locked).values_list("pk", flat=True):  # came while we worked
            dispatch("feedback.anonymize_signal", pk, queue="anonymize")
    return locked


def signal_anonymize(*, signal: FeedbackSignal) -> None:
    """Anonymize feedback that came after its exchange, with that exchange's pseudonyms."""
    from apps.feedback import anonymizer

    if signal.raw is None:
        return
    capture = Capture.objects.filter(
        project=signal.project, operation=signal.operation, state=Capture.State.ANONYMIZED
    ).first()
    rules = anonymizer.rules_in_force(signal.project)
    said = decrypt_json(bytes(signal.raw))
    done = anonymizer.anonymize_content(said, rules, known=capture.pseudonyms if capture else {})
    with transaction.atomic():
        updated = FeedbackSignal.objects.filter(pk=signal.pk, updated_at=signal.updated_at).update(
            raw=None, content=done.content
        )
        if not updated or capture is None:
            return
        capture = Capture.objects.select_for_update().get(pk=capture.pk)
        assert capture.content is not None
        capture.content = _with_feedback(capture.content, [signal], [done.content])
        capture.pseudonyms |= done.pseudonyms
        capture.save(update_fields=["content", "pseudonyms"])


def captures_sweep() -> int:
    """Send again what waits too long, and delete raw text past its time; returns how many changed."""
    now = timezone.now()
    expired = Capture.objects.filter(state=Capture.State.RAW, raw_expires_at__lt=now).update(
        state=Capture.State.EXPIRED, raw=None, error="It was not anonymized in time; its text is deleted."
    )
    expired += HeldExchange.objects.filter(expires_at__lt=now).delete()[0]
    late = Capture.objects.filter(state=Capture.State.RAW).filter(
        Q(dispatched_at__lt=now - RESEND_AFTER) | Q(dispatched_at=None)
    )
    ids = list(late.order_by("pk").values_list("pk", flat=True)[:SWEEP_BATCH])
    with transaction.atomic():
        Capture.objects.filter(pk__in=ids).update(dispatched_at=now)
        for pk in ids:
            dispatch("feedback.anonymize", pk, queue="anonymize")
        for pk in _late_signals(now):
            dispatch("feedback.anonymize_signal", pk, queue="anonymize")
    return expired + len(ids)


def _late_signals(now: Any) -> list[int]:
    """Feedback that the anonymizer missed; and feedback whose exchange is gone or never came: after
    ten minutes its text stands alone."""
    late, lone = now - RESEND_AFTER, now - timedelta(minutes=10)
    waiting = Capture.objects.filter(state=Capture.State.RAW).exclude(operation="").values("operation")
    ready = Capture.objects.filter(state=Capture.State.ANONYMIZED).exclude(operation="").values("operation")
    due = Q(updated_at__lt=lone) | Q(updated_at__lt=late, operation__in=ready)
    rows = FeedbackSignal.objects.filter(due, raw__isnull=False)
    return list(rows.exclude(operation__in=waiting).values_list("pk", flat=True)[:SWEEP_BATCH])


def cluster_key(value: str) -> str:
    """The cluster as it is stored: itself if it can be nobody's data, else a keyed hash of it."""
    if not value:
        return ""
    try:
        return identifier_checked(value, "cluster")
    except Invalid:
        return keyed_hash("cluster", value)


def _capture_of(project: Project, item: Any) -> Capture:
    if not isinstance(item, Mapping):
        raise Invalid("An item must be an object.")
    failed = item.get("failed", True)
    if not isinstance(failed, bool):
        raise Invalid("failed: must be true or false.")
    return Capture(
        project=project,
        source=Capture.Source.API,
        external_id=identifier_checked(item.get("external_id"), "external_id"),
        operation=identifier_checked(item.get("operation"), "operation", optional=True)[:64],
        family=identifier_checked(item.get("family"), "family", optional=True)[:100],
        cluster=identifier_checked(item.get("cluster"), "cluster", optional=True),
        failed=failed,
        raw=encrypt_json(content_checked(item)),
        raw_expires_at=_expiry(),
    )


def _is_identifier(value: Any) -> bool:
    try:
        return bool(identifier_checked(value, "external_id"))
    except Invalid:
        return False


def _expiry() -> Any:
    return timezone.now() + timedelta(hours=settings.RAW_TTL_HOURS)


def _waiting_signals(capture: Capture) -> Any:
    if not capture.operation:
        return FeedbackSignal.objects.none()
    return FeedbackSignal.objects.filter(
        project=capture.project, operation=capture.operation, raw__isnull=False
    ).order_by("pk")


def _with_feedback(
    content: Mapping[str, Any], signals: list[FeedbackSignal], said: list[dict[str, Any]]
) -> dict[str, Any]:
    """``content`` with what users said about it; the latest correction is the content's."""
    merged = dict(content)
    notes = [note for note in merged.get("feedback", []) if note.get("id") not in {s.pk for s in signals}]
    for signal, words in zip(signals, said, strict=True):
        note = {"id": signal.pk, "metric": signal.metric, "value": signal.value, **words}
        notes.append(note)
        if words.get("correction"):
            merged["correction"] = words["correction"]
    if notes:
        merged["feedback"] = notes
    return merged


def _signals_done(signals: list[FeedbackSignal], notes: list[dict[str, Any]]) -> None:
    by_id = {note["id"]: note for note in notes}
    for signal in signals:
        note = by_id[signal.pk]
        content = {key: note[key] for key in ("comment", "correction") if key in note}
        # A repeat that came in meanwhile keeps its own ciphertext and its own turn.
        FeedbackSignal.objects.filter(pk=signal.pk, updated_at=signal.updated_at).update(
            raw=None, content=content
        )


def _attempt_failed(capture: Capture, error: Exception) -> Capture:
    with transaction.atomic():
        locked = Capture.objects.select_for_update().select_related("project").get(pk=capture.pk)
        if locked.state != Capture.State.RAW:
            return locked
        locked.attempts += 1
        locked.error = _why(error)
        if locked.attempts >= MAX_ATTEMPTS:
            locked.state, locked.raw = Capture.State.REFUSED, None
            publish(
                project=locked.project, topic="feedback.captures", kind="CaptureRefused", capture=locked.pk
            )
        locked.save()
    return locked


def _why(error: Exception) -> str:
    if isinstance(error, InvalidToken):
        return "No encryption key fits this text any more."
    from apps.feedback.anonymizer import CannotAnonymize

    if isinstance(error, CannotAnonymize):
        return str(error)[:200]
    return f"Anonymization broke: {type(error).__name__}."
