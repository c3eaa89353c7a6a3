"""Importing a suite: files are sent, shown as they will be, read otherwise, then imported or dropped."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRedirect

from apps.core.errors import Refused
from apps.core.http import PageRequest, project_view
from apps.core.ui.numbers import count
from apps.evals import held_out, services
from apps.evals.models import Case, SuiteImport
from apps.evals.services.import_rows import report_of
from apps.evals.suite_forms import ImportForm, ReadingForm
from apps.feedback.anonymizer import warm_in_background


@project_view("evals")
def suite_import(request: PageRequest) -> HttpResponse:
    """Send files; what is wrong with them is said here, and nothing of them is kept."""
    warm_in_background()  # what finds personal data; the files must not wait for it
    initial = {"name": request.GET.get("suite", "")}
    form = ImportForm(request.POST or None, request.FILES or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            row = services.suite_import_start(
                project=request.project,
                name=form.cleaned_data["name"],
                uploads=form.uploads(),
                choices=form.choices(),
                by=request.actor,
            )
        except Refused as refused:
            form.add_error("file", refused.message)
        else:
            return redirect(row)
    return render(request, "evals/suite_import.html", {"form": form}, status=400 if form.errors else 200)


@project_view("evals")
def suite_import_preview(request: PageRequest, pk: int) -> HttpResponse:
    """What the files hold and what they would change; live while they are being read."""
    row = _import(request, pk)
    if row.state == SuiteImport.State.DONE and row.version is not None:
        if request.htmx:  # the page was live while a worker imported: go on as a whole
            return HttpResponseClientRedirect(row.version.get_absolute_url())
        return redirect(row.version)
    return _shown(request, row, _reading_form(row))


@require_POST
@project_view("evals")
def suite_import_change(request: PageRequest, pk: int) -> HttpResponse:
    row = _import(request, pk)
    form = _reading_form(row, request.POST)
    if form.is_valid():
        try:
            services.suite_import_change(
                row=row, choices=form.choices(), name=form.cleaned_data["name"], by=request.actor
            )
        except Refused as refused:
            form.add_error(None, refused.message)
        else:
            return redirect(row)
    return _shown(request, row, form, status=400)


@require_POST
@project_view("evals")
def suite_import_confirm(request: PageRequest, pk: int) -> HttpResponse:
    row = _import(request, pk)
    report = report_of(row)
    version = services.suite_import_confirm(row=row, digest=request.POST.get("digest", ""), by=request.actor)
    if version is None:
        return redirect(row)
    said = f"{version} holds {count(version.count, 'case')}"
    if report.get("replaced"):
        were = "was" if report["replaced"] == 1 else "were"
        said += (
            f"; {count(report['replaced'], 'personal detail')} {were} replaced in {report['masked']} of them"
        )
    if report.get("left_out_count"):
        said += f"; {count(report['left_out_count'], 'part')} of the file left out"
    messages.success(request, f"{said}.")
    return redirect(version)


@require_POST
@project_view("evals")
def suite_import_stop(request: PageRequest, pk: int) -> HttpResponse:
    row = _import(request, pk)
    services.suite_import_stop(row=row, by=request.actor)
    messages.info(request, "Stopped. Nothing was imported.")
    return redirect(row)


@require_POST
@project_view("evals")
def suite_import_discard(request: PageRequest, pk: int) -> HttpResponse:
    row = _import(request, pk)
    services.suite_import_discard(row=row, by=request.actor)
    messages.info(request, "The files were dropped. Nothing was imported.")
    return redirect("evals:suites")


def _import(request: PageRequest, pk: int) -> SuiteImport:
    """An import of the one who looks; others' files open for those who may read held-out cases only."""
    rows = SuiteImport.objects.filter(project=request.project).select_related("version__suite", "project")
    row = rows.defer("upload", "prepared").filter(pk=pk).first()  # tens of megabytes that no page shows
    if row is None or not (row.created_by == request.actor.name or held_out.may_see(request.actor)):
        raise Http404
    return row


def _reading_form(row: SuiteImport, data: Any = None) -> ReadingForm:
    report = report_of(row)
    options: dict[str, Any] = row.options
    return ReadingForm(
        data,
        format_name=report.get("format", options.get("format", "")),
        columns=report.get("columns") or list(options.get("columns", {}).items()),
        initial=ReadingForm.initial_of(row.suite_name, options, row.keep_personal_data),
    )


def _shown(request: PageRequest, row: SuiteImport, form: ReadingForm, status: int = 200) -> HttpResponse:
    report = report_of(row)
    words = dict(Case.Split.choices)
    context = {
        "row": row,
        "form": form,
        "report": report,
        "splits": [(str(words[name]).lower(), n) for name, n in report.get("splits", {}).items()],
        "more_left_out": max(0, report.get("left_out_count", 0) - len(report.get("left_out", []))),
        "reading": row.state == SuiteImport.State.READING,
        "importing": row.state == SuiteImport.State.IMPORTING,
        "ready": row.state == SuiteImport.State.READY,
    }
    fragment = request.htmx and request.htmx.target == "import"
    template = "evals/_suite_import.html" if fragment else "evals/suite_import_preview.html"
    return render(request, template, context, status=status)
