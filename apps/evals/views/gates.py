"""Pages of gates: a suite's rules and their history, a decision, judging a run."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from apps.core.errors import Refused
from apps.core.http import PageRequest, page_of, project_view
from apps.evals import selectors, services
from apps.evals.gate_figures import figure_pairs
from apps.evals.gate_forms import GateForm, words_of
from apps.evals.models import Suite
from apps.evals.selectors import gates
from domain.gate_rules import needs_baseline


@project_view("read")
def gate(request: PageRequest, pk: int) -> HttpResponse:
    """The rules in force, what they decided, and every earlier revision."""
    suite = _suite(request, pk)
    revision = gates.gate_in_force(suite)
    rules = revision.parsed() if revision else ()
    context = {
        "suite": suite,
        "gate": revision,
        "words": words_of(rules),
        "page": page_of(request, gates.decisions_of(suite), 25),
        "revisions": [(row, words_of(row.parsed())) for row in gates.gate_revisions_of(suite)[:50]],
        "compares": needs_baseline(rules),
        "may_change": request.actor.may("evals"),
    }
    return render(request, "evals/gate.html", context)


@project_view("evals")
def gate_edit(request: PageRequest, pk: int) -> HttpResponse:
    suite = _suite(request, pk)
    last = suite.gate_revisions.first()
    initial = GateForm.initial_of(last.parsed(), last.blocks_release) if last else {}
    form = GateForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            revision = services.gate_revise(
                suite=suite,
                rules=form.rules(),
                blocks_release=form.cleaned_data["blocks_release"],
                reason=form.cleaned_data["reason"],
                by=request.actor,
            )
        except Refused as refused:
            form.add_error(None, refused.message)
        else:
            said = "are in force" if revision.rules else "took the gate away"
            messages.success(request, f"Rules {revision.number} {said}.")
            return redirect(revision)
    newest = suite.versions.first()
    context = {
        "suite": suite,
        "form": form,
        "last": last,
        "newest": newest,
        "families": selectors.families_of(newest)[:30] if newest else [],
    }
    return render(request, "evals/gate_edit.html", context, status=400 if form.errors else 200)


@project_view("read")
def decision(request: PageRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(gates.project_decisions(request.project), pk=pk)
    in_force = gates.gate_in_force(found.revision.suite)
    context: dict[str, Any] = {
        "decision": found,
        "run": found.run,
        "suite": found.revision.suite,
        "results": [(row, figure_pairs(row["kind"], row["figures"])) for row in found.results],
        "outdated": in_force is None or in_force.pk != found.revision_id,
        "newer": gates.decision_of_run(found.run),
        "may_change": request.actor.may("evals"),
    }
    return render(request, "evals/gate_decision.html", context)


@project_view("read")
def run_gate(request: PageRequest, pk: int) -> HttpResponse:
    """The gate's part of a run's page, fetched while a decision is on its way; a page by itself."""
    run = get_object_or_404(selectors.runs_of(request.project), pk=pk)
    context = {"run": run, "run_gate": gates.run_gate(run), "may_change": request.actor.may("evals")}
    return render(request, "evals/_gate.html" if request.htmx else "evals/run_gate.html", context)


@require_POST
@project_view("evals")
def run_judge(request: PageRequest, pk: int) -> HttpResponse:
    """Judge a run by the rules in force now."""
    run = get_object_or_404(selectors.runs_of(request.project), pk=pk)
    found = services.gate_decide(run=run, by=request.actor)
    messages.info(request, f"The gate {_said(found.decision)}.")
    return redirect(found)


def _said(decision: str) -> str:
    return {"passed": "passed", "failed": "failed"}.get(decision, "is undecided")


def _suite(request: PageRequest, pk: int) -> Suite:
    return get_object_or_404(Suite.objects.filter(project=request.project), pk=pk)
