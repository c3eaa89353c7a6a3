"""Reads of the Loop page. What the stages say comes from the apps themselves, through registries."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils import timezone

from apps.core.models import Alert, Project
from apps.core.registries import loop_stages, personal_tasks
from apps.feedback.models import Capture, FailureCase, Family, Inference
from apps.loop.models import DemoTurn
from apps.loop.turn.plan import FAMILY


def stages(project: Project) -> list[Mapping[str, Any]]:
    """One cell per stage, in the order of the loop."""
    ordered = sorted(loop_stages, key=lambda stage: stage.order)
    return [
        {"name": stage.name, "first_step": stage.first_step, **stage.summary(project)} for stage in ordered
    ]


def project_is_fresh(project: Project) -> bool:
    """Nothing was asked, captured or tried in it yet."""
    return not any(
        model.objects.filter(project=project).exists()  # type: ignore[attr-defined]
        for model in (Inference, Capture, DemoTurn)
    )


def turn_is_possible(project: Project) -> bool:
    """Whether the project holds the task family that the demo's users ask about."""
    return Family.objects.filter(project=project, name=FAMILY).exists()


def cases_wait(project: Project) -> bool:
    """Whether anything is to be labelled."""
    return FailureCase.objects.filter(project=project, state=FailureCase.State.NEW).exists()


def personal_rows(project: Project) -> list[Mapping[str, Any]]:
    """What needs a person now, the longest waiting first."""
    rows = [row for source in personal_tasks for row in source.rows(project)]
    return sorted(rows, key=_since)


def _since(row: Mapping[str, Any]) -> datetime:
    since: datetime | None = row.get("since")
    return since or timezone.now()


def alerts_beside(project: Project, rows: list[Mapping[str, Any]]) -> list[Alert]:
    """Open alerts, without those that ``rows`` (of "Needs a person") already show."""
    shown = {row["what"] for row in rows}
    return [alert for alert in project.alerts.filter(resolved_at=None)[:20] if alert.title not in shown][:10]


def last_turn(project: Project) -> DemoTurn | None:
    return DemoTurn.objects.filter(project=project).first()


def turn_report(turn: DemoTurn) -> dict[str, Any] | None:
    """The turn's report as the components read it."""
    if turn.report is None:
        return None
    states = {"promote": "promoted", "roll_back": "rolled_back", "abort": "aborted", "hold": "holding"}
    shown = dict(turn.report)
    for name in ("baseline", "trained"):
        shown[name] = {**shown[name], "value": shown[name]["pass"]}
    shown["scores"] = [("Trained", shown["trained"]), ("Base", shown["baseline"])]
    for name in ("release", "damaged"):
        shown[name] = {**shown[name], "state": states[shown[name]["decision"]]}
    return shown


def turn_lineage(turn: DemoTurn) -> list[dict[str, str]]:
    """What the turn has made so far, from failures to release, each with its address."""
    state = turn.state
    made = []
    if wrong := state.get("traffic", {}).get("wrong"):
        made.append(_step(f"{wrong} failures", "feedback:inbox"))
    if tasks := state.get("assets", {}).get("made"):
        made.append(_step(f"{tasks} tasks", "feedback:assets"))
    if run := state.get("training_run"):
        made.append(_step(f"training run {run}", "training:run", run))
    if trained := state.get("trained"):
        made.append(_step(f"version {trained['number']}", "versions:detail", trained["id"]))
    if release := state.get("release"):
        made.append(_step(f"release {release}", "versions:release", release))
    return made


def turn_things(turn: DemoTurn) -> list[tuple[str, list[dict[str, str]]]]:
    """Everything a turn made, grouped for its page."""
    state = turn.state
    groups: list[tuple[str, list[dict[str, str]]]] = []

    def add(title: str, *steps: dict[str, str] | None) -> None:
        present = [step for step in steps if step]
        if present:
            groups.append((title, present))

    def known(key: str, label: str, route: str) -> dict[str, str] | None:
        value = state.get(key)
        if value is None:
            return None
        pk, number = (value["id"], value["number"]) if isinstance(value, dict) else (value, value)
        return _step(label.format(number), route, pk)

    add("Dataset", known("dataset", "dataset {}", "feedback:dataset"))
    add("Training", known("training_run", "run {}", "training:run"))
    add(
        "Evaluation",
        known("base_run", "base: run {}", "evals:run"),
        known("trained_run", "trained: run {}", "evals:run"),
        _comparison(state),
        known("damaged_run", "damaged: run {}", "evals:run"),
    )
    add(
        "Versions",
        known("base", "base {}", "versions:detail"),
        known("trained", "trained {}", "versions:detail"),
        known("damaged", "damaged {}", "versions:detail"),
    )
    add(
        "Releases",
        known("release", "release {}", "versions:release"),
        known("drill", "drill: release {}", "versions:release"),
    )
    return groups


def _comparison(state: Mapping[str, Any]) -> dict[str, str] | None:
    if "comparison" not in state:
        return None
    url = reverse("evals:compare", args=[state["trained_run"]]) + f"?against={state['base_run']}"
    return {"label": "case by case", "url": url}


def _step(label: str, route: str, *args: int) -> dict[str, str]:
    return {"label": label, "url": reverse(route, args=args)}
