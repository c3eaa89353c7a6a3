"""Runs: list, start, the live page, results. Comparisons are in ``compare``."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from apps.core.errors import Refused
from apps.core.forms import cleaned
from apps.core.http import PageRequest, page_of, project_view
from apps.evals import held_out, selectors, services
from apps.evals.comparison import flips_of, score_rows
from apps.evals.models import Result, Run, SuiteVersion
from apps.evals.result_turns import turns_of
from apps.evals.run_forms import ResultFilters, RunFilters, RunForm
from apps.evals.selectors import gates
from domain.lifecycle import RUN_ACTIONS, may_act
from domain.seeds import episode_seed
from domain.summary import coverage_text

FLIPS_ON_RUN = 5
FAMILIES_ON_RUN = 20
COMPARED_ON_RUN = 5_000  # results; a comparison of more has a page of its own


@project_view("read")
def run_list(request: PageRequest) -> HttpResponse:
    form = RunFilters(request.GET, project=request.project)
    chosen = cleaned(form)
    page = page_of(request, selectors.run_rows(request.project, **chosen), 25)
    context = {
        "form": form,
        "page": page,
        "runs": selectors.run_cards(page),
        "filtered": bool(chosen),
        "may_change": request.actor.may("evals"),
        "live": any(run.state == Run.State.RUNNING for run in page),
    }
    return render(request, "evals/runs.html", context)


@project_view("evals")
def run_start(request: PageRequest) -> HttpResponse:
    initial = {name: request.GET[name] for name in ("suite_version", "target") if request.GET.get(name)}
    form = RunForm(request.POST or None, project=request.project, initial=initial)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        version = SuiteVersion.objects.select_related("suite__project").get(
            suite__project=request.project, pk=data["suite_version"]
        )
        try:
            run = services.run_start(
                suite_version=version,
                **form.chosen(),
                **form.settings(),
                by=request.actor,
            )
        except Refused as refused:
            form.add_error(None, refused.message)
        else:
            return redirect(run)
    context = {
        "form": form,
        "no_suite": not form.fields["suite_version"].choices,  # type: ignore[attr-defined]
        "no_target": not any(options for _, options in form.fields["target"].choices),  # type: ignore[attr-defined]
    }
    return render(request, "evals/run_start.html", context, status=400 if form.errors else 200)


@project_view("read")
def run(request: PageRequest, pk: int) -> HttpResponse:
    """One run, live while it goes on: progress, figures, what changed, results.

    Nothing here is worked out from the results but the page of them that is shown.
    """
    found = _run(request, pk)
    # The filters of the results fetch this page too, and take the list out of the whole of it.
    fragment = bool(request.htmx) and request.htmx.target == "run"
    context = _measured(found) | _compared(found) | {"may_change": request.actor.may("evals")}
    held_out.hidden_flips(context.get("flips", []), request.actor)
    if fragment:
        return render(request, "evals/_run.html", context)
    tagged = held_out.may_cut(found.suite_version, request.actor)
    form = ResultFilters(request.GET, run=found, tagged=tagged)
    chosen = cleaned(form)
    page = selectors.result_page(
        selectors.result_rows(found, **form.chosen(chosen)),
        after=_id(request, "after"),
        before=_id(request, "before"),
    )
    held_out.hidden_results(page.rows, request.actor)
    context |= {
        "form": form,
        "page": page,
        "filtered": bool(chosen),
        "has_map": selectors.run_has_map(found),
        "run_gate": gates.run_gate(found),
    }
    return render(request, "evals/run.html", context)


def _measured(found: Run) -> dict[str, Any]:
    """Summary, figures and families, from the sums beside the results."""
    tally = selectors.run_tally(found)
    summary = selectors.run_summary(found, tally)
    progress = selectors.run_progress(found, tally)
    families = selectors.family_rows(found)
    ended = found.state not in (Run.State.PENDING, Run.State.RUNNING, Run.State.PAUSED)
    capture = selectors.capture_unit(found) if ended and summary.failed else None
    return {
        "run": found,
        "progress": progress,
        "pace": selectors.run_pace(found, progress["done"]),
        "summary": summary,
        "coverage": coverage_text(summary),
        "states": selectors.state_counts(summary),
        "waiting": 0 if ended else max(0, found.total - tally.results),
        "figures": selectors.run_figures(found, tally),
        "latencies": selectors.latency_rows(selectors.run_figures(found, tally)),
        "pass_at": selectors.run_pass_at(found, tally),
        "families": sorted(families, key=_worst_first)[:FAMILIES_ON_RUN] if len(families) > 1 else [],
        "families_left": max(0, len(families) - FAMILIES_ON_RUN),
        "families_mean": selectors.families_mean(families),
        "uncaptured": selectors.uncaptured_count(found) if ended and summary.failed else 0,
        "uncaptured_most": selectors.COUNTED,
        "capture": capture,
        "capturing": capture is not None and capture.state in ("pending", "sent", "running"),
        "ended": ended,
        "may": {action: may_act(action, found.state) for action in RUN_ACTIONS},
    }


def _worst_first(row: selectors.SliceRow) -> tuple[float, str]:
    rate = row.summary.pass_rate
    return (2.0 if rate is None else rate, row.value)


def _compared(found: Run) -> dict[str, Any]:
    """The run to compare with, and the comparison itself where it is small enough to open with."""
    other = selectors.run_to_compare(found) if found.state == Run.State.DONE else None
    if other is None:
        return {}
    if max(found.total, other.total) > COMPARED_ON_RUN:
        return {"against": other}
    return {"against": other, **_change(found, other)}


def _id(request: PageRequest, name: str) -> int:
    told = request.GET.get(name, "")
    return int(told) if told.isdecimal() and len(told) < 18 else 0


def _change(found: Run, other: Run) -> dict[str, Any]:
    """The comparison that the run page opens with, where the two runs share cases."""
    try:
        compared = selectors.run_comparison(found, other)
    except Refused:
        return {"against": None}
    ups = [row for row in compared.moved if row[1]][:FLIPS_ON_RUN]
    downs = [row for row in compared.moved if not row[1]][:FLIPS_ON_RUN]
    return {
        "compared": compared,
        "rows": score_rows(found, other, compared),
        "flips": flips_of(found, other, [*downs, *ups]),
    }


@require_POST
@project_view("evals")
def run_pause(request: PageRequest, pk: int) -> HttpResponse:
    found = _run(request, pk)
    services.run_pause(run=found, by=request.actor)
    messages.info(request, f"Run {found.pk} is paused. What is being asked now is finished and kept.")
    return redirect(found)


@require_POST
@project_view("evals")
def run_resume(request: PageRequest, pk: int) -> HttpResponse:
    found = _run(request, pk)
    services.run_resume(run=found, by=request.actor)
    messages.success(request, f"Run {found.pk} goes on.")
    return redirect(found)


@require_POST
@project_view("evals")
def run_cancel(request: PageRequest, pk: int) -> HttpResponse:
    found = _run(request, pk)
    services.run_cancel(run=found, by=request.actor)
    messages.info(request, f"Run {found.pk} was cancelled. Its finished results stay.")
    return redirect(found)


@require_POST
@project_view("evals")
def run_retry_errors(request: PageRequest, pk: int) -> HttpResponse:
    found = _run(request, pk)
    count = services.run_retry_errors(run=found, by=request.actor)
    messages.success(request, f"{count:,} {'case runs' if count == 1 else 'cases run'} again.")
    return redirect(found)


@require_POST
@project_view("evals")
def run_capture(request: PageRequest, pk: int) -> HttpResponse:
    found = _run(request, pk)
    count = services.results_capture(run=found, by=request.actor)
    if count is not None:
        messages.success(
            request,
            f"{count:,} failed {'result is' if count == 1 else 'results are'} on the way to Failures."
            if count
            else "Every failed result was captured before.",
        )
    return redirect(found)


@project_view("read")
def result(request: PageRequest, pk: int, result_id: int) -> HttpResponse:
    found = _run(request, pk)
    row = get_object_or_404(Result.objects.select_related("case__suite"), run=found, pk=result_id)
    if held_out.is_hidden(row.case, request.actor):
        return render(
            request, "evals/suite_held_out.html", {"run": found, "result": row, "words": held_out.HIDDEN}
        )
    context = {
        "run": found,
        "result": row,
        "task": row.case.task,
        "siblings": selectors.siblings_of(row).defer("verdict"),
        "seed": episode_seed(found.sampling["seed"], row.case.key, row.sample),
        "turns": turns_of(row),
        "messages_shown": [
            *row.case.task["messages"],
            {"role": "assistant", "content": row.answer, "state": row.state},
        ]
        if row.answer
        else row.case.task["messages"],
    }
    return render(request, "evals/result.html", context)


def _run(request: PageRequest, pk: int) -> Run:
    return get_object_or_404(selectors.runs_of(request.project), pk=pk)
