"""Pages of the registry: list, detail, promote, roll back."""

from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from apps.core.errors import Refused
from apps.core.http import PageRequest, page_of, project_view
from apps.versions import selectors, services
from apps.versions.forms import PromoteForm, ReasonForm, VersionFilters
from apps.versions.models import EditionKind, ModelVersion
from apps.versions.release_gates import gate_standings


@project_view("read")
def version_list(request: PageRequest) -> HttpResponse:
    form = VersionFilters(request.GET)
    rows = selectors.versions_of(request.project)
    if form.is_valid():
        if form.cleaned_data["state"]:
            rows = rows.filter(state=form.cleaned_data["state"])
        if words := form.cleaned_data["q"].strip():
            rows = rows.filter(
                Q(number__icontains=words)
                | Q(origin_label__icontains=words)
                | Q(adapter_name__icontains=words)
                | Q(notes__icontains=words)
            )
    release = selectors.running_release(request.project)
    return render(
        request,
        "versions/list.html",
        {
            "form": form,
            "filtered": bool(request.GET.get("q") or request.GET.get("state")),
            "page": page_of(request, rows),
            "release": release,
            "may_release": request.actor.may("release"),
            "rollback_target": selectors.rollback_target(request.project),
        },
    )


@project_view("read")
def version_detail(request: PageRequest, pk: int) -> HttpResponse:
    version = _version(request, pk)
    evidence = list(version.evidence.all())
    editions = [
        {
            "edition": edition,
            "evidence": [row for row in evidence if row.edition_kind == edition.kind],
        }
        for edition in version.editions.all()
    ]
    return render(
        request,
        "versions/detail.html",
        {
            "version": version,
            "editions": editions,
            "general": [row for row in evidence if not row.edition_kind],
            "evaluated": selectors.has_evaluation_evidence(version),
            "gates": gate_standings(version),
            "releases": selectors.releases_of(request.project).filter(candidate=version),
            "changes": version.service_changes.select_related("previous", "release"),
            "running": selectors.running_release(request.project),
            "may_release": request.actor.may("release"),
            "rollback_target": selectors.rollback_target(request.project),
        },
    )


@project_view("release")
def promote(request: PageRequest, pk: int) -> HttpResponse:
    version = _version(request, pk)
    evaluated = selectors.has_evaluation_evidence(version)
    gates = gate_standings(version)
    blockers = [gate for gate in gates if gate.blocks]
    form = PromoteForm(request.POST or None, evaluated=evaluated, gates=blockers)
    if request.method == "POST" and form.is_valid():
        try:
            services.version_promote(
                version=version,
                reason=form.cleaned_data["reason"],
                without_evidence=form.cleaned_data.get("without_evidence", False),
                override_gates=form.cleaned_data.get("override_gates", ""),
                by=request.actor,
            )
        except Refused as refused:
            form.add_error(None, refused.message)
        else:
            messages.success(request, f"{version} is in service.")
            return redirect(version)
    in_service = selectors.version_in_service(request.project)
    context = _evidence_of(version) | {
        "form": form,
        "version": version,
        "in_service": in_service,
        "evaluated": evaluated,
        "gates": gates,
        "taken_back": selectors.times_taken_back(version),
        "cold": selectors.engines_without(version),
        "running": selectors.running_release(request.project),
    }
    return render(request, "versions/promote.html", context, status=400 if form.errors else 200)


@project_view("release")
def roll_back(request: PageRequest) -> HttpResponse:
    in_service = selectors.version_in_service(request.project)
    target = selectors.rollback_target(request.project)
    running = selectors.running_release(request.project)
    form = ReasonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            serving = services.version_roll_back(
                project=request.project, reason=form.cleaned_data["reason"], by=request.actor
            )
        except Refused as refused:
            form.add_error(None, refused.message)
        else:
            messages.success(request, f"{serving} is in service.")
            return redirect(serving)
    context: dict[str, Any] = {
        "form": form,
        "in_service": in_service,
        "target": target,
        "running": running,
        "cold": selectors.engines_without(target) if target else [],
        "changes": request.project.service_changes.select_related("version", "previous", "release")[:10],
    }
    return render(request, "versions/roll_back.html", context, status=400 if form.errors else 200)


def _version(request: PageRequest, pk: int) -> ModelVersion:
    return get_object_or_404(
        selectors.versions_of(request.project).select_related("project").prefetch_related("editions"), pk=pk
    )


def _evidence_of(version: ModelVersion) -> dict[str, Any]:
    rows = list(version.evidence.all())
    groups = [("Version", [row for row in rows if not row.edition_kind])]
    groups += [(kind.label, [row for row in rows if row.edition_kind == kind]) for kind in EditionKind]
    return {"evidence_groups": [(label, found) for label, found in groups if found]}
