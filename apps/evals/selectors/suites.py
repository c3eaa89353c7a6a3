"""Reads of suites: by name, with their newest runs, versions and cases."""

from collections.abc import Iterable

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery

from apps.core.models import Project
from apps.evals.models import Case, Run, Suite, SuiteVersion


def suites_of(project: Project, *, q: str = "") -> QuerySet[Suite]:
    """Suites by name with ``version_count``, ``run_count``, ``case_count`` of the newest version."""
    rows = Suite.objects.filter(project=project).annotate(
        version_count=Count("versions", distinct=True),
        run_count=Count("versions__runs", distinct=True),
        case_count=Subquery(
            SuiteVersion.objects.filter(suite=OuterRef("pk")).order_by("-number").values("count")[:1]
        ),
    )
    rows = rows.order_by("name", "pk")
    return rows.filter(Q(name__icontains=q) | Q(description__icontains=q)) if q else rows


def last_runs_of(suites: Iterable[Suite]) -> dict[int, Run]:
    """The newest finished run of each suite, in two queries."""
    newest = (
        Run.objects.filter(suite_version__suite=OuterRef("pk"), state=Run.State.DONE)
        .order_by("-pk")
        .values("pk")[:1]
    )
    ids = [suite.pk for suite in suites]
    found = Suite.objects.filter(pk__in=ids).annotate(newest=Subquery(newest)).values_list("pk", "newest")
    chosen = {run: suite for suite, run in found if run is not None}
    rows = Run.objects.filter(pk__in=list(chosen)).select_related(
        "suite_version__suite", "version__base", "deployment"
    )
    return {chosen[run.pk]: run for run in rows}


def suite_versions_of(suite: Suite) -> QuerySet[SuiteVersion]:
    return suite.versions.annotate(run_count=Count("runs"))


def case_rows(version: SuiteVersion, *, q: str = "", family: str = "", split: str = "") -> QuerySet[Case]:
    """The version's cases in order. ``q`` looks in the case's id and source."""
    rows = version.cases.order_by("suiteversioncase__index")
    if split:
        rows = rows.filter(split=split)
    if family:
        rows = rows.filter(family=family)
    if q:
        rows = rows.filter(Q(key__icontains=q) | Q(source__icontains=q))
    return rows


def families_of(version: SuiteVersion) -> list[str]:
    return list(version.cases.order_by("family").values_list("family", flat=True).distinct())


def split_counts(version: SuiteVersion) -> dict[str, int]:
    """How many cases each split has; cases of no split are left out."""
    rows = version.cases.exclude(split="").order_by().values_list("split").annotate(n=Count("pk"))
    found = dict(rows)
    return {split: found[split] for split in Case.Split.values if split in found}
