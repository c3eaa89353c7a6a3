"""What a gate judges: a run, its baseline, and what its rules ask about, read once."""

import hashlib
from collections.abc import Sequence

import numpy as np
from django.db.models import Count, Sum

from apps.evals import selectors
from apps.evals.case_scores import case_counts, case_facts, value_on
from apps.evals.models import Result, Run
from domain.cost import cost_usd
from domain.gate_decision import GateEvidence
from domain.gate_rules import Cost, Latency, NoRegression, Rule, SliceFloor, needs_baseline

_ANSWERED = (Result.State.PASSED, Result.State.FAILED, Result.State.UNSCORED)
_CHUNK = 5_000


def gate_evidence(run: Run, rules: Sequence[Rule], baseline: Run | None, no_baseline: str) -> GateEvidence:
    """Everything that ``rules`` ask about ``run``; memory grows with the cases, not with the answers."""
    tags = [tag for rule in rules if isinstance(rule, NoRegression) for tag in rule.tags]
    axes = {rule.axis for rule in rules if isinstance(rule, SliceFloor)}
    facts = case_facts(run.suite_version, axes | {_name(tag) for tag in tags})
    counts = case_counts(run)
    base = case_counts(baseline) if baseline is not None and needs_baseline(rules) else None
    order = list(facts)
    latencies = _latencies(run) if any(isinstance(rule, Latency) for rule in rules) else []
    usd, tokens = _costs(run) if any(isinstance(rule, Cost) for rule in rules) else (None, None)
    return GateEvidence(
        summary=selectors.run_summary(run),
        keys=[facts[case].key for case in order],
        sources=[facts[case].source for case in order],
        passed=[counts[case].passed if case in counts else 0 for case in order],
        scored=[counts[case].scored if case in counts else 0 for case in order],
        samples=int(run.sampling["samples"]),
        axes={axis: [value_on(facts[case], axis) or "" for case in order] for axis in axes},
        tags={
            tag: [at for at, case in enumerate(order) if value_on(facts[case], _name(tag)) == _value(tag)]
            for tag in tags
        },
        base=None
        if base is None
        else [(base[case].passed, base[case].scored) if case in base else None for case in order],
        base_name=f"{baseline.target_name}, run {baseline.pk}" if baseline is not None else "",
        no_baseline=no_baseline,
        latency_p95_ms=float(np.quantile(latencies, 0.95, method="higher")) if len(latencies) else None,
        latencies=len(latencies),
        mean_usd=usd,
        mean_tokens=tokens,
    )


def results_digest(run: Run) -> str:
    """SHA-256 of every result's case revision, sample, state and score: what a decision rests on."""
    digest = hashlib.sha256()
    rows = Result.objects.filter(run=run).order_by("case_id", "sample")
    for row in rows.values_list("case__digest", "sample", "state", "score").iterator(chunk_size=_CHUNK):
        digest.update(repr(row).encode())
    return digest.hexdigest()


def _latencies(run: Run) -> list[float]:
    """Of answers that were really waited for."""
    rows = Result.objects.filter(run=run, cached=False, state__in=_ANSWERED).exclude(latency_ms=None)
    return [value for value in rows.order_by().values_list("latency_ms", flat=True) if value is not None]


def _costs(run: Run) -> tuple[float | None, float | None]:
    """Mean dollars and tokens (prompt and answer) per answer; None where unknown."""
    found = Result.objects.filter(run=run, state__in=_ANSWERED).aggregate(
        n=Count("pk"), prompt=Sum("prompt_tokens"), completion=Sum("completion_tokens")
    )
    if not found["n"] or not (found["prompt"] or found["completion"]):
        return None, None
    spent = cost_usd(
        found["prompt"],
        found["completion"],
        input_usd_per_mtok=run.input_usd_per_mtok,
        output_usd_per_mtok=run.output_usd_per_mtok,
    )
    tokens = (found["prompt"] + found["completion"]) / found["n"]
    return (None if spent is None else float(spent) / found["n"]), tokens


def _name(tag: str) -> str:
    return tag.partition("=")[0].strip()


def _value(tag: str) -> str:
    return tag.partition("=")[2].strip()
