"""What training shows on pages of others: the rail's count, the Loop's stage, what needs a person."""

from collections.abc import Mapping
from typing import Any

from django.urls import reverse

from apps.core.models import Project
from apps.feedback.models import Verifier
from apps.training.models import TrainingRun
from apps.training.selectors import runs_of

State = TrainingRun.State


def nav_count(project: Project) -> str:
    live = TrainingRun.objects.filter(project=project, state=State.RUNNING).count()
    return f"{live} live" if live else ""


def training_stage(project: Project) -> Mapping[str, Any]:
    running = list(runs_of(project).filter(state=State.RUNNING)[:20])
    if running:
        run: Any = running[0]
        note = f"step {min(run.done + 1, run.steps)} of {run.steps}"
        url = run.get_absolute_url() if len(running) == 1 else reverse("training:runs")
        return {"value": str(len(running)), "note": note, "url": url, "tone": ""}
    last = TrainingRun.objects.filter(project=project).first()
    if last is None:
        return {"value": "0", "note": "no run yet", "url": reverse("training:runs"), "tone": ""}
    note = f"last run {last.get_state_display().lower()}"
    tone = "fail" if last.state == State.FAILED else ""
    return {"value": "0", "note": note, "url": last.get_absolute_url(), "tone": tone}


def personal_tasks(project: Project) -> list[Mapping[str, Any]]:
    return [*_stopped(project), *_refused(project)]


def _stopped(project: Project) -> list[Mapping[str, Any]]:
    """Failed runs, and those held for a reason; a run that a person paused needs nobody."""
    runs = TrainingRun.objects.filter(project=project, state__in=[State.FAILED, State.PAUSED]).exclude(
        error=""
    )
    return [
        {
            "what": f"Training run “{run.name}” {'failed' if run.state == State.FAILED else 'is held'}",
            "why": run.error[:300],
            "since": run.finished_at or run.started_at,
            "url": run.get_absolute_url(),
            "action": "Look at it",
        }
        for run in runs[:10]
    ]


def _refused(project: Project) -> list[Mapping[str, Any]]:
    """Verifiers in use that their gauntlet refused."""
    rows = Verifier.objects.filter(
        project=project, admission=Verifier.Admission.REFUSED, families__isnull=False
    )
    return [
        {
            "what": f"Verifier {verifier} was refused",
            "why": verifier.reasons[0] if verifier.reasons else "It may not train anything.",
            "since": verifier.checked_at,
            "url": verifier.get_absolute_url(),
            "action": "See why",
        }
        for verifier in rows.distinct()[:10]
    ]
