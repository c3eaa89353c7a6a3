"""Reads of results: the rows of a run, page by page from the last id seen, and the samples of a case."""

import contextlib
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Q, QuerySet
from django.db.models.fields.json import KeyTransform

from apps.core.models import WorkUnit
from apps.evals.dimensions import value_text
from apps.evals.models import Case, Result, Run

PAGE = 25
_TRUTHS = (("true", True), ("false", False))
COUNTED = 1_000  # more than these are not counted one by one


class ResultPage(NamedTuple):
    """``after`` and ``before`` are where the next and the previous page begin, None at an end."""

    rows: list[Result]
    after: int | None
    before: int | None


def result_rows(
    run: Run, *, q: str = "", state: str = "", family: str = "", tag: str = "", value: str = ""
) -> QuerySet[Result]:
    """Results in the order in which they came, samples of a case together. ``q`` looks in the case's id;
    ``value`` is that of ``tag``, as text."""
    rows = Result.objects.filter(run=run).order_by("pk")
    if state:
        rows = rows.filter(state=state)
    if family:
        rows = rows.filter(family=family)
    if q or tag:
        cases = Case.objects.filter(suite=run.suite_version.suite_id)
        if q:
            cases = cases.filter(key__icontains=q)
        if tag:
            cases = _tagged(cases, tag, value)
        rows = rows.filter(case__in=cases.values("pk"))
    return rows


def result_page(rows: QuerySet[Result], *, after: int = 0, before: int = 0, size: int = PAGE) -> ResultPage:
    """The ``size`` rows after an id, or those before one. What comes before or after is asked for, not
    counted, so that a page costs the same wherever it lies."""
    light = rows.select_related("case").defer("answer", "case__task", "case__tags")
    if before:
        found = list(light.filter(pk__lt=before).order_by("-pk")[: size + 1])
        more, shown = len(found) > size, found[:size][::-1]
        return ResultPage(shown, shown[-1].pk if shown else None, shown[0].pk if more else None)
    found = list(light.filter(pk__gt=after)[: size + 1])
    more, shown = len(found) > size, found[:size]
    return ResultPage(shown, shown[-1].pk if more else None, shown[0].pk if after and shown else None)


def siblings_of(result: Result) -> QuerySet[Result]:
    """All samples of the same case in the same run."""
    return Result.objects.filter(run=result.run_id, case=result.case_id).order_by("sample")


def uncaptured_count(run: Run) -> int:
    """Failed results that are not captured yet; ``COUNTED`` + 1 stands for more than can be counted."""
    rows = Result.objects.filter(run=run, state=Result.State.FAILED, captured_at=None).order_by()
    return rows.values("pk")[: COUNTED + 1].count()


def capture_owner(run: Run) -> str:
    """Who units belong to that capture the failures of a run. Not the run: they are no part of it."""
    return f"evals.capture:{run.pk}"


def capture_unit(run: Run) -> WorkUnit | None:
    """The newest unit that captures the failures of a run: open, failed or done."""
    return WorkUnit.objects.filter(owner=capture_owner(run)).order_by("-pk").first()


def _tagged(cases: QuerySet[Case], name: str, text: str) -> QuerySet[Case]:
    """Cases whose tag reads ``text``: as a text, or as the number or truth value that reads so."""
    values: list[Any] = [text, *(read for known, read in _TRUTHS if text == known)]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            number = kind(text)
            if value_text(number) == text:
                values.append(number)
    if connection.features.supports_json_field_contains:  # an index answers this
        found = Q()
        for value in values:
            found |= Q(tags__contains={name: value})
        return cases.filter(found)
    chosen = Q()
    for value in values:
        chosen |= Q(tag_value=value)
    return cases.annotate(tag_value=KeyTransform(name, "tags")).filter(chosen)
