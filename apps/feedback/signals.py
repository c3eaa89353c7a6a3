"""Feedback about operations: ratings, comments, corrections. It may come before the operation's row."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.core.crypto import encrypt_json
from apps.core.dispatch import dispatch
from apps.core.errors import Refused
from apps.core.models import Project
from apps.core.permissions import Actor
from apps.feedback.captures import captures_fail, held_claim
from apps.feedback.contents import MAX_ITEM_BYTES, MAX_ITEMS, Invalid, identifier_checked
from apps.feedback.models import Capture, FeedbackSignal, HeldExchange, Inference
from apps.versions.services import UnitObservation, release_units_record
from domain.storable import storable

_BAD_WORDS = frozenset({"down", "negative", "bad", "no", "dislike"})
_GOOD_WORDS = frozenset({"up", "positive", "good", "yes", "like", "neutral"})
_OF_FIVE = frozenset({"rating", "stars"})


def signals_ingest(
    *, project: Project, items: Sequence[Mapping[str, Any]], by: Actor
) -> list[dict[str, str]]:
    """Take 1–1,000 pieces of feedback: ``{"operation", "metric", "value", "comment", "correction",
    "external_id"}``. One record per ``external_id`` (default: operation and metric), updated on repeat.

    Each result says ``created``, ``updated`` or ``invalid``. Text stays encrypted until anonymized.
    """
    if not 1 <= len(items) <= MAX_ITEMS:
        raise Refused(f"Send 1 to {MAX_ITEMS:,} items; these are {len(items):,}.", code="items_count")
    results: list[dict[str, str]] = []
    wanted: dict[str, FeedbackSignal] = {}
    for item in items:
        try:
            signal = _signal_of(project, item)
        except Invalid as refused:
            results.append({"external_id": "", "status": "invalid", "message": str(refused)})
            continue
        status = "updated" if signal.external_id in wanted else "created"
        wanted[signal.external_id] = signal
        results.append({"external_id": signal.external_id, "status": status, "message": ""})
    known = _store(project, wanted)
    for result in results:
        if result["status"] == "created" and result["external_id"] in known:
            result["status"] = "updated"
    return results


def signals_join(*, project: Project, operations: Iterable[str]) -> None:
    """Connect feedback with what is known of its operations. Running twice is harmless.

    A negative signal or a correction makes the exchange a failure, also for a running release.
    """
    names = sorted(set(operations))
    signals = list(FeedbackSignal.objects.filter(project=project, operation__in=names).order_by("pk"))
    if not signals:
        return
    names = sorted({signal.operation for signal in signals})
    inferences = {
        row.operation: row for row in Inference.objects.filter(project=project, operation__in=names)
    }
    with transaction.atomic():
        captures = {
            row.operation: row
            for row in Capture.objects.select_related("project").filter(project=project, operation__in=names)
        }
        held = {
            row.operation: row
            for row in HeldExchange.objects.select_related("project")
            .select_for_update(of=("self",))
            .filter(project=project, operation__in=names)
        }
        observations = []
        for signal in signals:
            kind = "correction" if signal.has_correction else "negative_feedback" if signal.negative else ""
            inference = inferences.get(signal.operation)
            if kind and signal.operation in held and signal.operation not in captures:
                captures[signal.operation] = held_claim(
                    held=held.pop(signal.operation),
                    family=inference.family if inference else "",
                    version_id=inference.version_id if inference else None,
                )
            capture = captures.get(signal.operation)
            if capture is not None and kind:
                captures_fail(captures=[capture])
            if capture is not None and signal.raw is not None and capture.state != Capture.State.RAW:
                dispatch("feedback.anonymize_signal", signal.pk, queue="anonymize")
            if inference is not None and kind and signal.joined_at is None:
                observations += _observation(inference, kind)
        if observations:
            release_units_record(observations=observations)
        FeedbackSignal.objects.filter(
            pk__in=[signal.pk for signal in signals if signal.operation in inferences], joined_at=None
        ).update(joined_at=timezone.now())


def _observation(inference: Inference, failure: str) -> list[UnitObservation]:
    if inference.release_id is None or inference.segment is None:
        return []
    return [
        UnitObservation(
            release_id=inference.release_id,
            segment=inference.segment,
            unit=inference.unit,
            arm=inference.assigned_arm,
            failure=failure,
            operations=0,
        )
    ]


def _store(project: Project, wanted: Mapping[str, FeedbackSignal]) -> set[str]:
    """Upsert by external id; returns those that existed."""
    if not wanted:
        return set()
    fields = ["operation", "metric", "value", "negative", "has_correction", "raw", "content", "joined_at"]
    with transaction.atomic():
        mine = FeedbackSignal.objects.filter(project=project, external_id__in=list(wanted))
        known = {row.external_id: row for row in mine.select_for_update()}
        repeats = []
        for external_id, row in known.items():
            for name in fields:
                setattr(row, name, getattr(wanted[external_id], name))
            row.updated_at = timezone.now()
            repeats.append(row)
        FeedbackSignal.objects.bulk_update(repeats, [*fields, "updated_at"], batch_size=200)
        new = [signal for external_id, signal in wanted.items() if external_id not in known]
        FeedbackSignal.objects.bulk_create(new, ignore_conflicts=True, batch_size=200)
        signals_join(project=project, operations=[signal.operation for signal in wanted.values()])
    return set(known)


def _signal_of(project: Project, item: Any) -> FeedbackSignal:
    if not isinstance(item, Mapping):
        raise Invalid("An item must be an object.")
    operation = identifier_checked(item.get("operation"), "operation")
    if len(operation) > 64:
        raise Invalid("operation: at most 64 characters.")
    metric = identifier_checked(item.get("metric") or "rating", "metric")[:60]
    value = _value(item.get("value"))
    words = {}
    for key in ("comment", "correction"):
        text = item.get(key)
        if text is not None and not isinstance(text, str):
            raise Invalid(f"{key}: must be text.")
        if text and len(text.encode("utf-8", "surrogatepass")) > MAX_ITEM_BYTES:
            raise Invalid(f"{key}: is longer than {MAX_ITEM_BYTES // 1024} KiB.")
        if text and text.strip():
            words[key] = storable(text)
    if value is None and not words:
        raise Invalid("Give a value, a comment or a correction.")
    default = f"{operation}:{metric}"[:120]
    return FeedbackSignal(
        project=project,
        external_id=identifier_checked(item.get("external_id") or default, "external_id"),
        operation=operation,
        metric=metric,
        value=value,
        negative=_is_negative(metric, value),
        has_correction="correction" in words,
        raw=encrypt_json(words) if words else None,
    )


def _value(value: Any) -> bool | float | str | None:
    """Numbers, booleans and a few words: free text belongs into the comment, which is encrypted."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and abs(value) < 1e12:  # also false for NaN and infinities
        return value
    if isinstance(value, str) and value.casefold() in _BAD_WORDS | _GOOD_WORDS:
        return value.casefold()
    raise Invalid("value: must be true, false, a number, “up” or “down”; put text into comment.")


def _is_negative(metric: str, value: bool | float | str | None) -> bool:
    if isinstance(value, bool) or value is None:
        return value is False
    if isinstance(value, str):
        return value in _BAD_WORDS
    return value <= (2 if metric in _OF_FIVE else 0)
