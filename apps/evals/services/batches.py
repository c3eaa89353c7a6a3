"""What workers report about a run: results stored once, the run closed once, on evidence.

Both handlers are called inside the transaction that closes the unit, so a message that comes twice
finds its unit closed; and results are upserts, so the same batch twice leaves one row per sample. What
results add up to changes in the same transaction, under the lock of the run.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db.models import Count
from django.utils import timezone

from apps.core.events import publish
from apps.core.models import WorkUnit
from apps.evals import selectors
from apps.evals.adding_up import SAMPLE_FIELDS, sample_of
from apps.evals.dimensions import parts_of
from apps.evals.models import Case, Result, Run, RunSlice, SuiteVersion
from apps.evals.services.clock import clock_stop
from apps.evals.services.figures import figures_apply, run_refigure
from apps.versions.services import evidence_record
from artifacts import get_store
from domain.contracts import EpisodeResult, EvalBatchResult, RunEvalBatch
from domain.lifecycle import next_state
from domain.storable import storable
from domain.summary import coverage_text, score_text
from domain.tally import WHOLE, CaseOf, Rollup

_SETTLED = (Result.State.PASSED, Result.State.FAILED, Result.State.UNSCORED)
_MOST = 2**31 - 1
_TAKES_REPORTS = (Run.State.RUNNING, Run.State.PAUSED)  # what was sent before a pause is still kept
_STORED = (
    "state", "score", "answer", "verdict", "flags", "error", "prompt_tokens", "completion_tokens",
    "earlier_prompt_tokens", "earlier_completion_tokens", "ttft_ms", "per_token_ms", "latency_ms",
    "attempts", "cached", "served_model", "attempt", "turns_digest", "turns_line",
)  # fmt: skip


def eval_batch_finished(unit: WorkUnit, result: dict[str, Any]) -> None:
    """Store a batch's results and close the run when it was the last."""
    run = _locked_run(unit)
    if run.state not in _TAKES_REPORTS:
        return
    body = EvalBatchResult.model_validate(result)
    rows = [EpisodeResult.model_validate(row) for row in get_store().iter_jsonl(body.results_digest)]
    _store_results(run, RunEvalBatch.model_validate(unit.payload), rows, "The worker sent no result for it.")
    publish(project=run.project, topic=run.lineage_key, kind="EvalBatchFinished", **body.counts)
    _close_if_complete(run)


def eval_batch_failed(unit: WorkUnit, error: str) -> None:
    """Record the batch's cases as errors: an infrastructure failure is never a failed answer."""
    run = _locked_run(unit)
    if run.state not in _TAKES_REPORTS:
        return
    _store_results(run, RunEvalBatch.model_validate(unit.payload), [], error)
    publish(project=run.project, topic=run.lineage_key, kind="EvalBatchFailed", unit=unit.pk)
    _close_if_complete(run)


def eval_batch_is_held(unit: WorkUnit) -> bool:
    """Whether the run is paused. Locks it, so that a pause that is under way is waited for."""
    return _locked_run(unit).state == Run.State.PAUSED


def _locked_run(unit: WorkUnit) -> Run:
    runs = Run.objects.select_for_update(of=("self",)).select_related("project", "suite_version")
    return runs.get(pk=unit.owner.rpartition(":")[2])


class _Case(NamedTuple):
    pk: int
    key: str
    family: str
    source: str
    tags: Mapping[str, Any]


def _store_results(run: Run, message: RunEvalBatch, rows: Sequence[EpisodeResult], missing: str) -> None:
    """One row for each sample that the batch was asked for; what no row speaks of is an error with the
    reason ``missing``. A retry replaces errors only."""
    if not RunSlice.objects.filter(run=run, dimension="", value="").exists():
        run_refigure(run=run)  # from before there were sums
        run.refresh_from_db(fields=["dimensions"])
    cases = _cases_at(run.suite_version, message.indexes)
    told = {(row.task_id, row.sample): row for row in rows}
    held = _held(run, cases)
    rollup = Rollup()
    fresh: list[Result] = []
    for case in cases:
        old = held.get(case.pk, {})
        new = {
            sample: _result(run, case, told.get((case.key, sample)) or _lost(case.key, sample, missing), old)
            for sample in range(message.sampling.samples)
            if sample not in old or old[sample].state not in _SETTLED
        }
        fresh += new.values()
        before = {sample: sample_of(row, answered=row.answer != "") for sample, row in old.items()}
        after = {sample: sample_of(row, answered=row.answer != "") for sample, row in new.items()}
        parts = [WHOLE, *parts_of(case.family, case.tags, run.dimensions or [])]
        rollup.change(CaseOf(parts, case.source), before, {**before, **after})
    Result.objects.bulk_create(
        fresh,
        update_conflicts=True,
        unique_fields=["run", "case", "sample"],
        update_fields=_STORED,
        batch_size=500,
    )
    figures_apply(run, rollup)
    run.waiting = max(0, run.waiting - len(message.indexes) * message.sampling.samples)
    run.save(update_fields=["waiting"])


