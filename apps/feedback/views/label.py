"""The labelling screen. Every action is a plain form; the page's script only makes it faster."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from apps.core.errors import Refused
from apps.core.http import PageRequest, project_view
from apps.feedback import selectors, services
from apps.feedback.anonymizer import warm_in_background
from apps.feedback.assets import correction_of, suggestion_for
from apps.feedback.forms import LabelForm
from apps.feedback.models import FailureCase, Label
from apps.feedback.schemas import schema_in_force, titles


@require_GET
@project_view("label")
def label(request: PageRequest) -> HttpResponse:
    """The next case, leased; ``?case=`` opens one of one's own decisions again."""
    warm_in_background()
    wanted = request.GET.get("case", "")
    if wanted:
        found = _case(request, int(wanted) if wanted.isdigit() and len(wanted) < 18 else 0)
        if found.state == FailureCase.State.ASSET:
            messages.error(request, "This case became a task; it cannot be changed any more.")
            return redirect(found)
        try:
            services.case_lease(case=found, by=request.actor)
        except Refused as refused:
            messages.error(request, refused.message)
            return redirect(found)
        return render(request, "feedback/label.html", _context(request, found))
    taken = services.queue_next(
        project=request.project, by=request.actor, family=request.GET.get("family", "")
    )
    if taken.case is None:
        context = {"retry_at": taken.retry_at, "recent": _recent(request)}
        return render(request, "feedback/label_none.html", context)
    return render(request, "feedback/label.html", _context(request, _case(request, taken.case.pk)))


@require_GET
@project_view("label")
def label_next(request: PageRequest) -> HttpResponse:
    """The case after this one as a fragment, leased ahead; 204 when there is none."""
    exclude = request.GET.get("exclude", "")
    taken = services.queue_next(
        project=request.project,
        by=request.actor,
        family=request.GET.get("family", ""),
        exclude=int(exclude) if exclude.isdigit() and len(exclude) < 18 else None,
    )
    if taken.case is None:
        return HttpResponse(status=204)
    return render(request, "feedback/_label.html", _context(request, _case(request, taken.case.pk), ahead=1))


@require_POST
@project_view("label")
def label_save(request: PageRequest, pk: int) -> HttpResponse:
    """Save and go on. A script gets the list of last decisions; a refusal is 409 with its sentence."""
    found = _case(request, pk)
    form = LabelForm(request.POST)
    by_script = request.headers.get("Accept", "").startswith("text/x-fragment")
    if not form.is_valid():
        return JsonResponse({"message": "The decision could not be read."}, status=400)
    data = dict(form.cleaned_data)
    group = data.pop("group")
    try:
        services.case_label(case=found, by=request.actor, **data)
    except Refused as refused:
        if not by_script:
            messages.error(request, refused.message)
            return redirect(f"{reverse('feedback:label')}?case={found.pk}")
        return JsonResponse({"message": refused.message}, status=refused.status)
    if group:
        made = services.cases_label_group(
            case=found, kind=data["kind"], severity=data["severity"], by=request.actor
        )
        messages.success(request, f"{len(made) + 1} cases got this decision.")
    if by_script:
        return render(request, "feedback/_recent.html", {"recent": _recent(request)})
    return redirect("feedback:label")


@require_POST
@project_view("label")
def label_skip(request: PageRequest, pk: int) -> HttpResponse:
    try:
        services.case_skip(case=_case(request, pk), by=request.actor)
    except Refused as refused:
        if request.headers.get("Accept", "").startswith("text/x-fragment"):
            return JsonResponse({"message": refused.message}, status=refused.status)
        raise
    if request.headers.get("Accept", "").startswith("text/x-fragment"):
        return render(request, "feedback/_recent.html", {"recent": _recent(request)})
    return redirect("feedback:label")


@require_POST
@project_view("label")
def label_undo(request: PageRequest) -> HttpResponse:
    """Take back one's last decision, or the one named, and show its case again."""
    rows = Label.objects.filter(case__project=request.project, by=request.actor.name, undone_at=None)
    wanted = request.POST.get("label", "")
    found = rows.filter(pk=int(wanted)).first() if wanted.isdigit() else rows.order_by("-pk").first()
    if found is None:
        raise Refused("There is nothing to undo.", code="nothing_to_undo")
    case = services.label_undo(label=found, by=request.actor)
    messages.success(request, f"Case {case.pk} is open again.")
    return redirect(f"{reverse('feedback:label')}?case={case.pk}")


@require_POST
@project_view("label")
def label_lease(request: PageRequest, pk: int) -> HttpResponse:
    """The heartbeat of an open page."""
    try:
        case = services.case_lease(case=_case(request, pk), by=request.actor)
    except Refused as refused:
        return JsonResponse({"message": refused.message}, status=refused.status)
    return JsonResponse({"leased_until": case.leased_until})


@require_POST
@project_view("label")
def label_check(request: PageRequest, pk: int) -> HttpResponse:
    """What the family's verifier says to the answer being typed. Nothing is stored."""
    case = _case(request, pk)
    family = selectors.family_named(request.project, case.family)
    suggestion = suggestion_for(case, family, request.POST.get("correction", ""))
    return render(request, "feedback/_check.html", {"family": family, "suggestion": suggestion})


def _case(request: PageRequest, pk: int) -> FailureCase:
    found = selectors.case_full(request.project, pk)
    if found is None:
        raise Http404
    return found


def _context(request: PageRequest, case: FailureCase, ahead: int = 0) -> dict[str, Any]:
    schema = schema_in_force(request.project)
    mine = Label.objects.filter(case=case, by=request.actor.name, undone_at=None).first()
    family = selectors.family_named(request.project, case.family)
    correction = mine.correction if mine else correction_of(case)
    left = case.leased_until - timezone.now() if case.leased_until else None
    return {
        "case": case,
        "turns": selectors.transcript_of(case),
        "masked": selectors.masked_of(case),
        "alike": selectors.alike_count(case),
        "schema": schema,
        "mine": mine,
        "correction": correction,
        "family": family,
        "suggestion": suggestion_for(case, family, correction),
        "progress": selectors.queue_progress(request.project),
        "position_ahead": ahead,
        "lease_minutes": round(left.total_seconds() / 60) if left else 0,
        "recent": _recent(request),
        "queue_family": request.GET.get("family", ""),
    }


def _recent(request: PageRequest) -> list[Label]:
    names = titles(schema_in_force(request.project))
    rows = selectors.last_decisions(request.project, request.actor.name)
    for row in rows:
        row.kind_title = names.get(row.kind, row.kind)  # type: ignore[attr-defined]
    return rows
