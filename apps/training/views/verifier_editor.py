"""Writing a verifier: a form made from the kind's parameters, or JSON; and trying it on answers.

One form does it all. Buttons that change the form come back with the form; only "Save" makes a version.
"""

import json
import re
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from apps.core.errors import Refused
from apps.core.http import PageRequest, project_view
from apps.feedback import services as feedback
from apps.feedback.assets import correction_of
from apps.feedback.models import FailureCase, Family, Verifier, VerifierTrial
from apps.feedback.trials import answers_of
from apps.feedback.verifiers import left_to_tasks, params_check, versions_of
from apps.training import selectors
from apps.training.verifier_fields import Unreadable, read_json
from apps.training.verifier_form import (
    Part,
    change,
    errors_of,
    first_spec,
    put_error,
    shows_all,
    spec_of,
    tree_from,
    tree_of,
)
from domain.verifiers import KINDS

_CUT = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)
_FIRST_KIND = "contains"


@require_http_methods(["GET", "POST"])
@project_view("training")
def verifier_new(request: PageRequest) -> HttpResponse:
    kind = request.GET.get("kind", "")
    return _editor(request, None, first_spec(kind if kind in KINDS else _FIRST_KIND))


@require_http_methods(["GET", "POST"])
@project_view("training")
def verifier_edit(request: PageRequest, pk: int) -> HttpResponse:
    verifier = get_object_or_404(selectors.verifiers_of(request.project), pk=pk)
    return _editor(request, verifier, {"kind": verifier.kind, "params": verifier.params})


@require_GET
@project_view("read")
def verifier_trial(request: PageRequest, pk: int) -> HttpResponse:
    trial = get_object_or_404(VerifierTrial.objects.filter(project=request.project), pk=pk)
    template = "training/_trial.html" if request.htmx else "training/trial.html"
    return render(request, template, _trial_context(trial))


def _editor(request: PageRequest, verifier: Verifier | None, spec: dict[str, Any]) -> HttpResponse:
    do = request.POST.get("do", "check") if request.method == "POST" else ""
    as_json, wrong, readable = request.POST.get("mode") == "json", "", True
    if do and as_json:
        spec, wrong = _written(request.POST.get("spec", ""))
    tree = tree_from(request.POST) if do and not as_json else tree_of(spec)
    if do and not as_json:
        spec, readable = spec_of(tree)
    good, context = readable and not wrong, {"tried": False, "try_error": wrong}
    if do.startswith(("add:", "remove:")):
        change(tree, do)
        good = True
    elif do == "json":
        as_json, good = readable, True  # what cannot be read stays in its field
    elif do == "form" and good:
        as_json = not shows_all(spec)
        wrong = _no_form(spec) if as_json else ""
    elif do == "try":
        context |= _try(request, spec, tree) if good else {"try_error": wrong or "Mend the form first."}
    elif do == "save" and good:
        saved = _save(request, verifier, spec, tree)
        if saved is not None:
            return saved
        good = False
    elif do == "check" and good:
        good = _checked(spec, tree)
    text = request.POST.get("spec", "") if do and as_json and do != "json" else _pretty(spec)
    context |= _context(request, verifier, tree) | {"as_json": as_json, "spec_text": text}
    context["problems"] = [wrong] if wrong else errors_of(tree) if as_json else tree.errors
    status = 200 if good or request.htmx else 400
    return render(request, "training/verifier_edit.html", context, status=status)


def _written(text: str) -> tuple[dict[str, Any], str]:
    """The specification in JSON, and why it is none."""
    try:
        spec = read_json(text)
    except Unreadable as error:
        return first_spec(_FIRST_KIND), str(error)
    if not isinstance(spec, dict) or set(spec) != {"kind", "params"} or not isinstance(spec["params"], dict):
        return first_spec(_FIRST_KIND), 'Write an object of two: {"kind": "exact", "params": {}}.'
    if not isinstance(spec["kind"], str) or spec["kind"] not in KINDS:
        known = ", ".join(sorted(KINDS))
        return first_spec(_FIRST_KIND), f"There is no such kind. Choose one of: {known}."
    return spec, ""


def _no_form(spec: dict[str, Any]) -> str:
    """Why the form cannot show ``spec``."""
    try:
        params_check(spec["kind"], spec["params"])
    except Refused as refused:
        return refused.message
    return "The form has no place for all of this; go on here."


def _pretty(spec: dict[str, Any]) -> str:
    return json.dumps(spec, indent=1, ensure_ascii=False)


