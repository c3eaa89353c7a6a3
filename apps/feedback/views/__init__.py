"""Pages of feedback. The labelling screen has a file of its own (``label``)."""

import json
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.core.errors import Refused
from apps.core.http import PageRequest, page_of, project_view
from apps.core.ui.texts import masked
from apps.feedback import selectors, services
from apps.feedback.anonymizer import rules_in_force
from apps.feedback.api import jsonl_response
from apps.feedback.assets import correction_of
from apps.feedback.forms import AssetFilter, CaptureFilter, CaseFilter, DatasetForm, RulesForm
from apps.feedback.models import Dataset, TaskAsset
from apps.feedback.schemas import schema_in_force, titles


def _families(request: PageRequest) -> list[str]:
    return [row.name for row in selectors.families_of(request.project)]


@require_GET
@project_view("read")
def inbox(request: PageRequest) -> HttpResponse:
    """Failure cases with filters in the URL; similar ones are grouped above."""
    schema = schema_in_force(request.project)
    form = CaseFilter(request.GET, families=_families(request), schema=schema)
    filters = form.values()
    rows = selectors.cases_matching(request.project, **filters)
    names = titles(schema)
    page = page_of(request, rows)
    for case in page:
        case.kind_title = names.get(case.kind, case.kind)
    context = {
        "form": form,
        "page": page,
        "filtered": any(filters.values()),
        "group": filters["group"],
        "groups": [] if filters["group"] else selectors.case_groups(rows),
        "waiting": selectors.queue_progress(request.project).waiting,
    }
    return render(request, "feedback/inbox.html", context)


@require_GET
@project_view("read")
def case(request: PageRequest, pk: int) -> HttpResponse:
    found = selectors.case_full(request.project, pk)
    if found is None:
        raise Http404
    schema = schema_in_force(request.project)
    labels = list(selectors.labels_of(found))
    names = titles(schema)
    for row in labels:
        row.kind_title = names.get(row.kind, row.kind)  # type: ignore[attr-defined]
        row.severity_title = names.get(row.severity, row.severity)  # type: ignore[attr-defined]
    context = {
        "case": found,
        "content": found.capture.content or {},
        "turns": selectors.transcript_of(found),
        "masked": selectors.masked_of(found),
        "alike": selectors.alike_count(found),
        "labels": labels,
        "correction": correction_of(found),
        "families": _families(request),
        "asset": TaskAsset.objects.filter(case=found, retired_at=None).only("pk", "key").first(),
    }
    return render(request, "feedback/case.html", context)


@require_POST
@project_view("label")
def case_asset(request: PageRequest, pk: int) -> HttpResponse:
    """Make a task of a labelled case; the reason of a refusal is shown on the case."""
    found = selectors.case_full(request.project, pk)
    family = selectors.family_named(request.project, request.POST.get("family", ""))
    if found is None:
        raise Http404
    if family is None:
        raise Refused("Choose a family that this task belongs to.", code="family_missing")
    asset = services.asset_create(case=found, family=family, by=request.actor)
    messages.success(request, f"Case {found.pk} is now a task of {family.title}.")
    return redirect(asset)


@require_GET
@project_view("read")
def captures(request: PageRequest) -> HttpResponse:
    form = CaptureFilter(request.GET)
    filters = form.values()
    rows = selectors.captures_matching(request.project, **filters)
    context = {"form": form, "page": page_of(request, rows), "filtered": any(filters.values())}
    return render(request, "feedback/captures.html", context)


@require_GET
@project_view("read")
def assets(request: PageRequest) -> HttpResponse:
    form = AssetFilter(request.GET, families=_families(request))
    filters = form.values()
    rows = selectors.assets_matching(request.project, **filters)
    context = {"form": form, "page": page_of(request, rows), "filtered": any(filters.values())}
    return render(request, "feedback/assets.html", context)


@require_GET
@project_view("read")
def asset(request: PageRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(
        TaskAsset.objects.select_related("family", "verifier", "case"), project=request.project, pk=pk
    )
    context = {
        "asset": found,
        "task": found.task,
        "reference": _shown(found.task.get("reference")),
        "datasets": list(found.datasets.order_by("-pk")[:20]),
    }
    return render(request, "feedback/asset.html", context)


@require_POST
@project_view("training")
def asset_retire(request: PageRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(TaskAsset, project=request.project, pk=pk)
    services.asset_retire(asset=found, by=request.actor)
    messages.success(request, "The task is retired. Datasets that hold it keep it.")
    return redirect("feedback:assets")


@require_GET
@project_view("read")
def datasets(request: PageRequest) -> HttpResponse:
    page = page_of(request, selectors.datasets_of(request.project))
    return render(request, "feedback/datasets.html", {"page": page})


@require_http_methods(["GET", "POST"])
@project_view("training")
def dataset_create(request: PageRequest) -> HttpResponse:
    form = DatasetForm(request.POST or None, project=request.project)
    if request.method == "POST" and form.is_valid():
        try:
            made = services.dataset_create(project=request.project, by=request.actor, **form.cleaned_data)
            return redirect(made)
        except Refused as problem:
            form.add_error(None, problem.message)
    status = 400 if form.errors else 200
    return render(request, "feedback/dataset_create.html", {"form": form}, status=status)


@require_GET
@project_view("read")
def dataset(request: PageRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(Dataset, project=request.project, pk=pk)
    rows = found.assets.select_related("family").defer("task", "correction").order_by("key")
    families: dict[str, int] = {}
    for name in found.assets.values_list("family__name", flat=True):
        families[name] = families.get(name, 0) + 1
    context = {"dataset": found, "page": page_of(request, rows), "families": families}
    return render(request, "feedback/dataset.html", context)


@require_GET
@project_view("read")
def dataset_export(request: PageRequest, pk: int) -> HttpResponse:
    return jsonl_response(get_object_or_404(Dataset, project=request.project, pk=pk))


@require_http_methods(["GET", "POST"])
@project_view("label")
def rules(request: PageRequest) -> HttpResponse:
    """Rules in force; "Try" shows what a change does to a sample before anything is saved."""
    in_force = rules_in_force(request.project)
    form = RulesForm(request.POST or None, initial=RulesForm.initial_of(in_force))
    tried: Any = None
    if request.method == "POST" and form.is_valid():
        if "save" in request.POST:
            request.actor.require("admin")
            made = services.rules_revise(
                project=request.project, rules=form.cleaned_data["rules"], by=request.actor
            )
            messages.success(request, f"Rules {made.number} are in force for what is captured from now on.")
            return redirect("feedback:rules")
        tried = _tried(request, form)
    context = {"form": form, "in_force": in_force, "tried": tried, "may_save": request.actor.may("admin")}
    return render(request, "feedback/rules.html", context, status=400 if form.errors else 200)


def _shown(reference: Any) -> Any:
    """A reference for a code block: plain values as JSON, so that "7" and 7 look different."""
    return reference if isinstance(reference, dict | list) else json.dumps(reference, ensure_ascii=False)


def _tried(request: HttpRequest, form: RulesForm) -> dict[str, Any] | None:
    sample = form.cleaned_data["sample"]
    if not sample.strip():
        form.add_error("sample", "Paste a text to try the rules on.")
        return None
    try:
        done = services.rules_try(
            rules=form.cleaned_data["rules"],
            text=sample,
        )
    except Refused as problem:
        form.add_error(None, problem.message)
        return None
    return {"html": masked(done.content["text"]), "spans": done.spans}
