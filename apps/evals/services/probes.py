"""Probes: make one, change it, ask it now, renew its reference, send what is due.

Rounds themselves are in ``probe_rounds``.
"""

from collections.abc import Sequence
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.core.dispatch import dispatch
from apps.core.errors import Conflict, Refused
from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.services import alert_resolve, audit
from apps.evals.models import Probe
from apps.evals.probe_prompts import DEFAULT_PROMPTS
from apps.feedback.anonymizer import anonymize_text
from apps.feedback.rules import rules_in_force
from apps.versions.models import Deployment, EditionKind, ModelVersion
from apps.versions.selectors import engine_target, version_in_service

MIN_PROMPTS, MAX_PROMPTS, MAX_PROMPT_TEXT = 5, 30, 2000
SHORTEST_S, LONGEST_S = 300, 7 * 24 * 3600


def probe_create(
    *,
    project: Project,
    version: ModelVersion | None = None,
    edition_kind: str = EditionKind.STANDARD,
    deployment: Deployment | None = None,
    follows: bool = False,
    prompts: Sequence[str] = (),
    every_s: int = 21_600,
    by: Actor,
) -> Probe:
    """Watch an edition of ours or an external endpoint; the first round takes the reference.

    With ``follows`` it watches that edition of whatever version is in service. Without ``prompts`` the
    built-in ones are asked. Personal data in them is masked.
    """
    if follows:
        if version is not None or deployment is not None:
            raise Refused("A probe of what is in service takes no other target.", code="target_unclear")
        version = version_in_service(project)
        if version is None:
            raise Refused("No version is in service yet.", code="none_in_service")
    if (version is None) == (deployment is None):
        raise Refused("Choose one target: a version of yours, or an endpoint.", code="target_unclear")
    if any(row is not None and row.project_id != project.pk for row in (version, deployment)):
        raise Refused("The target belongs to another project.", code="target_foreign")
    _check_interval(every_s)
    row, model = probe_target(version, edition_kind, deployment)
    asked = _prompts(project, prompts)
    try:
        with transaction.atomic():
            probe = Probe.objects.create(
                project=project,
                deployment=row,
                version=version,
                edition_kind=edition_kind if version else "",
                follows=follows,
                model=model,
                prompts=asked,
                every_s=every_s,
                next_at=timezone.now() + timedelta(seconds=every_s),
                created_by=by.name,
            )
            audit(actor=by, action="probe.create", obj=probe, prompts=len(asked), every_s=every_s)
            probe_send(probe)
    except IntegrityError:
        what = "what is in service" if follows else model
        raise Conflict(f"There is already a probe of {what} there.", code="probe_exists") from None
    return probe


def probe_request_round(*, probe: Probe, by: Actor) -> None:
    """Ask now; the schedule counts from here."""
    with transaction.atomic():
        probe.next_at = timezone.now() + timedelta(seconds=probe.every_s)
        probe.save(update_fields=["next_at"])
        audit(actor=by, action="probe.ask", obj=probe)
        probe_send(probe)


def probe_change(
    *, probe: Probe, enabled: bool | None = None, every_s: int | None = None, by: Actor
) -> Probe:
    """Pause, resume, or ask more or less often. None leaves a setting as it is."""
    if every_s is not None:
        _check_interval(every_s)
    with transaction.atomic():
        row = Probe.objects.select_for_update(of=("self",)).get(pk=probe.pk)
        if every_s is not None and every_s != row.every_s:
            row.every_s = every_s
            row.next_at = timezone.now() + timedelta(seconds=every_s)
        if enabled is not None:
            row.enabled = enabled
        row.save(update_fields=["every_s", "next_at", "enabled"])
        audit(actor=by, action="probe.change", obj=row, enabled=row.enabled, every_s=row.every_s)
    probe.enabled, probe.every_s, probe.next_at = row.enabled, row.every_s, row.next_at
    return probe


def probe_reference_renew(*, probe: Probe, by: Actor) -> None:
    """The change is known and meant: forget the reference, close the alerts, ask anew."""
    with transaction.atomic():
        probe.reference = None
        probe.save(update_fields=["reference"])
        alert_resolve(project=probe.project, key=alert_key(probe))
        alert_resolve(project=probe.project, key=blind_key(probe))
        audit(actor=by, action="probe.renew", obj=probe)
        probe_send(probe)


def probes_tick() -> int:
    """Send every probe that is due, once, and those whose round died under way; returns how many."""
    now = timezone.now()
    sent = 0
    # A round gives its claim back however it ends, so one that ran out was ended with its worker.
    for probe in Probe.objects.filter(enabled=True, busy_until__lte=now):
        with transaction.atomic():
            if Probe.objects.filter(pk=probe.pk, busy_until=probe.busy_until).update(busy_until=None):
                probe_send(probe)
                sent += 1
    for probe in Probe.objects.filter(enabled=True, next_at__lte=now).order_by("next_at")[:50]:
        with transaction.atomic():
            due = Probe.objects.filter(pk=probe.pk, next_at=probe.next_at)
            if due.update(next_at=now + timedelta(seconds=probe.every_s)):
                probe_send(probe)
                sent += 1
    return sent


def probes_hear(kind: str, news: object) -> None:
    """A version was promoted or went back: probes of what is in service ask at once."""
    project = news.version.project_id  # type: ignore[attr-defined]
    for probe in Probe.objects.filter(project=project, follows=True, enabled=True):
        probe_send(probe)


def probe_target(
    version: ModelVersion | None, edition_kind: str, deployment: Deployment | None
) -> tuple[Deployment, str]:
    """The row that answers, and the model's name there. Raises Refused."""
    if version is None:
        assert deployment is not None
        if deployment.kind != Deployment.Kind.EXTERNAL or deployment.retired_at is not None:
            raise Refused(f"{deployment.name} is not an external endpoint in use.", code="endpoint_unusable")
        return deployment, deployment.model
    if edition_kind not in EditionKind.values:
        raise Refused(f"“{edition_kind}” is not an edition.", code="edition_unknown")
    target = engine_target(version, edition_kind)
    engines = Deployment.objects.filter(project=version.project_id).engines()
    return engines.filter(edition_kind=edition_kind, base_url=target.base_url)[0], target.model


def probe_send(probe: Probe) -> None:
    dispatch("evals.probe_round", probe.pk)


def alert_key(probe: Probe) -> str:
    """Of the alert that the model has changed."""
    return f"probe:{probe.pk}"


def blind_key(probe: Probe) -> str:
    """Of the alert that the probe cannot measure."""
    return f"probe:{probe.pk}:blind"


def _check_interval(every_s: int) -> None:
    if not SHORTEST_S <= every_s <= LONGEST_S:
        raise Refused("Ask between every 5 minutes and once a week.", code="interval_invalid")


def _prompts(project: Project, given: Sequence[str]) -> list[str]:
    prompts = [prompt.strip() for prompt in given if prompt.strip()]
    if not prompts:
        return list(DEFAULT_PROMPTS)
    if not MIN_PROMPTS <= len(prompts) <= MAX_PROMPTS:
        raise Refused(
            f"Give {MIN_PROMPTS} to {MAX_PROMPTS} prompts, or none to use the built-in ones.",
            code="prompts_count",
        )
    if len(set(prompts)) < len(prompts):
        raise Refused("Two prompts are the same.", code="prompt_twice")
    if any(len(prompt) > MAX_PROMPT_TEXT for prompt in prompts):
        raise Refused(f"A prompt is longer than {MAX_PROMPT_TEXT:,} characters.", code="prompt_long")
    rules = rules_in_force(project)
    return [anonymize_text(prompt, rules) for prompt in prompts]
