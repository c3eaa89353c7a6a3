"""Counters of one gateway process, as Prometheus text per project."""

from collections import Counter

from apps.gateway.records import Record

_LATENCY_BOUNDS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Operations, not attempts, are counted; labels come from the record, never from request text."""

    def __init__(self) -> None:
        self._operations: Counter[tuple[int, str, str, str, int]] = Counter()
        self._fallbacks: Counter[int] = Counter()
        self._latency: Counter[tuple[int, float]] = Counter()
        self._latency_sum_s: Counter[int] = Counter()
        self._tokens: Counter[tuple[int, str]] = Counter()
        self.refused: Counter[int] = Counter()  # by status, before any project was known to serve

    def note(self, record: Record) -> None:
        project_id = record.project_id
        labels = (project_id, record.version, record.edition_kind, record.served_arm, record.status)
        self._operations[labels] += 1
        if len(record.attempts) > 1:
            self._fallbacks[project_id] += 1
        seconds = (record.latency_ms or 0.0) / 1000
        self._latency_sum_s[project_id] += seconds  # type: ignore[assignment]
        for bound in _LATENCY_BOUNDS_S:
            if seconds <= bound:
                self._latency[project_id, bound] += 1
        self._tokens[project_id, "prompt"] += record.prompt_tokens or 0
        self._tokens[project_id, "completion"] += record.completion_tokens or 0

    def text(self, project_id: int, *, in_flight: int, lost: int, waiting: int) -> str:
        lines = ["# TYPE flywheel_gateway_operations_total counter"]
        total = 0
        for (owner, version, edition, arm, status), count in sorted(self._operations.items()):
            if owner == project_id:
                labels = f'version="{version}",edition="{edition}",arm="{arm}",status="{status}"'
                lines.append(f"flywheel_gateway_operations_total{{{labels}}} {count}")
                total += count
        lines.append("# TYPE flywheel_gateway_latency_seconds histogram")
        for bound in _LATENCY_BOUNDS_S:
            count = self._latency[project_id, bound]
            lines.append(f'flywheel_gateway_latency_seconds_bucket{{le="{bound}"}} {count}')
        lines.append(f'flywheel_gateway_latency_seconds_bucket{{le="+Inf"}} {total}')
        lines.append(f"flywheel_gateway_latency_seconds_sum {float(self._latency_sum_s[project_id]):.6f}")
        lines.append(f"flywheel_gateway_latency_seconds_count {total}")
        for kind in ("prompt", "completion"):
            lines.append(f'flywheel_gateway_tokens_total{{kind="{kind}"}} {self._tokens[project_id, kind]}')
        lines.append(f"flywheel_gateway_fallbacks_total {self._fallbacks[project_id]}")
        for status, count in sorted(self.refused.items()):
            lines.append(f'flywheel_gateway_refused_total{{status="{status}"}} {count}')
        lines.append(f"flywheel_gateway_in_flight {in_flight}")
        lines.append(f"flywheel_gateway_rows_lost_total {lost}")
        lines.append(f"flywheel_gateway_rows_waiting {waiting}")
        return "\n".join(lines) + "\n"
