"""REST: files into suites, at once or shown first and then imported exactly as shown."""

import json
from datetime import datetime
from typing import Any

from django.http import HttpResponse
from ninja import Field, File, Form, Router, Schema
from ninja.files import UploadedFile

from apps.core.api import ApiRequest, ErrorOut, get_or_404
from apps.core.errors import Refused
from apps.evals import held_out, services
from apps.evals.formats import Options, Upload
from apps.evals.models import SuiteImport
from apps.evals.services.import_rows import report_of
from apps.evals.services.lines import size_checked
from apps.evals.services.reading import Choices

router = Router(tags=["evals"])


class SuiteVersionOut(Schema):
    id: int
    suite_id: int
    number: int
    digest: str
    count: int
    note: str
    created_at: datetime


class LeftOutOut(Schema):
    where: str
    name: str
    reason: str


class ChangesCount(Schema):
    new: int
    changed: int
    unchanged: int
    removed: int
    removed_held_out: int


class ReportOut(Schema):
    """``rows`` are the first cases as they will be; ``left_out`` lists the first 500 parts."""

    format: str
    count: int
    rows: list[dict[str, Any]]
    left_out_count: int
    left_out: list[LeftOutOut]
    notes: list[str]
    columns: dict[str, str]
    replaced: int
    masked: int
    kept_held_out: int
    against: int | None
    changes: ChangesCount
    splits: dict[str, int]


class ImportOut(Schema):
    """``digest`` names what is shown; confirm with it. ``report`` is None while the files are read.

    ``state`` goes from ``reading`` to ``ready``, from ``importing`` to ``done``, or to ``failed`` with the
    reason in ``error``; ``done`` of ``total`` cases says how far it is.
    """

    id: int
    state: str
    suite_name: str
    filename: str
    digest: str
    done: int
    total: int
    error: str
    expires_at: datetime
    suite_version_id: int | None = Field(alias="version_id")
    report: ReportOut | None


class ReadingIn(Schema):
    """How the files are read. ``columns`` maps a column of a table to a role; shares are in [0, 1]."""

    name: str = ""
    format: str = ""
    verifier: str = ""
    family: str = ""
    prompt: str = ""
    columns: dict[str, str] = Field(default_factory=dict)
    keep_personal_data: bool = False
    keep_held_out: bool = True
    validation: float = 0.0
    held_out: float = 0.0

    def choices(self) -> Choices:
        names = ("format", "verifier", "family", "prompt", "columns")
        return Choices(
            options=Options(**{name: getattr(self, name) for name in names}),
            keep_personal_data=self.keep_personal_data,
            keep_held_out=self.keep_held_out,
            validation=self.validation,
            held_out=self.held_out,
        )


class ConfirmIn(Schema):
    digest: str


@router.post("/suites/import", response={201: SuiteVersionOut, 202: ImportOut, 400: ErrorOut})
def suite_import(
    request: ApiRequest,
    response: HttpResponse,
    file: UploadedFile = File(...),  # noqa: B008
    name: str = Form(...),
    keep_personal_data: bool = Form(False),
) -> Any:
    """Import one file at once, of any format. All of it is taken, or nothing: where a part would be left
    out, send it to ``/suites/imports`` and look first.

    ``note`` says how many personal details were replaced in how many cases. A large file is imported by a
    worker: 202, and ``Location`` names the import to ask after.
    """
    request.auth.require("evals")
    size_checked(file.name or "upload", file.size)
    made = services.suite_import_files(
        project=request.auth.project,
        name=name,
        uploads=[Upload(file.name or "upload", file.read())],
        choices=Choices(keep_personal_data=keep_personal_data, keep_held_out=False),
        by=request.auth,
    )
    return import_accepted(response, made) if isinstance(made, SuiteImport) else (201, made)


def import_accepted(response: HttpResponse, row: SuiteImport) -> tuple[int, dict[str, Any]]:
    """202: a worker goes on with it, and ``Location`` says where to ask how far it is."""
    response["Location"] = f"/api/v1/suites/imports/{row.pk}"
    return 202, _out(row)


