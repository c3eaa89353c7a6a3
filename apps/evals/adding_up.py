"""The stored results of runs as what can be added up: case by case, streamed."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from django.db.models import Q

from apps.evals.dimensions import parts_of
from apps.evals.models import Result, Run
from domain.tally import WHOLE, CaseOf, Sample

SAMPLE_FIELDS = (
    "state", "score", "completion_tokens", "prompt_tokens", "flags", "cached", "attempts",
    "earlier_prompt_tokens", "earlier_completion_tokens", "ttft_ms", "per_token_ms", "latency_ms",
)  # fmt: skip
CHUNK = 2_000  # results that are read or added up at once; memory is bounded by it


class Stored(NamedTuple):
    """One case of a run with its samples by number."""

    run: int
    case: CaseOf
    samples: dict[int, Sample]


def stored_cases(runs: Iterable[Run]) -> Iterator[Stored]:
    """Every case of the runs, run by run, in one query that is streamed."""
    dimensions = {run.pk: run.dimensions or [] for run in runs}
    rows = (
        Result.objects.filter(run__in=list(dimensions))
        .annotate(answered=~Q(answer=""))
        .order_by("run_id", "case_id", "sample")
        .values_list(
            "run_id", "case_id", "sample", "case__family", "case__source", "case__tags", "answered",
            *SAMPLE_FIELDS, named=True,
        )
    )  # fmt: skip
    for (run, _), group in groupby(rows.iterator(chunk_size=CHUNK), key=itemgetter(0, 1)):
        first, samples = None, {}
        for row in group:
            first = first or row
            samples[row.sample] = sample_of(row, answered=row.answered)
        assert first is not None
        parts = parts_of(first.case__family, first.case__tags, dimensions[run])
        yield Stored(run, CaseOf([WHOLE, *parts], first.case__source), samples)


def sample_of(row: Any, *, answered: bool) -> Sample:
    """What of a ``Result`` (or a named row with its fields) is added up."""
    return Sample(
        state=row.state,
        score=row.score,
        answered=answered or row.completion_tokens > 0,
        flagged=bool(row.flags),
        cached=row.cached,
        attempts=row.attempts,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        earlier_prompt_tokens=row.earlier_prompt_tokens,
        earlier_completion_tokens=row.earlier_completion_tokens,
        ttft_ms=row.ttft_ms,
        per_token_ms=row.per_token_ms,
        latency_ms=row.latency_ms,
    )
