"""Runs over the same cases: the difference, where it lies, which cases flipped and what they say."""

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render

from apps.core.errors import Refused
from apps.core.http import PageRequest, page_of, project_view
from apps.evals import held_out, selectors
from apps.evals.case_scores import case_counts
from apps.evals.compare_forms import CompareForm, TogetherForm, axis_label
from apps.evals.comparison import (
    Comparison,
    bootstrap,
    flips_of,
    flips_where,
    score_rows,
    sliced,
    telling,
)
from apps.evals.comparison import (
    compare as compare_counts,
)
from apps.evals.difference_axis import difference_axis
from apps.evals.dimensions import dimensions_of_version
from apps.evals.models import Case, Result, Run
from domain.multiplicity import benjamini_hochberg
from domain.slices import MANY, Sliced
from domain.summary import coverage_text

COMPARE_CHOICES = 100
SAMPLES_SHOWN = 50
TEXT_SHOWN = 20_000


@project_view("read")
def compare(request: PageRequest, pk: int) -> HttpResponse:
    """``?against=`` names the other run (the likeliest without it), ``by`` the axis of the slices,
    ``moved``, ``slice`` and ``q`` which flips are listed."""
    found = _run(request, pk)
    others = list(selectors.comparable_runs(found)[:COMPARE_CHOICES])
    other = _chosen(request, others) or selectors.run_to_compare(found) or (others[0] if others else None)
    context: dict[str, Any] = {"run": found, "other": other}
    if other is not None:
        known = others if other in others else [other, *others]
        axes = _axes(found) if held_out.may_cut(found.suite_version, request.actor) else ["family"]
        axis = request.GET.get("by", "") if request.GET.get("by", "") in axes else next(iter(axes), "")
        try:
            compared = selectors.run_comparison(found, other, axis)
        except Refused as refused:
            context["form"] = CompareForm({"against": str(other.pk)}, runs=known, axes=[], slices=[])
            context["refused"] = refused.message
        else:
            context |= _compared(request, found, other, compared, axis)
            labels = [row.label for row in context["cut"].rows] if axis else []
            data = request.GET.copy()
            data["against"], data["by"] = str(other.pk), axis
            context["form"] = CompareForm(data, runs=known, axes=axes, slices=labels)
    return render(request, "evals/compare.html", context)


def _compared(request: PageRequest, run: Run, other: Run, compared: Comparison, axis: str) -> dict[str, Any]:
    cut = sliced(compared, axis) if axis else Sliced((), 0, False)
    wanted = {name: request.GET.get(name, "").strip() for name in ("moved", "q")}
    # A label of another axis is left over from before the axis was changed.
    chosen = next((row.label for row in cut.rows if row.label == request.GET.get("slice")), "")
    flips = flips_where(compared, axis=axis, slice_label=chosen, **wanted)
    page = page_of(request, flips, 25)
    return {
        "compared": compared,
        "rows": score_rows(run, other, compared),
        "sides": [
            (run, compared.new, coverage_text(compared.new)),
            (other, compared.base, coverage_text(compared.base)),
        ],
        "bootstrap": bootstrap(compared),
        "axis": axis,
        "axis_name": axis_label(axis),
        "cut": cut,
        "slices": difference_axis([(row, row.difference, row.verdict, row.small) for row in cut.rows]),
        "page": page,
        "filtered": len(flips) != len(compared.moved),
        "flips": held_out.hidden_flips(flips_of(run, other, list(page.object_list)), request.actor),
    }


