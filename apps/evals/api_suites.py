"""REST: suites, their versions, cases, changes and export."""

from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from ninja import Field, Router, Schema
from pydantic import ValidationError

from apps.core.api import ApiRequest, ErrorOut, get_or_404
from apps.core.errors import Refused
from apps.evals import held_out, selectors, services
from apps.evals.api_imports import ImportOut, SuiteVersionOut, import_accepted
from apps.evals.models import Case, Suite, SuiteImport, SuiteVersion
from apps.evals.services.lines import first_problem, value_problem
from apps.evals.suite_diff import KINDS, entries_shown, suite_diff
from apps.evals.views.suites import export_response
from domain.contracts import TaskSpec

router = Router(tags=["evals"])


class SuiteOut(Schema):
    id: int
    name: str
    slug: str
    description: str
    created_at: datetime


class SuiteIn(Schema):
    name: str = Field(min_length=1, max_length=100)
    description: str = ""


class CasesIn(Schema):
    """``tasks`` are TaskSpecs: id, family, messages, verifier, reference, source, tags."""

    tasks: list[dict[str, Any]] = Field(min_length=1, max_length=10_000)
    note: str = ""
    keep_personal_data: bool = False


@router.get("/suites", response=list[SuiteOut])
def suites(request: ApiRequest) -> Any:
    request.auth.require("read")
    return Suite.objects.filter(project=request.auth.project)


@router.post("/suites", response={201: SuiteOut, 400: ErrorOut, 409: ErrorOut})
def suite_create(request: ApiRequest, body: SuiteIn) -> Any:
    request.auth.require("evals")
    return 201, services.suite_create(
        project=request.auth.project, name=body.name, description=body.description, by=request.auth
    )


@router.get("/suites/{suite_id}/versions", response=list[SuiteVersionOut])
def suite_versions(request: ApiRequest, suite_id: int) -> Any:
    request.auth.require("read")
    return _suite(request, suite_id).versions.all()


@router.post("/suites/{suite_id}/versions", response={201: SuiteVersionOut, 202: ImportOut, 400: ErrorOut})
def suite_version_create(request: ApiRequest, response: HttpResponse, suite_id: int, body: CasesIn) -> Any:
    """The next version holds exactly these cases. Unchanged content returns the newest version.

    Personal data is masked unless ``keep_personal_data`` says that the cases may hold it. Much of it is
    done by a worker: 202, and ``Location`` names the import to ask after.
    """
    request.auth.require("evals")
    suite = _suite(request, suite_id)
    tasks = [_task(number, value) for number, value in enumerate(body.tasks, start=1)]
    made = services.suite_import_tasks(
        suite=suite,
        tasks=tasks,
        note=body.note,
        keep_personal_data=body.keep_personal_data,
        by=request.auth,
    )
    return import_accepted(response, made) if isinstance(made, SuiteImport) else (201, made)


class CaseOut(Schema):
    """``task`` is None where the case is held out and the key lacks the scope ``held_out``."""

    id: int
    key: str
    family: str
    split: str
    digest: str
    hidden: bool
    task: dict[str, Any] | None


class CasesOut(Schema):
    """``next`` is the ``after`` of the next page, None at the end."""

    count: int
    digest: str
    splits: dict[str, int]
    next: int | None
    cases: list[CaseOut]


@router.get("/suites/{suite_id}/versions/{number}/cases", response=CasesOut)
def suite_cases(
    request: ApiRequest, suite_id: int, number: int, split: str = "", after: int = -1, limit: int = 100
) -> Any:
    """The cases of a version in order; page with ``after`` = the ``next`` that you got."""
    request.auth.require("read")
    version = _version(request, suite_id, number)
    if split and split not in Case.Split.values:
        raise Refused(f"“{split}” is no split: {', '.join(Case.Split.values)}.", code="split_unknown")
    rows = version.suiteversioncase_set.filter(index__gt=after).select_related("case").order_by("index")
    if split:
        rows = rows.filter(case__split=split)
    size = max(1, min(limit, 1000))
    found = list(rows[: size + 1])
    return {
        "count": version.count,
        "digest": version.digest,
        "splits": selectors.split_counts(version),
        "next": found[size - 1].index if len(found) > size else None,
        "cases": [_case(request, row.case) for row in found[:size]],
    }


class FieldOut(Schema):
    name: str
    old: str
    new: str


class ChangeOut(Schema):
    """``fields`` is empty where the case is held out and the key lacks the scope ``held_out``."""

    kind: str
    key: str
    family: str
    split: str
    hidden: bool
    fields: list[FieldOut]


class ChangesOut(Schema):
    old: int
    new: int
    old_digest: str
    new_digest: str
    added: int
    removed: int
    changed: int
    unchanged: int
    moved: bool
    cases: list[ChangeOut]


@router.get("/suites/{suite_id}/changes", response={200: ChangesOut, 400: ErrorOut})
def suite_changes(
    request: ApiRequest, suite_id: int, old: int, new: int, kind: str = "", offset: int = 0, limit: int = 100
) -> Any:
    """What differs between two versions, by number: counts of all, and a page of the cases."""
    request.auth.require("read")
    if kind and kind not in KINDS:
        raise Refused(f"“{kind}” is none of: {', '.join(KINDS)}.", code="kind_unknown")
    diff = suite_diff(_version(request, suite_id, old), _version(request, suite_id, new))
    start = max(0, offset)
    entries = diff.of_kind(kind)[start : start + max(1, min(limit, 500))]
    return {
        "old": old,
        "new": new,
        "old_digest": diff.old.digest,
        "new_digest": diff.new.digest,
        **{name: getattr(diff, name) for name in ("added", "removed", "changed", "unchanged", "moved")},
        "cases": [
            {**shown._asdict(), "fields": [field._asdict() for field in shown.fields]}
            for shown in entries_shown(entries, request.auth)
        ],
    }


@router.get("/suites/{suite_id}/versions/{number}/export")
def suite_export(request: ApiRequest, suite_id: int, number: int) -> HttpResponseBase:
    """The version's cases as JSONL; importing the file gives the same version again.

    Without the scope ``held_out`` the held-out cases stay out; the header ``X-Held-Out-Cases-Left-Out``
    says how many.
    """
    request.auth.require("read")
    return export_response(request, _version(request, suite_id, number), request.auth)


def _suite(request: ApiRequest, suite_id: int) -> Suite:
    found: Suite = get_or_404(Suite.objects.filter(project=request.auth.project), pk=suite_id)
    return found


def _version(request: ApiRequest, suite_id: int, number: int) -> SuiteVersion:
    rows = SuiteVersion.objects.filter(suite__project=request.auth.project)
    found: SuiteVersion = get_or_404(rows, suite__pk=suite_id, number=number)
    return found


def _case(request: ApiRequest, case: Case) -> dict[str, Any]:
    hidden = held_out.is_hidden(case, request.auth)
    names = ("key", "family", "split", "digest")
    return {
        "id": case.pk,
        **{name: getattr(case, name) for name in names},
        "hidden": hidden,
        "task": None if hidden else case.task,
    }


def _task(number: int, value: dict[str, Any]) -> TaskSpec:
    problem = value_problem(value)
    if not problem:
        try:
            return TaskSpec.model_validate(value)
        except ValidationError as error:
            problem = first_problem(error)
    raise Refused(f"Case {number}, {problem}.", code="case_invalid", case=number)
