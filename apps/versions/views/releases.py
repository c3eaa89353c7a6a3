"""Pages of a release: start, watch, pause, abort."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from apps.core.errors import Refused
from apps.core.http import PageRequest, project_view
from apps.versions import selectors, services
from apps.versions.forms import ReasonForm, ReleaseForm
from apps.versions.models import ModelVersion, Release
from apps.versions.plans import default_plan
from apps.versions.presentation import release_view
from apps.versions.release_gates import gate_standings


@project_view("read")
def release_detail(request: PageRequest, pk: int) -> HttpResponse:
    release = _release(request, pk)
    template = "versions/_release.html" if request.htmx else "versions/release.html"
    context = {
        "release": release,
        "view": release_view(release),
        "may_release": request.actor.may("release"),
    }
    return render(request, template, context)


@project_view("release")
def release_start(request: PageRequest, pk: int) -> HttpResponse:
    version = get_object_or_404(
        ModelVersion.objects.filter(project=request.project).select_related("project", "base"), pk=pk
    )
    gates = gate_standings(version)
    blockers = [gate for gate in gates if gate.blocks]
    initial = ReleaseForm.initial_of(default_plan(request.project))
    form = ReleaseForm(request.POST or None, gates=blockers, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            release = services.release_start(
                candidate=version,
                plan=form.plan(),
                reason=form.cleaned_data["reason"],
                override_gates=form.cleaned_data.get("override_gates", ""),
                by=request.actor,
            )
        except Refused as refused:
            form.add_error(None, refused.message)
        else:
            messages.success(request, f"Release {release.number} started.")
            return redirect(release)
    context = {
        "form": form,
        "version": version,
        "in_service": selectors.version_in_service(request.project),
        "running": selectors.running_release(request.project),
        "evidence": version.evidence.all(),
        "evaluated": selectors.has_evaluation_evidence(version),
        "taken_back": selectors.times_taken_back(version),
        "cold": selectors.engines_without(version),
        "gates": gates,
    }
    return render(request, "versions/release_start.html", context, status=400 if form.errors else 200)


@require_POST
@project_view("release")
def release_pause(request: PageRequest, pk: int) -> HttpResponse:
    release = services.release_pause(
        release=_release(request, pk), reason=request.POST.get("reason", ""), by=request.actor
    )
    return redirect(release)


@require_POST
@project_view("release")
def release_resume(request: PageRequest, pk: int) -> HttpResponse:
    release = services.release_resume(
        release=_release(request, pk), reason=request.POST.get("reason", ""), by=request.actor
    )
    return redirect(release)


@project_view("release")
def release_abort(request: PageRequest, pk: int) -> HttpResponse:
    release = _release(request, pk)
    form = ReasonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        over = release.state != Release.State.RUNNING
        services.release_abort(release=release, reason=form.cleaned_data["reason"], by=request.actor)
        if over:
            messages.info(request, f"Release {release.number} had already ended; nothing changed.")
        else:
            messages.success(request, f"All traffic is back on {release.control}.")
        return redirect(release)
    context = {"form": form, "release": release, "view": release_view(release)}
    return render(request, "versions/release_abort.html", context, status=400 if form.errors else 200)


@require_POST
@project_view("release")
def release_acknowledge(request: PageRequest, pk: int) -> HttpResponse:
    release = _release(request, pk)
    services.release_acknowledge(release=release, by=request.actor)
    return redirect(release)


def _release(request: PageRequest, pk: int) -> Release:
    return get_object_or_404(selectors.releases_of(request.project), pk=pk)
