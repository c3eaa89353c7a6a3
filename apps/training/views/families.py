"""Pages of task families: what can be trained on, and tasks from packs."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from apps.core.errors import Refused
from apps.core.http import PageRequest, project_view
from apps.feedback import services as feedback
from apps.feedback.models import Family, TaskAsset
from apps.feedback.selectors import families_of
from apps.training.forms import ImportForm
from apps.training.graph_picture import graph_picture
from packs.registry import UnknownPack, pack_named, packs

_SAMPLES = 5


@require_GET
@project_view("read")
def family_list(request: PageRequest) -> HttpResponse:
    return render(
        request, "training/families.html", {"families": families_of(request.project).order_by("name")}
    )


@require_GET
@project_view("read")
def family_page(request: PageRequest, pk: int) -> HttpResponse:
    return _page(request, _family(request, pk), ImportForm())


@require_POST
@project_view("training")
def family_import(request: PageRequest, pk: int) -> HttpResponse:
    """Tasks that the family's pack generates; what evaluations reserve is left out."""
    family = _family(request, pk)
    form = ImportForm(request.POST)
    if not form.is_valid():
        return _page(request, family, form)
    try:
        pack = pack_named(family.pack)
    except UnknownPack:
        raise Refused(f"The pack “{family.pack}” is not installed.", code="pack_missing") from None
    tasks = pack.generate(family.name, reserved=False, **form.cleaned_data)
    made = feedback.assets_import(project=request.project, family=family, tasks=tasks, by=request.actor)
    known = len(tasks) - len(made)
    note = f" {known} were there already." if known else ""
    messages.success(request, f"{len(made)} tasks imported.{note}")
    return redirect(family)


def _page(request: PageRequest, family: Family, form: ImportForm) -> HttpResponse:
    samples = list(TaskAsset.objects.filter(family=family, retired_at=None).order_by("pk")[:_SAMPLES])
    first = samples[0] if samples else None
    installed = family.pack in packs()
    context = {
        "family": family,
        "graph": graph_picture(first.task) if first else None,
        "samples": samples,
        "form": form,
        "installed": installed,
        "may_import": installed and request.actor.may("training"),
    }
    return render(request, "training/family.html", context, status=400 if form.errors else 200)


def _family(request: PageRequest, pk: int) -> Family:
    return get_object_or_404(families_of(request.project), pk=pk)
