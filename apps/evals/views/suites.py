"""Suites: home, list, versions, cases, what differs between versions, export."""

import itertools
from collections.abc import AsyncIterator, Iterator
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from apps.core.errors import Refused
from apps.core.forms import cleaned
from apps.core.http import PageRequest, page_of, project_view
from apps.core.permissions import Actor
from apps.evals import charts, held_out, selectors, services
from apps.evals.models import Case, Run, Suite, SuiteVersion
from apps.evals.suite_diff import entries_shown, suite_diff
from apps.evals.suite_forms import CaseFilters, DiffForm, SuiteFilters, SuiteForm

HOME_ROWS = 8
DIFF_ROWS = 20
EXPORT_LINES = 500


@project_view("read")
def home(request: PageRequest) -> HttpResponse:
    """Pass rate over versions, the newest runs, the suites."""
    runs = list(selectors.runs_of(request.project)[:HOME_ROWS])
    suites = list(selectors.suites_of(request.project))
    last = selectors.last_runs_of(suites)
    summaries = selectors.summaries_of(last.values())
    figure = charts.rates_figure(request.project)
    context = {
        "figure": figure,
        "figure_label": charts.figure_label(figure) if figure else "",
        "runs": selectors.run_cards(runs),
        "suites": _with_last(suites, last, summaries),
        "may_change": request.actor.may("evals"),
    }
    return render(request, "evals/home.html", context)


@project_view("read")
def suite_list(request: PageRequest) -> HttpResponse:
    form = SuiteFilters(request.GET)
    chosen = cleaned(form)
    page = page_of(request, selectors.suites_of(request.project, **chosen))
    last = selectors.last_runs_of(page.object_list)
    context = {
        "form": form,
        "page": page,
        "suites": _with_last(page.object_list, last, selectors.summaries_of(last.values())),
        "filtered": bool(chosen),
        "may_change": request.actor.may("evals"),
    }
    return render(request, "evals/suites.html", context)


@project_view("evals")
def suite_create(request: PageRequest) -> HttpResponse:
    form = SuiteForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            suite = services.suite_create(project=request.project, by=request.actor, **form.cleaned_data)
        except Refused as refused:
            form.add_error(None, refused.message)
        else:
            return redirect(suite)
    return render(request, "evals/suite_create.html", {"form": form}, status=400 if form.errors else 200)


@project_view("read")
def suite(request: PageRequest, pk: int) -> HttpResponse:
    """One suite: its versions and its runs."""
    found = get_object_or_404(Suite, project=request.project, pk=pk)
    runs = page_of(request, selectors.run_rows(request.project, suite=str(found.pk)), 25)
    suite_runs = selectors.runs_of(request.project).filter(
        suite_version__suite=found, state=Run.State.DONE, version__isnull=False, edition_kind="standard"
    )
    figure = charts.rates_figure(request.project, list(suite_runs[: charts.MAX_RUNS]))
    versions = list(selectors.suite_versions_of(found)[:50])
    context = {
        "suite": found,
        "versions": versions,
        "newest": versions[0] if versions else None,
        "page": runs,
        "runs": selectors.run_cards(runs),
        "figure": figure,
        "figure_label": charts.figure_label(figure) if figure else "",
        "may_change": request.actor.may("evals"),
    }
    return render(request, "evals/suite.html", context)