@project_view("read")
def compare_case(request: PageRequest, pk: int, against: int, case: int) -> HttpResponse:
    """One case answered on both sides: answers beside each other, what differs, why each got its verdict."""
    new, base = _run(request, pk), _run(request, against)
    after, before = (
        list(run.results.filter(case=case).order_by("sample")[:SAMPLES_SHOWN]) for run in (new, base)
    )
    if not after or not before:
        raise Http404
    told = telling(before, after)
    left = _sample(before, request.GET.get("before", "")) or told[0]
    right = _sample(after, request.GET.get("after", "")) or told[1]
    found = get_object_or_404(Case.objects.select_related("suite"), pk=case)
    if held_out.is_hidden(found, request.actor):
        context = {"run": new, "result": left, "words": held_out.HIDDEN}
        return render(request, "evals/suite_held_out.html", context)
    longest = max(len(left.answer), len(right.answer))
    context = {
        "run": new,
        "other": base,
        "case": found,
        "task": found.task,
        "columns": [
            ("before", base, left, left.answer[:TEXT_SHOWN], before),
            ("after", new, right, right.answer[:TEXT_SHOWN], after),
        ],
        "cut_at": TEXT_SHOWN if longest > TEXT_SHOWN else 0,
        "names": [f"run {run.pk}, {run.target_name}" for run in (base, new)],
        "states": [left.state, right.state],
        "old": left.answer[:TEXT_SHOWN],
        "new": right.answer[:TEXT_SHOWN],
    }
    return render(request, "evals/compare_case.html", context)


@project_view("read")
def compare_runs(request: PageRequest) -> HttpResponse:
    """``?base=1&run=2&run=3``: several runs against one base, each over the cases that it shares with it."""
    wanted = [value for value in request.GET.getlist("base") if value.isdecimal() and len(value) < 18]
    base = _run(request, int(wanted[0])) if wanted else None
    runs = [] if base is None else [base, *selectors.comparable_runs(base)[:COMPARE_CHOICES]]
    chosen = request.GET if "run" in request.GET else None
    form = TogetherForm(chosen, runs=runs) if runs else None
    context: dict[str, Any] = {"base": base, "form": form}
    if form is not None and base is not None:
        if not form.is_bound:
            form.initial = {"base": str(base.pk)}
        elif form.is_valid():
            by_id = {str(run.pk): run for run in runs}
            news = [by_id[key] for key in form.cleaned_data["run"] if key != form.cleaned_data["base"]]
            context |= _together(by_id[form.cleaned_data["base"]], news)
    return render(request, "evals/compare_runs.html", context)


def _together(base: Run, news: list[Run]) -> dict[str, Any]:
    counts, refused, found = case_counts(base), [], []
    for run in news:
        try:
            found.append((run, compare_counts(run, base, case_counts(run), counts)))
        except Refused as error:
            refused.append((run, error.message))
    tested = [row for row in found if row[1].difference.p_value is not None]
    stands: dict[int, bool] = {}
    many = len(tested) >= MANY
    if many:
        kept = benjamini_hochberg([row[1].difference.p_value or 0.0 for row in tested]).rejected
        stands = {row[0].pk: stand for row, stand in zip(tested, kept, strict=True)}
    rows = []
    for run, compared in found:
        verdict = compared.difference.verdict if stands.get(run.pk, True) else "cannot_tell"
        rows.append(((run, compared), compared.difference, verdict, compared.difference.low is None))
    return {"base": base, "axis": difference_axis(rows), "refused": refused, "many": many}


def _chosen(request: PageRequest, others: list[Run]) -> Run | None:
    wanted = request.GET.get("against", "")
    known = next((row for row in others if str(row.pk) == wanted), None)
    if known is None and wanted.isdecimal() and len(wanted) < 18:
        return _run(request, int(wanted))
    return known


def _axes(run: Run) -> list[str]:
    """What its cases can be cut by: family, tags with few values, and source where cases share some."""
    kept = run.dimensions if run.dimensions is not None else dimensions_of_version(run.suite_version)
    sources = run.suite_version.cases.exclude(source="").exists()
    return [*kept, *(["source"] if sources else [])]


def _sample(rows: list[Result], wanted: str) -> Result | None:
    return next((row for row in rows if str(row.sample) == wanted), None)


def _run(request: PageRequest, pk: int) -> Run:
    return get_object_or_404(selectors.runs_of(request.project), pk=pk)