@router.post("/suites/imports", response={201: ImportOut, 400: ErrorOut})
def import_start(
    request: ApiRequest,
    files: list[UploadedFile] = File(...),  # noqa: B008
    name: str = Form(...),
    options: str = Form("{}"),
) -> Any:
    """Read files for a preview. ``options`` is the JSON of how they are read (see the next call).

    Large files are read by a worker: ask again until ``state`` is no longer ``reading``.
    """
    request.auth.require("evals")
    size_checked(files[0].name or "upload", sum(file.size or 0 for file in files))
    row = services.suite_import_start(
        project=request.auth.project,
        name=name,
        uploads=[Upload(file.name or "upload", file.read()) for file in files],
        choices=_options(options).choices(),
        by=request.auth,
    )
    return 201, _out(row)


@router.get("/suites/imports/{import_id}", response={200: ImportOut, 404: ErrorOut})
def import_detail(request: ApiRequest, import_id: int) -> Any:
    request.auth.require("evals")
    return _out(_import(request, import_id))


@router.post("/suites/imports/{import_id}/read", response={200: ImportOut, 400: ErrorOut, 409: ErrorOut})
def import_change(request: ApiRequest, import_id: int, body: ReadingIn) -> Any:
    """Read the same files again, otherwise."""
    request.auth.require("evals")
    row = services.suite_import_change(
        row=_import(request, import_id), choices=body.choices(), name=body.name, by=request.auth
    )
    return _out(row)


@router.post(
    "/suites/imports/{import_id}/confirm", response={201: SuiteVersionOut, 202: ImportOut, 409: ErrorOut}
)
def import_confirm(request: ApiRequest, response: HttpResponse, import_id: int, body: ConfirmIn) -> Any:
    """Import exactly what was shown under ``digest``. Twice gives the same version.

    More than 2,000 cases are stored by a worker: 202, and ``Location`` names the import to ask after.
    """
    request.auth.require("evals")
    row = _import(request, import_id)
    version = services.suite_import_confirm(row=row, digest=body.digest, by=request.auth)
    if version is None:
        return import_accepted(response, _import(request, import_id))
    return 201, version


@router.post("/suites/imports/{import_id}/stop", response={200: ImportOut, 409: ErrorOut})
def import_stop(request: ApiRequest, import_id: int) -> Any:
    """Import nothing after all: back to the preview."""
    request.auth.require("evals")
    services.suite_import_stop(row=_import(request, import_id), by=request.auth)
    return _out(_import(request, import_id))


@router.delete("/suites/imports/{import_id}", response={204: None, 409: ErrorOut})
def import_discard(request: ApiRequest, import_id: int) -> Any:
    request.auth.require("evals")
    services.suite_import_discard(row=_import(request, import_id), by=request.auth)
    return 204, None


def _options(text: str) -> ReadingIn:
    try:
        value = json.loads(text)
        if not isinstance(value, dict) or not value.keys() <= ReadingIn.model_fields.keys():
            raise ValueError
        return ReadingIn.model_validate(value)
    except (ValueError, RecursionError):
        names = ", ".join(ReadingIn.model_fields)
        raise Refused(f"options is no JSON object with: {names}.", code="options_invalid") from None


def _import(request: ApiRequest, import_id: int) -> SuiteImport:
    """One's own import; others' files only for those who may read held-out cases."""
    rows = SuiteImport.objects.filter(project=request.auth.project).select_related("project", "version")
    rows = rows.defer("upload", "prepared")
    if not held_out.may_see(request.auth):
        rows = rows.filter(created_by=request.auth.name)
    row: SuiteImport = get_or_404(rows, pk=import_id)
    return row


def _out(row: SuiteImport) -> dict[str, Any]:
    report = report_of(row)
    names = ("id", "state", "suite_name", "filename", "digest", "done", "total", "error", "expires_at")
    shown = None
    if report:
        shown = {
            **report,
            "left_out": [
                dict(zip(LeftOutOut.model_fields, each, strict=True)) for each in report["left_out"]
            ],
            "columns": dict(report["columns"]),
        }
    return {**{name: getattr(row, name) for name in names}, "version_id": row.version_id, "report": shown}