@project_view("read")
def suite_version(request: PageRequest, pk: int, number: int) -> HttpResponse:
    """The cases of a version; ``?case=`` shows one of them whole."""
    version = _version(request, pk, number)
    splits = selectors.split_counts(version)
    form = CaseFilters(request.GET, families=selectors.families_of(version), splits=list(splits))
    chosen = cleaned(form)
    shown = None
    if (wanted := request.GET.get("case", "")).isdecimal() and len(wanted) < 18:
        shown = version.cases.filter(pk=wanted).first()
    page = page_of(request, selectors.case_rows(version, **chosen))
    words = dict(Case.Split.choices)
    context: dict[str, Any] = {
        "version": version,
        "form": form,
        "page": page,
        "rows": [(row, held_out.is_hidden(row, request.actor)) for row in page],
        "filtered": bool(chosen),
        "case": shown,
        "case_hidden": shown is not None and held_out.is_hidden(shown, request.actor),
        "hidden_words": held_out.HIDDEN,
        "query": _query_without_case(request),
        "splits": [(str(words[split]).lower(), count) for split, count in splits.items()],
        "left_at_export": 0 if held_out.may_see(request.actor) else splits.get(Case.Split.HELD_OUT, 0),
        "earlier": version.suite.versions.filter(number__lt=version.number)
        .values_list("number", flat=True)
        .first(),
        "has_map": selectors.has_map(version),
        "may_change": request.actor.may("evals"),
    }
    if shown is not None:
        results = shown.results.filter(run__project=request.project)
        context["results"] = results.select_related("run__version", "run__deployment", "case").order_by(
            "-run", "sample"
        )[:20]
    return render(request, "evals/suite_version.html", context)


@project_view("read")
def suite_changes(request: PageRequest, pk: int) -> HttpResponse:
    """``?old=1&new=2``: what differs between two versions; without them the last two."""
    found = get_object_or_404(Suite, project=request.project, pk=pk)
    versions = list(found.versions.all()[:200])
    form = DiffForm(request.GET, versions=versions)
    chosen = cleaned(form)
    by_number = {str(row.number): row for row in versions}
    new = by_number.get(chosen.get("new", "")) or (versions[0] if versions else None)
    old = by_number.get(chosen.get("old", "")) or next(
        (row for row in versions if new is not None and row.number < new.number), new
    )
    context: dict[str, Any] = {"suite": found, "versions": versions, "hidden_words": held_out.HIDDEN}
    if new is not None and old is not None:
        diff = suite_diff(old, new)
        entries = diff.of_kind(chosen.get("kind", ""))
        page = page_of(request, entries, DIFF_ROWS)
        numbers = {"old": str(old.number), "new": str(new.number), "kind": chosen.get("kind", "")}
        context |= {
            "form": DiffForm(numbers, versions=versions),
            "diff": diff,
            "page": page,
            "entries": entries_shown(list(page.object_list), request.actor),
            "filtered": bool(chosen.get("kind")),
        }
    return render(request, "evals/suite_diff.html", context)


@project_view("read")
def suite_export(request: PageRequest, pk: int, number: int) -> Any:  # streamed, which is no HttpResponse
    return export_response(request, _version(request, pk, number), request.actor)


def export_response(request: HttpRequest, version: SuiteVersion, actor: Actor) -> StreamingHttpResponse:
    """The version as a file to download, sent as it is read. Held-out cases go to those who may see them;
    the header ``X-Held-Out-Cases-Left-Out`` counts what stays here."""
    whole = held_out.may_see(actor)
    left = 0 if whole else version.cases.filter(split=Case.Split.HELD_OUT).count()
    lines = services.suite_export_stream(suite_version=version, held_out=whole or not left)
    name = f"suite-{version.suite_id}-v{version.number}.jsonl"
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "X-Suite-Digest": version.digest,
        "X-Held-Out-Cases-Left-Out": str(left),
    }
    streamed = _slowly(lines) if isinstance(request, ASGIRequest) else lines
    return StreamingHttpResponse(streamed, content_type="application/jsonl", headers=headers)


async def _slowly(lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Pieces as the receiver takes them; an ordinary iterator would be read whole before the first."""
    while piece := await sync_to_async(lambda: b"".join(itertools.islice(lines, EXPORT_LINES)))():
        yield piece


def _version(request: PageRequest, pk: int, number: int) -> SuiteVersion:
    rows = SuiteVersion.objects.filter(suite__project=request.project).select_related("suite__project")
    return get_object_or_404(rows, suite=pk, number=number)


def _with_last(suites: Any, last: dict[int, Run], summaries: Any) -> list[dict[str, Any]]:
    return [
        {
            "suite": row,
            "run": last.get(row.pk),
            "summary": summaries[last[row.pk].pk] if row.pk in last else None,
        }
        for row in suites
    ]


def _query_without_case(request: PageRequest) -> str:
    query = request.GET.copy()
    query.pop("case", None)
    return query.urlencode()
