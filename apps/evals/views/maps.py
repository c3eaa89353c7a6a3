"""Long-context suites and the length × depth map of a run over one."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from apps.core.errors import Refused
from apps.core.http import PageRequest, page_of, project_view
from apps.evals import selectors, services
from apps.evals.forms import MapForm
from apps.evals.maps import map_figure, run_maps
from apps.evals.models import Run


@project_view("read")
def map_list(request: PageRequest) -> HttpResponse:
    versions = page_of(request, selectors.map_versions_of(request.project), 25)
    runs: dict[int, list[Run]] = {}
    rows = selectors.runs_of(request.project).filter(suite_version__in=list(versions.object_list))
    for run in rows:
        runs.setdefault(run.suite_version_id, []).append(run)
    context = {
        "page": versions,
        "rows": [(version, runs.get(version.pk, [])[:5]) for version in versions],
        "may_change": request.actor.may("evals"),
    }
    return render(request, "evals/maps.html", context)


@project_view("evals")
def map_create(request: PageRequest) -> HttpResponse:
    form = MapForm(request.POST or None, project=request.project)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        given = ("name", "kinds", "lengths", "depths", "per_cell", "seed")
        try:
            version = services.context_suite_create(
                project=request.project,
                **form.chosen(),
                **{name: data[name] for name in given},
                by=request.actor,
            )
        except Refused as refused:
            form.add_error(None, refused.message)
        else:
            messages.success(request, f"{version} holds {version.count:,} cases. Run it to see the map.")
            return redirect(version)
    return render(request, "evals/map_create.html", {"form": form}, status=400 if form.errors else 200)


@project_view("read")
def context_map(request: PageRequest, pk: int) -> HttpResponse:
    """One map for each thing that is asked for; ``family`` chooses."""
    found = get_object_or_404(selectors.runs_of(request.project), pk=pk)
    maps = run_maps(found)
    chosen = request.GET.get("family", "")
    cells = maps.get(chosen) or next(iter(maps.values()), None)
    context = {
        "run": found,
        "cells": cells,
        "maps": list(maps.values()),
        "rows": list(zip(cells.rows, cells.by_depth, strict=True)) if cells else [],
        "figure": map_figure(cells) if cells else None,
        "summary": selectors.run_summary(found),
        "live": found.state == Run.State.RUNNING,
    }
    return render(request, "evals/_map.html" if request.htmx else "evals/map.html", context)
