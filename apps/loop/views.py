"""The home page, and the demo turn watched live."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from apps.core.http import PageRequest, project_view
from apps.loop import progress, selectors, services
from apps.loop.forms import TurnForm
from apps.loop.models import DemoTurn


@project_view("read")
def home(request: PageRequest) -> HttpResponse:
    """The stages of the loop, what needs a person, and the last turn."""
    last = selectors.last_turn(request.project)
    running = last is not None and last.status == DemoTurn.Status.RUNNING
    tasks = selectors.personal_rows(request.project)
    context = {
        "stages": selectors.stages(request.project),
        "fresh": selectors.project_is_fresh(request.project),
        "tasks": tasks,
        "alerts": selectors.alerts_beside(request.project, tasks),
        "turn": last,
        "running": running,
        "progress": _progress(last) if last and running else None,
        "lineage": selectors.turn_lineage(last) if last else [],
        "report": selectors.turn_report(last) if last else None,
        "possible": selectors.turn_is_possible(request.project),
        "may_start": all(request.actor.may(scope) for scope in services.TURN_SCOPES),
    }
    if request.htmx:
        return render(request, "loop/_home.html", context)
    context["label_next"] = request.actor.may("label") and selectors.cases_wait(request.project)
    return render(request, "loop/home.html", context)


@require_POST
@project_view("release")
def turn_start(request: PageRequest) -> HttpResponse:
    form = TurnForm(request.POST)
    if not form.is_valid():
        messages.error(request, str(form.errors["seed"][0]))
        return redirect("loop:home")
    turn = services.turn_start(project=request.project, seed=form.cleaned_data["seed"], by=request.actor)
    return redirect(turn)


@project_view("read")
def turn(request: PageRequest, pk: int) -> HttpResponse:
    """One turn: phases, its log, what it made, and at the end its report."""
    found = get_object_or_404(DemoTurn.objects.filter(project=request.project), pk=pk)
    running = found.status == DemoTurn.Status.RUNNING
    context = {
        "turn": found,
        "running": running,
        "progress": _progress(found) if running else None,
        "phases": progress.phase_rows(found),
        "lines": found.lines.all(),
        "report": selectors.turn_report(found),
        "things": selectors.turn_things(found),
        "took_s": (found.finished_at - found.created_at).total_seconds() if found.finished_at else None,
        "may_stop": request.actor.may("training"),
    }
    return render(request, "loop/_turn.html" if request.htmx else "loop/turn.html", context)


@require_POST
@project_view("training")
def turn_cancel(request: PageRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(DemoTurn.objects.filter(project=request.project), pk=pk)
    services.turn_cancel(turn=found, by=request.actor)
    messages.info(request, "The turn was stopped. What it had started goes on where it is.")
    return redirect(found)


def _progress(turn: DemoTurn) -> progress.Progress:
    return progress.turn_progress(turn, progress.usual_seconds(turn.project), timezone.now())
