"""What happened and what is being done: the audit trail and the work queue."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from apps.core import selectors
from apps.core.forms import AuditFilters, UnitFilters, cleaned
from apps.core.http import PageRequest, back_url, page_of, project_view
from apps.core.models import WorkUnit
from apps.core.units import unit_cancel, unit_retry


@project_view("read")
def audit(request: PageRequest) -> HttpResponse:
    form = AuditFilters(request.GET, **selectors.audit_choices(request.project))
    rows = selectors.audit_rows(request.project, **cleaned(form))
    return render(request, "core/audit.html", {"form": form, "page": page_of(request, rows)})


@project_view("read")
def work(request: PageRequest) -> HttpResponse:
    form = UnitFilters(request.GET, kinds=selectors.unit_kinds(request.project))
    chosen = cleaned(form)
    context = {
        "form": form,
        "page": page_of(request, selectors.unit_rows(request.project, **chosen)),
        "counts": selectors.unit_counts(request.project),
        "filtered": bool(chosen),
        "may_change": request.actor.may("evals"),
    }
    return render(request, "core/work.html", context)


@project_view("read")
def unit(request: PageRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(WorkUnit, project=request.project, pk=pk)
    context = {
        "unit": found,
        "open": found.state in ("pending", "sent", "running"),
        "payload": without_tokens(found.payload),
        "result": without_tokens(found.result),
        "may_change": request.actor.may("evals"),
    }
    return render(request, "core/unit.html", context)


def without_tokens(value: Any) -> Any:
    """``value`` with every run token hidden: a unit's message carries one for its worker."""
    if isinstance(value, dict):
        return {
            name: "(hidden)" if name == "token" and item else without_tokens(item)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [without_tokens(item) for item in value]
    return value


@require_POST
@project_view("evals")
def unit_retry_view(request: PageRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(WorkUnit, project=request.project, pk=pk)
    unit_retry(unit=found, by=request.actor)
    messages.success(request, f"Unit {found.pk} is waiting for a worker again.")
    return redirect(back_url(request, "/settings/work/"))


@require_POST
@project_view("evals")
def unit_cancel_view(request: PageRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(WorkUnit, project=request.project, pk=pk)
    unit_cancel(unit=found, by=request.actor)
    messages.success(request, f"Unit {found.pk} was cancelled.")
    return redirect(back_url(request, "/settings/work/"))