def _checked(spec: dict[str, Any], tree: Part) -> bool:
    try:
        params_check(spec["kind"], spec["params"])
    except Refused as refused:
        put_error(tree, str(refused.detail.get("field", "")), refused.message)
        return False
    return True


def _save(
    request: PageRequest, verifier: Verifier | None, spec: dict[str, Any], tree: Part
) -> HttpResponse | None:
    """The page of the version that was made; None where it was refused, with its sentence in the form."""
    after = request.POST.get("after", "0")
    try:
        made = feedback.verifier_create(
            project=request.project,
            name=verifier.name if verifier else request.POST.get("name", ""),
            kind=spec["kind"],
            params=spec["params"],
            note=request.POST.get("note", ""),
            after=int(after) if after.isdigit() and len(after) < 9 else 0,
            by=request.actor,
        )
    except Refused as refused:
        put_error(tree, str(refused.detail.get("field", "")), refused.message)
        return None
    for family in _families(verifier).filter(pk__in=_numbers(request.POST.getlist("families"))):
        feedback.family_use_verifier(family=family, verifier=made, by=request.actor)
    if verifier and made.pk == verifier.pk:
        messages.info(request, "Nothing was changed, so there is no new version.")
    elif verifier and made.number < int(after or 0):
        messages.info(request, f"This is what version {made.number} says already.")
    else:
        messages.success(request, f"{made} is saved. Run its gauntlet before anything trains on it.")
    return redirect(made)


def _try(request: PageRequest, spec: dict[str, Any], tree: Part) -> dict[str, Any]:
    answers = [text.strip("\r\n") for text in _CUT.split(request.POST.get("answers", ""))]
    answers = [text for text in answers if text] or ([] if request.POST.get("case") else [""])
    case = None
    if (number := request.POST.get("case", "")) and number.isdigit() and len(number) < 18:
        cases = FailureCase.objects.filter(project=request.project).select_related("capture")
        case = get_object_or_404(cases, pk=int(number))
    try:
        done = feedback.verifier_try(
            project=request.project,
            kind=spec["kind"],
            params=spec["params"],
            answers=answers,
            reference=request.POST.get("reference", "").strip() or None,
            question=request.POST.get("question", ""),
            case=case,
            by=request.actor,
        )
    except Refused as refused:
        field = str(refused.detail.get("field", ""))
        if field not in ("answers", "reference", "case"):
            put_error(tree, field, refused.message)
        return {"try_error": refused.message}
    if done.trial is not None:
        return {"tried": True, **_trial_context(done.trial)}
    shown = answers or _case_answers(case)
    return {"tried": True, "rows": list(zip(shown, done.results or [], strict=False))}


def _case_answers(case: FailureCase | None) -> list[str]:
    """In the order in which a trial takes them."""
    if case is None:
        return []
    answer = str((case.capture.content or {}).get("answer", ""))
    return [text for text in (answer, correction_of(case)) if text.strip()]


def _trial_context(trial: VerifierTrial) -> dict[str, Any]:
    answers = answers_of(trial) if trial.results else []
    return {
        "trial": trial,
        "rows": list(zip(answers, trial.results, strict=False)),
        "topic": f"feedback.trial:{trial.pk}",
    }


def _context(request: PageRequest, verifier: Verifier | None, tree: Part) -> dict[str, Any]:
    newest = versions_of(verifier).first() if verifier else None
    return {
        "verifier": verifier,
        "newest": newest,
        "after": newest.number if newest else 0,
        "tree": tree,
        "groups": kind_groups(),
        "missing": left_to_tasks(tree.kind, spec_of(tree)[0]["params"]) if tree.kind in KINDS else [],
        "families": list(_families(verifier)),
        "cases": selectors.labelled_cases(request.project, verifier),
        "typed": request.POST,
    }


def kind_groups() -> list[tuple[str, list[Any]]]:
    """Kinds for a menu, by what they need."""
    composed = [kind for kind in KINDS.values() if {"parts", "first", "part", "nodes"} & _names(kind)]
    pure = [kind for kind in KINDS.values() if not kind.needs and kind not in composed]
    rest = [kind for kind in KINDS.values() if kind.needs]
    return [
        ("Made of other verifiers", composed),
        ("Need only the answer", pure),
        ("Need a sandbox, judges or an environment", rest),
    ]


def _names(kind: Any) -> set[str]:
    return set(kind.params_schema["properties"])


def _families(verifier: Verifier | None) -> Any:
    if verifier is None:
        return Family.objects.none()
    return Family.objects.filter(verifier__in=versions_of(verifier)).order_by("name")


def _numbers(values: list[str]) -> list[int]:
    return [int(value) for value in values if value.isdigit() and len(value) < 18]
