"""Pages of verifiers and their gauntlets."""

import json
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.core.errors import Refused
from apps.core.http import PageRequest, page_of, project_view
from apps.feedback import agreements
from apps.feedback import selectors as feedback_selectors
from apps.feedback import services as feedback
from apps.feedback.models import Family, GauntletEntry, TaskAsset, Verifier, VerifierAgreement
from apps.feedback.verifier_diff import as_text
from apps.feedback.verifiers import left_to_tasks
from apps.training import selectors
from apps.training.forms import EntryForm, RetireForm
from domain.exploits import ROWS
from domain.verifiers import KINDS


@require_GET
@project_view("read")
def verifier_list(request: PageRequest) -> HttpResponse:
    page = page_of(request, selectors.verifiers_of(request.project))
    measured = selectors.agreements_latest(page.object_list)
    for verifier in page.object_list:
        verifier.measured = measured.get(verifier.pk)  # type: ignore[attr-defined]
    context = {"page": page, "may_train": request.actor.may("training")}
    return render(request, "training/verifiers.html", context)


@require_GET
@project_view("read")
def verifier_page(request: PageRequest, pk: int) -> HttpResponse:
    verifier = _verifier(request, pk)
    versions = list(feedback_selectors.verifier_versions(verifier))
    families = list(Family.objects.filter(verifier__in=versions).select_related("verifier").order_by("name"))
    context = {
        "verifier": verifier,
        "versions": versions,
        "families": families,
        "others": [family for family in families if family.verifier_id != verifier.pk],
        "compared": _compared(request, verifier, versions),
        "agreements": list(verifier.agreements.all()[:10]),
        "left": left_to_tasks(verifier.kind, verifier.params) if verifier.kind in KINDS else [],
        "kind": KINDS.get(verifier.kind),
        "groups": selectors.gauntlet_groups(verifier),
        "retired": selectors.retired_entries(verifier),
        "runs": selectors.gauntlet_runs_of(verifier),
        "running": selectors.check_running(verifier),
        "topic": f"feedback.verifier:{verifier.pk}",
        "may_train": request.actor.may("training"),
    }
    template = "training/_verifier.html" if request.htmx else "training/verifier.html"
    return render(request, template, context)


@require_POST
@project_view("training")
def verifier_measure(request: PageRequest, pk: int) -> HttpResponse:
    """Measure how far this version agrees with people."""
    return redirect(feedback.agreement_start(verifier=_verifier(request, pk), by=request.actor))


@require_POST
@project_view("training")
def verifier_use(request: PageRequest, pk: int) -> HttpResponse:
    """Let a family judge its next tasks by this version."""
    verifier = _verifier(request, pk)
    number = request.POST.get("family", "")
    families = Family.objects.filter(project=request.project)
    family = get_object_or_404(families, pk=int(number) if number.isdigit() and len(number) < 18 else 0)
    feedback.family_use_verifier(family=family, verifier=verifier, by=request.actor)
    messages.success(request, f"{family.title} judges its next tasks by {verifier}.")
    return redirect(verifier)


@require_GET
@project_view("read")
def agreement_page(request: PageRequest, pk: int) -> HttpResponse:
    rows = VerifierAgreement.objects.filter(verifier__project=request.project).select_related("verifier")
    agreement = get_object_or_404(rows, pk=pk)
    context = {
        "agreement": agreement,
        "verifier": agreement.verifier,
        "wrong": list(agreements.disagreements(agreement)),
        "undecided": list(agreements.undecided(agreement)),
        "left_out": [(agreements.LEFT_OUT[name], count) for name, count in agreement.left_out.items()],
        "topic": agreements.owner_of(agreement),
    }
    template = "training/_agreement.html" if request.htmx else "training/agreement.html"
    return render(request, template, context)


@require_POST
@project_view("training")
def verifier_check(request: PageRequest, pk: int) -> HttpResponse:
    verifier = _verifier(request, pk)
    feedback.verifier_check(verifier=verifier, by=request.actor)
    return redirect(verifier)


@require_http_methods(["GET", "POST"])
@project_view("training")
def entry_add(request: PageRequest, pk: int) -> HttpResponse:
    verifier = _verifier(request, pk)
    form = EntryForm(request.POST or None, initial={"task": _sample_task(verifier)})
    if request.method == "POST" and form.is_valid():
        try:
            entry = feedback.entry_add(verifier=verifier, by=request.actor, **form.cleaned_data)
        except Refused as refused:
            form.add_error(None, refused.message)
        else:
            messages.success(
                request, f"“{entry.name}” is in the gauntlet. Run it to have the verifier admitted again."
            )
            return redirect(verifier)
    context = {"form": form, "verifier": verifier}
    return render(request, "training/entry.html", context, status=400 if form.errors else 200)


@require_GET
@project_view("read")
def entry_page(request: PageRequest, pk: int) -> HttpResponse:
    return _entry_page(request, _entry(request, pk), RetireForm())


@require_POST
@project_view("training")
def entry_retire(request: PageRequest, pk: int) -> HttpResponse:
    entry = _entry(request, pk)
    form = RetireForm(request.POST)
    if not form.is_valid():
        return _entry_page(request, entry, form)
    feedback.entry_retire(entry=entry, reason=form.cleaned_data["reason"], by=request.actor)
    messages.success(
        request, f"“{entry.name}” is retired. Run the gauntlet to have {entry.verifier} admitted again."
    )
    return redirect(entry.verifier)


def _entry_page(request: PageRequest, entry: GauntletEntry, form: RetireForm) -> HttpResponse:
    context = {
        "entry": entry,
        "verifier": entry.verifier,
        "catalogue": ROWS.get(entry.row or 0),
        "history": selectors.history_of(entry),
        "form": form,
        "may_train": request.actor.may("training"),
    }
    return render(request, "training/gauntlet_entry.html", context, status=400 if form.errors else 200)


def _entry(request: PageRequest, pk: int) -> GauntletEntry:
    rows = GauntletEntry.objects.filter(verifier__project=request.project).select_related("verifier__project")
    return get_object_or_404(rows, pk=pk)


def _compared(request: PageRequest, verifier: Verifier, versions: list[Verifier]) -> dict[str, Any] | None:
    """The version named by ``?against=``, else the one before, as texts to compare."""
    asked = request.GET.get("against", "")
    other = next((one for one in versions if str(one.number) == asked), None)
    if not asked:
        other = next((one for one in versions if one.number < verifier.number), None)
    if other is None or other.pk == verifier.pk:
        return None
    return {"version": other, "old": as_text(other), "new": as_text(verifier), "asked": bool(asked)}


def _sample_task(verifier: Verifier) -> str:
    """A task to start from; writing one from nothing is hard."""
    asset = TaskAsset.objects.filter(verifier=verifier, retired_at=None).order_by("pk").first()
    return json.dumps(asset.task, indent=1, ensure_ascii=False) if asset else ""


def _verifier(request: PageRequest, pk: int) -> Verifier:
    return get_object_or_404(selectors.verifiers_of(request.project), pk=pk)
