"""Reads of judges, their calibrations, and what speaks against the scores of a judge."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery

from apps.core.models import Project, WorkUnit
from apps.feedback.judges import judge_digest, judge_setup
from apps.feedback.models import Calibration, GoldAnswer, Judge, JudgedAnswer
from apps.versions.models import Deployment

ONLY = {
    "wrong": "Judged otherwise than by people",
    "undecided": "Left undecided",
    "right": "Judged as by people",
}


class JudgeRow(NamedTuple):
    """A judge with its last finished calibration and the one that goes on, None without."""

    judge: Judge
    last: Calibration | None
    running: Calibration | None


class Asked(NamedTuple):
    """One way in which cases are judged: how many of them, and the parameters."""

    kind: str
    params: Mapping[str, Any]
    cases: int


def judges_of(project: Project) -> QuerySet[Judge]:
    return Judge.objects.filter(project=project).select_related("project")


def newest_judges(project: Project) -> QuerySet[Judge]:
    """The newest version of every name."""
    newest = Judge.objects.filter(project=project, name=OuterRef("name")).order_by("-number")
    return judges_of(project).filter(pk=Subquery(newest.values("pk")[:1]))


def judge_rows(judges: Iterable[Judge]) -> list[JudgeRow]:
    """Two queries, however many judges."""
    found = list(judges)
    last = last_calibrations(judge.pk for judge in found)
    open_ones = Calibration.objects.filter(judge__in=found, state=Calibration.State.RUNNING)
    running = {row.judge_id: row for row in open_ones}
    return [JudgeRow(judge, last.get(judge.pk), running.get(judge.pk)) for judge in found]


def last_calibrations(judge_ids: Iterable[int]) -> dict[int, Calibration]:
    """The last finished calibration of each judge, in one query."""
    done = Calibration.objects.filter(judge=OuterRef("judge"), state=Calibration.State.DONE).order_by("-pk")
    rows = Calibration.objects.filter(judge__in=list(judge_ids), pk=Subquery(done.values("pk")[:1]))
    return {row.judge_id: row for row in rows}


def calibrations_named(judge: Judge) -> QuerySet[Calibration]:
    """Of all versions under the judge's name, newest first."""
    rows = Calibration.objects.filter(judge__project=judge.project_id, judge__name=judge.name)
    return rows.select_related("judge")


def calibrations_of(project: Project) -> QuerySet[Calibration]:
    return Calibration.objects.filter(judge__project=project).select_related("judge__project")


def judged_answers(calibration: Calibration, only: str = "") -> QuerySet[JudgedAnswer]:
    """``only`` is one of ``ONLY``, empty for all."""
    rows = JudgedAnswer.objects.filter(calibration=calibration).select_related("calibration", "case", "gold")
    rows = rows.defer("case__signature")
    if only == "wrong":
        return rows.disagreements()
    if only == "undecided":
        return rows.filter(judged=None)
    if only == "right":
        return rows.exclude(judged=None).exclude(pk__in=rows.disagreements().values("pk"))
    return rows


def progress_of(calibration: Calibration) -> dict[str, int]:
    """How far a running calibration is, as its worker said last."""
    told = WorkUnit.objects.filter(owner=calibration.lineage_key).values_list("progress", flat=True).first()
    return {"done": int((told or {}).get("done", 0)), "total": calibration.size}


def gold_of(project: Project) -> QuerySet[GoldAnswer]:
    return GoldAnswer.objects.filter(project=project, retired_at=None)


def gold_counts(project: Project) -> dict[str, int]:
    return gold_of(project).aggregate(
        passing=Count("pk", filter=Q(passes=True)), failing=Count("pk", filter=Q(passes=False))
    )


def judge_doubts(project: Project, asked: Iterable[Asked], total: int) -> list[str]:
    """What speaks against scores by judges: one sentence for each reason, empty where nothing does.

    A judge counts as known by its exact parameters. One that was measured under other criteria only is
    named as that, because the same models may judge another question worse. Three queries.
    """
    asked = list(asked)
    if not asked:
        return []
    first = Deployment.objects.filter(project=project).externals().order_by("name").first()
    wanted = [(*_names(one, first.name if first else ""), one) for one in asked]
    known = Judge.objects.filter(project=project).filter(
        Q(digest__in=[digest for digest, _, _ in wanted]) | Q(setup__in=[setup for _, setup, _ in wanted])
    )
    judges = list(known.order_by("pk"))
    last = last_calibrations(judge.pk for judge in judges)
    measured = [(judge, last[judge.pk]) for judge in judges if judge.pk in last]
    exact = {judge.digest: (judge, done) for judge, done in measured}
    alike = {judge.setup: (judge, done) for judge, done in measured}
    said: list[str] = []
    never, elsewhere = 0, 0
    witness: tuple[Judge, Calibration] | None = None
    for digest, setup, one in wanted:
        if digest in exact:
            judge, done = exact[digest]
            said += [f"{_cases(one.cases, total)}, judge “{judge}”: {doubt}" for doubt in done.doubts]
        elif setup in alike:
            elsewhere, witness = elsewhere + one.cases, alike[setup]
        else:
            never += one.cases
    if elsewhere and witness is not None:
        said.append(
            f"{_scored(elsewhere, total)} by judges that were compared with people under other "
            f"criteria only (“{witness[0]}”, {witness[1].kappa_words})."
        )
    if never:
        said.append(f"{_scored(never, total)} by judges that were never compared with people.")
    return list(dict.fromkeys(said))


def _names(one: Asked, first: str) -> tuple[str, str]:
    """Digest and setup; where no model is named, the endpoint that would be asked is."""
    params = dict(one.params) if one.params.get("models") or not first else {**one.params, "models": [first]}
    return judge_digest(one.kind, params), judge_setup(one.kind, params)


def _cases(count: int, total: int) -> str:
    if count >= total:
        return "All cases" if total != 1 else "Its one case"
    return f"{count:,} of {total:,} cases"


def _scored(count: int, total: int) -> str:
    return f"{_cases(count, total)} {'is' if count == 1 else 'are'} scored"
