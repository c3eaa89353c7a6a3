"""Celery tasks of feedback: thin doors to services. A row that is gone is nothing to do."""

from celery import shared_task

from apps.core.models import Project
from apps.core.permissions import system_actor
from apps.feedback import services
from apps.feedback.models import Capture, FeedbackSignal


@shared_task(name="feedback.anonymize")
def anonymize(capture_id: int) -> None:
    capture = Capture.objects.filter(pk=capture_id).first()
    if capture is not None:
        services.capture_anonymize(capture=capture)


@shared_task(name="feedback.anonymize_signal")
def anonymize_signal(signal_id: int) -> None:
    signal = FeedbackSignal.objects.select_related("project").filter(pk=signal_id).first()
    if signal is not None:
        services.signal_anonymize(signal=signal)


@shared_task(name="feedback.pack_family_add")
def pack_family_add(project_id: int, name: str, by: str) -> None:
    """``by`` was asked when the pack was added; the trail carries that name."""
    project = Project.objects.filter(pk=project_id).first()
    if project is not None:
        services.pack_family_add(project=project, name=name, by=system_actor(project, by))


@shared_task(name="feedback.captures_sweep")
def captures_sweep() -> None:
    services.captures_sweep()