def _cases_at(version: SuiteVersion, indexes: Iterable[int]) -> list[_Case]:
    rows = version.suiteversioncase_set.filter(index__in=list(indexes)).order_by("index")
    names = ("case_id", "case__key", "case__family", "case__source", "case__tags")
    return [_Case(*row) for row in rows.values_list(*names)]


def _held(run: Run, cases: Sequence[_Case]) -> dict[int, dict[int, Result]]:
    """What these cases have already, by case and sample."""
    found: dict[int, dict[int, Result]] = {}
    rows = Result.objects.filter(run=run, case__in=[case.pk for case in cases])
    for row in rows.only("case", "sample", "answer", *SAMPLE_FIELDS):
        found.setdefault(row.case_id, {})[row.sample] = row
    return found


def _lost(key: str, sample: int, reason: str) -> EpisodeResult:
    return EpisodeResult(task_id=key, sample=sample, state="error", error=reason)


def _result(run: Run, case: _Case, row: EpisodeResult, held: Mapping[int, Result]) -> Result:
    scored = row.state in ("passed", "failed")
    state, error = row.state, row.error
    if scored and not _is_score(row.score):  # not a verdict, so neither side may count it
        said = "no score" if row.score is None else f"{row.score} as score, which is not between 0 and 1"
        scored, state, error = False, "unscored", f"The verdict carried {said}."
    old = held.get(row.sample)
    return Result(
        run=run,
        case_id=case.pk,
        family=case.family,
        sample=row.sample,
        state=state,
        score=row.score if scored else None,
        answer=storable(row.answer),
        verdict=storable(row.verdict.model_dump(mode="json")) if row.verdict else None,
        flags=[storable(flag.model_dump(mode="json")) for flag in row.flags],
        error=storable(error)[:300],
        prompt_tokens=_counted(row.prompt_tokens),
        completion_tokens=_counted(row.completion_tokens),
        earlier_prompt_tokens=_earlier(old, "prompt_tokens"),
        earlier_completion_tokens=_earlier(old, "completion_tokens"),
        ttft_ms=_measured(row.ttft_ms),
        per_token_ms=_measured(row.per_token_ms),
        latency_ms=_measured(row.latency_ms),
        attempts=_counted(row.attempts),
        cached=row.cached,
        served_model=storable(row.served_model)[:200],
        attempt=run.retries + 1,
        turns_digest=row.turns_digest,
        turns_line=row.turns_line,
    )


def _earlier(old: Result | None, name: str) -> int:
    """Tokens of the error that is replaced, and of those that it had replaced."""
    if old is None:
        return 0
    return int(getattr(old, f"earlier_{name}") + (0 if old.cached else getattr(old, name)))


def _is_score(score: float | None) -> bool:
    return score is not None and 0.0 <= score <= 1.0  # NaN is neither


def _counted(number: int) -> int:
    """What an endpoint says it used, where that can be: not less than nothing."""
    return max(0, min(number, _MOST))


def _measured(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) and number >= 0 else None


def _close_if_complete(run: Run) -> None:
    """A run in which nothing was answered failed: it says nothing about the model."""
    counts = selectors.run_counts(run)
    if counts["waiting"] > 0 or WorkUnit.objects.filter(owner=run.lineage_key).open().exists():
        return
    lost = counts["error"] == run.total
    run.state = next_state("run", run.state, Run.State.FAILED if lost else Run.State.DONE)
    run.error = f"Every sample ended in an error: {_commonest_error(run)}" if lost else ""
    run.finished_at, run.waiting = timezone.now(), 0
    clock_stop(run)
    run.save(update_fields=["state", "error", "finished_at", "waiting", "ran_s", "running_since"])
    publish(
        project=run.project,
        topic=run.lineage_key,
        kind="RunFailed" if lost else "RunFinished",
        say=f"Run {run.pk} {'failed' if lost else 'finished'}",
    )
    if run.version is not None:
        _record_evidence(run)


def _commonest_error(run: Run) -> str:
    """Of cases that everybody may read: an error may quote what was asked."""
    shown = run.results.filter(state=Result.State.ERROR).exclude(case__split=Case.Split.HELD_OUT)
    errors = shown.order_by().values("error").annotate(n=Count("pk")).order_by("-n", "error")
    first = errors.first()
    return str(first["error"]) if first else "see the results."


def _record_evidence(run: Run) -> None:
    assert run.version is not None
    summary = selectors.run_summary(run)
    interval = summary.interval
    known = "measured" if summary.decidable else "undecided"
    evidence_record(
        version=run.version,
        edition_kind=run.edition_kind,
        kind="suite",
        source=run.lineage_key,
        title=str(run.suite_version),
        sentence=f"{score_text(summary.pass_rate, interval, summary.scored)}; {coverage_text(summary)}.",
        verdict="no_data" if summary.pass_rate is None else known,
        data={
            "pass_rate": summary.pass_rate,
            "low": interval.low if interval else None,
            "high": interval.high if interval else None,
            "n": summary.scored,
            "clusters": interval.clusters if interval else None,
            "coverage": summary.coverage,
            "suite_digest": run.suite_version.digest,
        },
        url=run.get_absolute_url(),
    )
