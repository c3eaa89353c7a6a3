"""Pages of installed packs: every family with its last check, and adding them to the project."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from apps.core.errors import Refused
from apps.core.http import PageRequest, back_url, page_of, project_view
from apps.core.models import WorkUnit
from apps.feedback import services as feedback
from apps.feedback.models import Family
from apps.feedback.pack_families import CHECKS
from apps.feedback.pack_selectors import PackRow, pack_rows
from apps.training.forms import PackCheckForm, PackFilters
from apps.training.graph_picture import graph_picture, parts_picture, words
from apps.training.readme import readme_html
from domain.contracts import TaskSpec
from packs.registry import Pack, broken_packs, packs


@require_GET
@project_view("read")
def pack_list(request: PageRequest) -> HttpResponse:
    form = PackFilters(request.GET, packs=packs().values())
    for field in (form.fields["kind"], form.fields["environment"]):
        field.choices = [(name, words(label)) for name, label in field.choices]  # type: ignore[attr-defined]
    filters = form.values()
    context = {
        "form": form,
        "page": page_of(request, pack_rows(request.project, **filters)),
        "filtered": any(filters.values()),
        "pack": filters["pack"],
        "broken": broken_packs(),
        "checking": _checking(request),
        "topic": CHECKS,
        "may_train": request.actor.may("training"),
    }
    return render(request, "training/packs.html", context)


@require_GET
@project_view("read")
def pack_family_page(request: PageRequest, name: str) -> HttpResponse:
    row = next((row for row in pack_rows(request.project) if row.family.name == name), None)
    if row is None:
        return _not_installed(request, name)
    sample, trouble = _sample(row.pack, name)
    urls = {part: reverse("training:pack_family", args=[part]) for part in row.family.parts}
    context = {
        "row": row,
        "sample": sample,
        "hidden": words(sample.hidden.verifier.kind) if sample and sample.hidden else "",
        "trouble": trouble,
        "graph": graph_picture(sample.model_dump(mode="json")) if sample else None,
        "parts": parts_picture(row.family.parts, name, urls),
        "readme": readme_html(_readme(row.pack)),
        "checking": _checking(request),
        "topic": CHECKS,
        "may_evaluate": request.actor.may("evals"),
        "may_train": request.actor.may("training"),
    }
    return render(request, "training/pack_family.html", context)


@require_POST
@project_view("training")
def packs_check(request: PageRequest) -> HttpResponse:
    """Check one family, those that a filter shows, or all."""
    form = PackCheckForm(request.POST)
    form.is_valid()
    one = form.cleaned_data.get("family") or ""
    filters = PackFilters(request.GET, packs=packs().values()).values()
    shown = (
        []
        if one or not any(filters.values())
        else [r.family.name for r in pack_rows(request.project, **filters)]
    )
    if not one and any(filters.values()) and not shown:
        raise Refused("No family matches the filter, so nothing is checked.", code="families_none")
    families = [one] if one else shown
    sample = form.cleaned_data.get("sample") or 5
    feedback.packs_check(project=request.project, families=families, sample=sample, by=request.actor)
    what = one or (f"{len(families)} families" if families else "all families")
    messages.success(request, f"Checking {what}, {sample} tasks of each. The figures appear when it is done.")
    return redirect(back_url(request, reverse("training:packs")))


@require_POST
@project_view("training")
def packs_add(request: PageRequest) -> HttpResponse:
    """Add one family, or a whole pack in the background."""
    if name := request.POST.get("family", ""):
        family = feedback.pack_family_add(project=request.project, name=name, by=request.actor)
        messages.success(request, f"{family.title} is in this project; its gauntlet runs now.")
        return redirect(family)
    names = feedback.pack_add(project=request.project, pack=request.POST.get("pack", ""), by=request.actor)
    said = (
        f"{len(names)} families are being added, one after another." if names else "All were there already."
    )
    messages.success(request, said)
    return redirect(back_url(request, reverse("training:packs")))


def _not_installed(request: PageRequest, name: str) -> HttpResponse:
    """A family that outlived its pack is still in the project: its own page says what is missing."""
    family = Family.objects.filter(project=request.project, name=name).exclude(pack="").first()
    if family is None:
        raise Http404
    gone = "no longer brings this family" if family.pack in packs() else "is not installed"
    messages.warning(request, f"The pack “{family.pack}” {gone}: no more tasks can be imported.")
    return redirect(family)


def _checking(request: PageRequest) -> dict[str, Any] | None:
    """The check that waits or runs, with its progress."""
    units = WorkUnit.objects.filter(project=request.project, owner=CHECKS).open().order_by("pk")
    unit = units.defer("payload", "result").first()
    if unit is None:
        return None
    return {"unit": unit, "done": unit.progress.get("done", 0), "total": unit.progress.get("total", 0)}


@lru_cache(maxsize=128)
def _sample(pack: Pack, family: str) -> tuple[TaskSpec | None, str]:
    """A task to look at; a pack that cannot make one says why."""
    try:
        return pack.generate(family, seed=0, count=1)[0], ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"[:300]


def _readme(pack: Pack) -> str:
    path = Path(pack.folder) / "README.md" if pack.folder else None
    return path.read_text(encoding="utf-8") if path and path.is_file() else ""


__all__ = ["PackRow", "pack_family_page", "pack_list", "packs_add", "packs_check"]
