"""Pages of trajectories: those of a run, and one of them turn by turn and token by token."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from apps.core.errors import Conflict, Refused
from apps.core.http import PageRequest, page_of, project_view
from apps.feedback import services as feedback
from apps.feedback.models import GauntletEntry, Verifier
from apps.training import selectors, tokens, turns
from apps.training.forms import TrajectoryFilters
from apps.training.graph_picture import graph_picture
from apps.training.models import Trajectory
from domain.contracts import Trajectory as WholeTrajectory
from domain.suspicion import ROW_OF


@require_GET
@project_view("read")
def trajectory_list(request: PageRequest, pk: int) -> HttpResponse:
    run = get_object_or_404(selectors.runs_of(request.project), pk=pk)
    form = TrajectoryFilters(request.GET)
    filters = form.values()
    rows = selectors.trajectories_of(
        run,
        state=filters["state"],
        task=filters["q"],
        look=filters["look"],
        step=filters["step"] - 1 if filters["step"] else None,
    )
    context = {"run": run, "form": form, "page": page_of(request, rows), "filtered": any(filters.values())}
    return render(request, "training/trajectories.html", context)


@require_GET
@project_view("read")
def trajectory_page(request: PageRequest, pk: int) -> HttpResponse:
    row = _row(request, pk)
    whole = selectors.trajectory_whole(row)
    current = _current(request, whole)
    asset = selectors.asset_of(row)
    context = {
        "row": row,
        "run": row.run,
        "whole": whole,
        "turns": turns.turns_of(whole, row.run.parent.base.path, current),
        "current": current,
        "previous": current - 1 if current and current > 1 else None,
        "next": current + 1 if current and current < len(whole.steps) else None,
        "flags": whole.flags,
        "legend": tokens.LEGEND,
        "siblings": selectors.siblings_of(row),
        "asset": asset,
        "graph": graph_picture(asset.task, whole.verdict) if asset else None,
        "entry": _entry(row, asset),
        "confirmable": _confirmable(row),
        "may_train": request.actor.may("training"),
    }
    return render(request, "training/trajectory.html", context)


def _current(request: PageRequest, whole: WholeTrajectory) -> int | None:
    """The one turn that is shown, from 1; None for all of them. A long one starts where a flag is."""
    wanted = request.GET.get("turn", "")
    if wanted.isdecimal() and 1 <= int(wanted) <= len(whole.steps):
        return int(wanted)
    if wanted == "all" or len(whole.steps) <= turns.ALL_SHOWN:
        return None
    return whole.flags[0].step + 1 if whole.flags else 1


@require_POST
@project_view("training")
def trajectory_exploit(request: PageRequest, pk: int) -> HttpResponse:
    """A confirmed exploit: from now on the verifier must fail it. Its gauntlet runs at once."""
    row = _row(request, pk)
    if not _confirmable(row):
        raise Conflict(
            "Only an answer that passed, or one that looks like gaming, can be an exploit.", code="not_passed"
        )
    asset = selectors.asset_of(row)
    if asset is None:
        raise Refused("The task of this trajectory is not in the dataset any more.", code="task_missing")
    whole = selectors.trajectory_whole(row)
    said = [step.action for step in whole.steps]
    right = asset.turns or ([asset.correction] if asset.correction else [])
    if right and [text.strip() for text in said] == [text.strip() for text in right]:
        raise Conflict("This is the task's right answer; it should pass.", code="answer_right")
    feedback.entry_add(
        verifier=asset.verifier,
        origin=GauntletEntry.Origin.EXPLOIT,
        name=_entry_name(row),
        task=asset.task,
        answer=said[-1] if said and len(said) == 1 else "",
        turns=said if len(said) > 1 else [],
        row=next((ROW_OF[flag.detector] for flag in whole.flags if flag.detector in ROW_OF), None),
        source=f"trajectory {row.pk} of the run “{row.run.name}”"[:200],
        by=request.actor,
    )
    said_too = "its gauntlet runs now" if _check_now(request, asset.verifier) else "run its gauntlet again"
    messages.success(
        request,
        f"{asset.verifier} must fail this answer from now on: {said_too}. Runs that use it are held until "
        "it is admitted.",
    )
    return redirect(asset.verifier)


def _check_now(request: PageRequest, verifier: Verifier) -> bool:
    """Whether the gauntlet could be started; one that runs already, or lacks entries, is left to people."""
    try:
        feedback.verifier_check(verifier=verifier, by=request.actor)
    except Refused:
        return False
    return True


def _confirmable(row: Trajectory) -> bool:
    return row.state == "passed" or row.flagged


def _entry_name(row: Trajectory) -> str:
    return f"trajectory {row.pk}: {row.task_key}"[:120]


def _entry(row: Trajectory, asset: Any) -> GauntletEntry | None:
    if asset is None or not _confirmable(row):
        return None
    return GauntletEntry.objects.filter(verifier=asset.verifier, name=_entry_name(row)).first()


def _row(request: PageRequest, pk: int) -> Trajectory:
    rows = Trajectory.objects.filter(run__project=request.project)
    return get_object_or_404(rows.select_related("run__parent__base", "run__dataset", "run__project"), pk=pk)
