"""How a release reads: the sentence at the top, the steps, and the parts made next door."""

from dataclasses import dataclass
from typing import Any

from apps.core.models import Alert
from apps.versions.chart import evidence_figure, evidence_label
from apps.versions.forms import SIGNAL_WORDS
from apps.versions.gates_table import gates_table
from apps.versions.models import Release
from apps.versions.selectors import engines_without, gateways_behind, routing_current
from apps.versions.services.gate import segments_of
from apps.versions.services.releases import rollback_alert_key
from apps.versions.wording import figure, percent


@dataclass(frozen=True)
class StepMark:
    """``state`` is done, now or next."""

    label: str
    note: str
    state: str


def release_view(release: Release) -> dict[str, Any]:
    """Everything that the page shows besides the release's own fields."""
    running = release.state == Release.State.RUNNING
    revision = routing_current(release.project)
    return {
        "running": running,
        "state": _state(release),
        "sentence": _sentence(release),
        "gates": gates_table(release, segments_of(release)),
        "steps": _steps(release),
        "progress": _progress(release),
        "figure": evidence_figure(release),
        "figure_label": evidence_label(release),
        "revision": revision.number if revision else None,
        "behind": gateways_behind(release.project),
        "cold_control": engines_without(release.control) if running else [],
        "signals": [SIGNAL_WORDS[signal].lower() for signal in release.plan["failure_signals"]],
        "unseen": release.state == Release.State.ROLLED_BACK and _is_unseen(release),
    }


def _is_unseen(release: Release) -> bool:
    return Alert.objects.filter(
        project=release.project, key=rollback_alert_key(release), resolved_at=None
    ).exists()


def _state(release: Release) -> tuple[str, str]:
    """State and word for the badge."""
    if release.state != Release.State.RUNNING:
        return release.state, str(release.get_state_display()).lower()
    if release.paused:
        return "paused", "paused"
    if release.warming:
        return "waiting", "warming up"
    return ("releasing", "advanced") if release.verdict == "advance" else ("holding", "holding")


def _sentence(release: Release) -> str:
    reasons = " ".join(release.reasons)
    if release.state == Release.State.PROMOTED:
        return f"{release.candidate} takes all traffic. {reasons}"
    if release.state == Release.State.ROLLED_BACK:
        return f"All traffic is back on {release.control}. {reasons}"
    if release.state == Release.State.ABORTED:
        return f"All traffic stays on {release.control}. {reasons}"
    if release.warming:
        return f"No traffic goes to {release.candidate} yet. {reasons}"
    harm = figure(release.evidence, "log_e")
    calm = "No sign of harm. " if release.evidence.get("units") and harm is not None and harm <= 0 else ""
    return f"{percent(release.weight)} of units go to {release.candidate}. {calm}{reasons}"


def _steps(release: Release) -> list[StepMark]:
    marks = []
    over = release.state == Release.State.PROMOTED
    for index, step in enumerate(release.plan["steps"]):
        if over or index < release.step_index:
            marks.append(StepMark(percent(step["weight"]), "✓", "done"))
        elif index == release.step_index:
            since = "warming up" if release.warming else f"since {release.step_started_at:%H:%M}"
            ended = release.state != Release.State.RUNNING
            marks.append(StepMark(percent(step["weight"]), "ended here" if ended else since, "now"))
        else:
            marks.append(StepMark(percent(step["weight"]), "", "next"))
    marks.append(StepMark("100 %", "✓" if over else "", "done" if over else "next"))
    return marks


def _progress(release: Release) -> float:
    """Share of the way: steps done, and the part of the present one by its units."""
    if release.state == Release.State.PROMOTED:
        return 1.0
    steps = len(release.plan["steps"])
    need = release.plan["steps"][release.step_index]["min_units"]
    have = 0 if release.warming else release.evidence.get("canary_units", 0)
    return min(1.0, (release.step_index + min(1.0, have / need)) / steps)
