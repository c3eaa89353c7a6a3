"""Pages of runs: list, new, one run live, and what can be done to it."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.core.errors import Refused
from apps.core.http import PageRequest, page_of, project_view
from apps.core.models import WorkUnit
from apps.training import charts, selectors, services
from apps.training.figures import figures_of
from apps.training.forms import RunFilters, RunForm
from apps.training.models import TrainingRun
from apps.versions.selectors import version_in_service
from domain.lifecycle import may_move

_VERBS = {
    "start": services.run_start,
    "pause": services.run_pause,
    "resume": services.run_resume,
    "cancel": services.run_cancel,
}
_ARRIVING = 8


@require_GET
@project_view("read")
def run_list(request: PageRequest) -> HttpResponse:
    form = RunFilters(request.GET)
    filters = form.values()
    rows = selectors.runs_of(request.project)
    if filters["state"]:
        rows = rows.filter(state=filters["state"])
    if filters["q"]:
        rows = rows.filter(name__icontains=filters["q"])
    context = {
        "form": form,
        "page": page_of(request, rows),
        "filtered": any(filters.values()),
        "may_train": request.actor.may("training"),
    }
    return render(request, "training/runs.html", context)


@require_http_methods(["GET", "POST"])
@project_view("training")
def run_new(request: PageRequest) -> HttpResponse:
    initial = {"parent": version_in_service(request.project)}
    form = RunForm(request.POST or None, project=request.project, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            run = _create(request, form)
        except Refused as refused:
            form.add_error("advanced" if refused.code == "config_invalid" else None, refused.message)
        else:
            return redirect(run)
    return render(request, "training/run_new.html", {"form": form}, status=400 if form.errors else 200)


def _create(request: PageRequest, form: RunForm) -> TrainingRun:
    values = form.cleaned_data
    run = services.run_create(
        project=request.project,
        config=form.config(),
        by=request.actor,
        **{name: values[name] for name in ("name", "dataset", "parent", "steps", "seed")},
    )
    if "start" in request.POST:
        try:
            services.run_start(run=run, by=request.actor)
        except Refused as refused:
            messages.warning(request, f"{refused.message} The run is kept as a draft.")
    return run


@require_GET
@project_view("read")
def run_page(request: PageRequest, pk: int) -> HttpResponse:
    run = _run(request, pk)
    template = "training/_run.html" if request.htmx else "training/run.html"
    return render(request, template, _context(request, run))


@require_POST
@project_view("training")
def run_act(request: PageRequest, pk: int, verb: str) -> HttpResponse:
    if verb not in _VERBS:
        raise Http404
    run = _run(request, pk)
    _VERBS[verb](run=run, by=request.actor)
    return redirect(run)


def _context(request: PageRequest, run: Any) -> dict[str, Any]:
    series = selectors.run_series(run)
    skipped = run.segments.exclude(skipped="").count()
    return {
        "run": run,
        "ended": run.state in (TrainingRun.State.DONE, TrainingRun.State.FAILED, TrainingRun.State.CANCELLED),
        "charts": charts.run_charts(series, run.steps),
        "figures": figures_of(series),
        "skipped": skipped,
        "watch": selectors.watch_of(run),
        "alerts": selectors.alerts_of(run),
        "units": [_work(unit) for unit in selectors.open_units(run)],
        "arriving": selectors.trajectories_of(run)[:_ARRIVING],
        "may_train": request.actor.may("training"),
        "may_cancel": request.actor.may("training") and may_move("training_run", run.state, "cancelled"),
    }


def _work(unit: WorkUnit) -> dict[str, Any]:
    kind, _, step, *rest = unit.key.split(":")
    what = "Training" if kind == "train" else "Generating"
    refill = f", refill {rest[0]}" if kind == "rollout" and rest[0] != "0" else ""
    again = f", attempt {unit.attempt}" if unit.attempt > 1 else ""
    return {
        "unit": unit,
        "words": f"{what} step {int(step) + 1}{refill}{again}",
        "done": unit.progress.get("done"),
        "total": unit.progress.get("total"),
    }


def _run(request: PageRequest, pk: int) -> TrainingRun:
    return get_object_or_404(selectors.runs_of(request.project), pk=pk)
