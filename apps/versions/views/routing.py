"""The routing page: what gateways serve by now, how it came to be, and the rules that people set."""

import json
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from apps.core.errors import Refused
from apps.core.http import PageRequest, page_of, project_view
from apps.versions import selectors, services
from apps.versions.forms import SIGNAL_WORDS, RoutingForm
from apps.versions.models import EditionKind, RoutingRevision, RoutingRules


@project_view("read")
def routing(request: PageRequest) -> HttpResponse:
    rules = RoutingRules.objects.filter(project=request.project).first() or RoutingRules(
        project=request.project
    )
    form = RoutingForm(request.POST or None, initial=RoutingForm.initial_of(rules))
    if request.method == "POST":
        request.actor.require("release")
        if form.is_valid():
            before = selectors.routing_current(request.project)
            try:
                after = services.routing_change(project=request.project, by=request.actor, **form.changes())
            except Refused as refused:
                form.add_error(None, refused.message)
            else:
                messages.success(
                    request,
                    f"Revision {after.number} is published."
                    if after and after != before
                    else "Nothing changed, so there is no new revision.",
                )
                return redirect("versions:routing")
    current = selectors.routing_current(request.project)
    context = {
        "form": form,
        "current": current,
        "words": _words(current.snapshot) if current else {},
        "page": page_of(request, RoutingRevision.objects.filter(project=request.project), per_page=20),
        "may_release": request.actor.may("release"),
    }
    return render(request, "versions/routing.html", context, status=400 if form.errors else 200)


@project_view("read")
def revision(request: PageRequest, number: int) -> HttpResponse:
    rows = RoutingRevision.objects.filter(project=request.project)
    found = get_object_or_404(rows, number=number)
    before = rows.filter(number=number - 1).first()
    return render(
        request,
        "versions/revision.html",
        {
            "revision": found,
            "before": before,
            "old_text": _text(before.snapshot) if before else "",
            "new_text": _text(found.snapshot),
        },
    )


def _words(snapshot: dict[str, Any]) -> dict[str, Any]:
    """The parts of a snapshot that are names, as people read them."""
    return {
        "task_types": [(name, _edition(kind)) for name, kind in snapshot["task_types"].items()],
        "default_edition": _edition(snapshot["default_edition"]),
        "signals": [SIGNAL_WORDS[name].lower() for name in snapshot["failure_signals"]],
    }


def _edition(kind: str) -> str:
    return str(EditionKind(kind).label).lower()


def _text(snapshot: dict[str, Any]) -> str:
    return json.dumps(snapshot, indent=1, sort_keys=True, ensure_ascii=False)
