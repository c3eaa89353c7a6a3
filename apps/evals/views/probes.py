"""Probes of unchanged names."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from apps.core.errors import Refused
from apps.core.http import PageRequest, page_of, project_view
from apps.evals import selectors, services
from apps.evals.forms import ProbeForm, ProbeIntervalForm
from apps.evals.models import Probe, ProbeRound
from apps.evals.probe_charts import MAX_ROUNDS, probe_figure, probe_figure_height, probe_figure_label
from apps.evals.probe_claims import claim_of
from apps.evals.probe_sampling import requests_of
from apps.evals.services.probe_rounds import alarming


@project_view("read")
def probe_list(request: PageRequest) -> HttpResponse:
    page = page_of(request, selectors.probes_of(request.project), 50)
    last = ProbeRound.objects.in_bulk([probe.last_round for probe in page if probe.last_round])
    rows = [
        {
            "probe": probe,
            "last": last.get(probe.last_round),
            "alarming": probe.telling == probe.telling_before == "flagged",
        }
        for probe in page
    ]
    context = {"page": page, "rows": rows, "may_change": request.actor.may("evals")}
    return render(request, "evals/probes.html", context)


@project_view("evals")
def probe_create(request: PageRequest) -> HttpResponse:
    form = ProbeForm(request.POST or None, project=request.project)
    if request.method == "POST" and form.is_valid():
        try:
            probe = services.probe_create(
                project=request.project,
                **form.chosen(),
                prompts=form.cleaned_data["prompts"].splitlines(),
                every_s=round(3600 * form.cleaned_data["hours"]),
                by=request.actor,
            )
        except Refused as refused:
            form.add_error(None, refused.message)
        else:
            messages.success(request, "The reference is being taken now.")
            return redirect(probe)
    return render(request, "evals/probe_create.html", {"form": form}, status=400 if form.errors else 200)


@project_view("read")
def probe(request: PageRequest, pk: int) -> HttpResponse:
    found = _probe(request, pk)
    page = page_of(request, found.rounds.all(), 25)
    rounds = list(found.rounds.all()[:MAX_ROUNDS])[::-1]
    figure = probe_figure(rounds)
    changed = alarming(found)
    flagged = next((row for row in reversed(rounds) if row.verdict == "flagged"), None) if changed else None
    context = {
        "probe": found,
        "page": page,
        "figure": figure,
        "figure_label": probe_figure_label(rounds) if figure else "",
        "figure_height": probe_figure_height(figure) if figure else 0,
        "alarming": changed,
        "changes": selectors.probe_changes(flagged) if flagged else [],
        "busy": found.busy_until is not None and found.busy_until > timezone.now(),
        "claim": claim_of(found.reference, found.every_s) if found.reference else None,
        "asks": requests_of(found.reference) if found.reference else None,
        "form": ProbeIntervalForm(initial={"hours": round(found.every_s / 3600, 2)}),
        "may_change": request.actor.may("evals"),
    }
    return render(request, "evals/_probe.html" if request.htmx else "evals/probe.html", context)


@require_POST
@project_view("evals")
def probe_ask(request: PageRequest, pk: int) -> HttpResponse:
    found = _probe(request, pk)
    services.probe_request_round(probe=found, by=request.actor)
    messages.info(request, "A round is on its way; it shows here when it is done.")
    return redirect(found)


@require_POST
@project_view("evals")
def probe_renew(request: PageRequest, pk: int) -> HttpResponse:
    found = _probe(request, pk)
    services.probe_reference_renew(probe=found, by=request.actor)
    messages.success(request, "The old reference is gone; a new one is being taken.")
    return redirect(found)


@require_POST
@project_view("evals")
def probe_switch(request: PageRequest, pk: int) -> HttpResponse:
    found = _probe(request, pk)
    services.probe_change(probe=found, enabled=not found.enabled, by=request.actor)
    return redirect(found)


@require_POST
@project_view("evals")
def probe_interval(request: PageRequest, pk: int) -> HttpResponse:
    found = _probe(request, pk)
    form = ProbeIntervalForm(request.POST)
    if not form.is_valid():
        raise Refused("Give the hours between two rounds, 0.1 to 168.", code="interval_invalid")
    hours = form.cleaned_data["hours"]
    services.probe_change(probe=found, every_s=round(3600 * hours), by=request.actor)
    messages.success(request, "The new interval counts from now.")
    return redirect(found)


def _probe(request: PageRequest, pk: int) -> Probe:
    rows = Probe.objects.filter(project=request.project)
    return get_object_or_404(rows.select_related("deployment", "version", "project"), pk=pk)
