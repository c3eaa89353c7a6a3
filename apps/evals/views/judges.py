"""Judges: their versions, calibrations against people, and gold answers."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from apps.core.errors import Refused
from apps.core.http import PageRequest, page_of, project_view
from apps.evals.judge_charts import history_figure, history_label
from apps.evals.judge_forms import AnswerFilters, CalibrateForm, GoldForm, JudgeForm, initial_of
from apps.feedback import judge_selectors as selectors
from apps.feedback import services
from apps.feedback.judge_replies import replies_to
from apps.feedback.models import Calibration, Judge, JudgedAnswer
from apps.versions.models import Deployment
from domain.calibration import KAPPA_FLOOR

_HISTORY = 50


@project_view("read")
def judge_list(request: PageRequest) -> HttpResponse:
    page = page_of(request, selectors.newest_judges(request.project), 25)
    context = {
        "page": page,
        "rows": selectors.judge_rows(page.object_list),
        "gold": selectors.gold_counts(request.project),
        "floor": KAPPA_FLOOR,
        "no_endpoint": not Deployment.objects.filter(project=request.project).externals().exists(),
        "may_change": request.actor.may("evals"),
    }
    return render(request, "evals/judges.html", context)


@project_view("evals")
def judge_create(request: PageRequest) -> HttpResponse:
    return _edit(request, None)


@project_view("evals")
def judge_revise(request: PageRequest, pk: int) -> HttpResponse:
    return _edit(request, _judge(request, pk))


@project_view("read")
def judge(request: PageRequest, pk: int) -> HttpResponse:
    """One version: how it asks, what its last calibration said, and the history under its name."""
    found = _judge(request, pk)
    (row,) = selectors.judge_rows([found])
    history = list(selectors.calibrations_named(found)[:_HISTORY])
    context = {
        "judge": found,
        "row": row,
        "newest": selectors.newest_judges(request.project).get(name=found.name),
        "history": history,
        "figure": history_figure(history, KAPPA_FLOOR),
        "figure_label": history_label(history),
        "form": CalibrateForm(),
        "verifier": {"kind": found.kind, "params": found.params},
        "floor": KAPPA_FLOOR,
        "may_change": request.actor.may("evals"),
    }
    return render(request, "evals/judge.html", context)


@require_POST
@project_view("evals")
def judge_calibrate(request: PageRequest, pk: int) -> HttpResponse:
    found = _judge(request, pk)
    form = CalibrateForm(request.POST)
    if not form.is_valid():
        raise Refused("Say how many answers to take: 2 to 500.", code="limit_invalid")
    made = services.calibration_start(judge=found, limit=form.cleaned_data["limit"], by=request.actor)
    return redirect(made)


@project_view("read")
def calibration(request: PageRequest, pk: int, number: int) -> HttpResponse:
    found = _calibration(request, pk, number)
    form = AnswerFilters(request.GET)
    only = form.cleaned_data["only"] if form.is_valid() else ""
    unit = None
    if found.state == Calibration.State.RUNNING:
        unit = selectors.progress_of(found)
    context = {
        "calibration": found,
        "judge": found.judge,
        "figures": found.figures,
        "progress": unit,
        "form": form,
        "only": only,
        "page": page_of(request, selectors.judged_answers(found, only), 25),
        "floor": KAPPA_FLOOR,
        "may_change": request.actor.may("evals"),
    }
    fragment = request.htmx and request.htmx.target == "calibration"
    return render(request, "evals/_calibration.html" if fragment else "evals/calibration.html", context)


@require_POST
@project_view("evals")
def calibration_cancel(request: PageRequest, pk: int, number: int) -> HttpResponse:
    found = _calibration(request, pk, number)
    services.calibration_cancel(calibration=found, by=request.actor)
    messages.info(request, "The calibration was cancelled. It says nothing about the judge.")
    return redirect(found)


@project_view("read")
def judged_answer(request: PageRequest, pk: int, number: int, index: int) -> HttpResponse:
    """One answer: what people said, what every judge said and in which words."""
    found = _calibration(request, pk, number)
    row = get_object_or_404(
        JudgedAnswer.objects.select_related("case", "gold", "calibration"), calibration=found, index=index
    )
    context = {"calibration": found, "judge": found.judge, "row": row, "shown": replies_to(row)}
    return render(request, "evals/judged_answer.html", context)


@project_view("read")
def gold_list(request: PageRequest) -> HttpResponse:
    """Gold answers, and the form that adds some."""
    form = GoldForm(request.POST or None, request.FILES or None)
    if request.method == "POST":
        request.actor.require("evals")
        if form.is_valid():
            try:
                counts = services.gold_add(
                    project=request.project, items=form.cleaned_data["items"], by=request.actor
                )
            except Refused as refused:
                form.add_error(None, refused.message)
            else:
                messages.success(
                    request, "{added} added, {changed} changed, {same} were there.".format(**counts)
                )
                return redirect("evals:gold")
    context = {
        "form": form,
        "page": page_of(request, selectors.gold_of(request.project), 25),
        "counts": selectors.gold_counts(request.project),
        "may_change": request.actor.may("evals"),
    }
    return render(request, "evals/judge_gold.html", context, status=400 if form.errors else 200)


@require_POST
@project_view("evals")
def gold_retire(request: PageRequest, pk: int) -> HttpResponse:
    gold = get_object_or_404(selectors.gold_of(request.project), pk=pk)
    services.gold_retire(gold=gold, by=request.actor)
    messages.info(request, "Retired. Earlier calibrations keep it.")
    return redirect("evals:gold")


def _edit(request: PageRequest, old: Judge | None) -> HttpResponse:
    initial: dict[str, Any] | None = initial_of(old) if old else None
    form = JudgeForm(request.POST or None, project=request.project, initial=initial)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            made = services.judge_save(
                project=request.project,
                name=old.name if old else data["name"],
                kind=data["kind"],
                params=form.params(),
                note=data["note"],
                by=request.actor,
            )
        except Refused as refused:
            form.add_error(None, refused.message)
        else:
            messages.success(request, f"{made} is saved. Calibrate it before you trust its scores.")
            return redirect(made)
    if old is not None:
        form.fields["name"].disabled = True
    context = {"form": form, "old": old, "no_endpoint": not form.fields["models"].choices}  # type: ignore[attr-defined]
    return render(request, "evals/judge_form.html", context, status=400 if form.errors else 200)


def _judge(request: PageRequest, pk: int) -> Judge:
    return get_object_or_404(selectors.judges_of(request.project), pk=pk)


def _calibration(request: PageRequest, pk: int, number: int) -> Calibration:
    row = selectors.calibrations_of(request.project).filter(judge=pk, number=number).first()
    if row is None:
        raise Http404
    return row
