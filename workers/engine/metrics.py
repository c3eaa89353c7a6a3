"""Counters of the pocket server, in Prometheus text under vLLM's names where it has one."""

from collections import Counter
from dataclasses import dataclass, field

_TTFT_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass
class Counters:
    prompt_tokens: int = 0
    generation_tokens: int = 0
    preemptions: int = 0
    drafts: int = 0
    draft_tokens: int = 0
    accepted_tokens: int = 0
    ties: int = 0  # greedy choices that rounding may decide
    busy_s: float = 0.0
    finished: Counter[str] = field(default_factory=Counter)
    first_tokens_s: list[int] = field(default_factory=lambda: [0] * (len(_TTFT_BUCKETS_S) + 1))
    first_tokens_sum_s: float = 0.0

    def count_draft(self, drafted: int, accepted: int) -> None:
        if drafted:
            self.drafts += 1
            self.draft_tokens += drafted
            self.accepted_tokens += accepted

    def count_first_token(self, seconds: float) -> None:
        bucket = next((i for i, edge in enumerate(_TTFT_BUCKETS_S) if seconds <= edge), len(_TTFT_BUCKETS_S))
        self.first_tokens_s[bucket] += 1
        self.first_tokens_sum_s += seconds


def exposition(counters: Counters, *, model: str, running: int, waiting: int, slots: int) -> str:
    """The text that ``GET /metrics`` answers with."""
    label = f'{{model_name="{model}"}}'
    lines: list[str] = []

    def add(kind: str, name: str, value: float, labels: str = label) -> None:
        if not any(line.startswith(f"# TYPE {name} ") for line in lines):
            lines.append(f"# TYPE {name} {kind}")
        lines.append(f"{name}{labels} {value}")

    add("gauge", "vllm:num_requests_running", running)
    add("gauge", "vllm:num_requests_waiting", waiting)
    add("gauge", "vllm:kv_cache_usage_perc", running / slots)
    add("counter", "vllm:prompt_tokens_total", counters.prompt_tokens)
    add("counter", "vllm:generation_tokens_total", counters.generation_tokens)
    add("counter", "vllm:num_preemptions_total", counters.preemptions)
    for reason in ("stop", "length", "abort"):
        labels = f'{{model_name="{model}",finished_reason="{reason}"}}'
        add("counter", "vllm:request_success_total", counters.finished[reason], labels)
    add("counter", "vllm:spec_decode_num_drafts_total", counters.drafts)
    add("counter", "vllm:spec_decode_num_draft_tokens_total", counters.draft_tokens)
    add("counter", "vllm:spec_decode_num_accepted_tokens_total", counters.accepted_tokens)
    add("counter", "pocket:greedy_ties_total", counters.ties)
    add("counter", "pocket:busy_seconds_total", round(counters.busy_s, 6))
    name, total = "vllm:time_to_first_token_seconds", 0
    lines.append(f"# TYPE {name} histogram")
    for edge, count in zip((*_TTFT_BUCKETS_S, "+Inf"), counters.first_tokens_s, strict=True):
        total += count
        lines.append(f'{name}_bucket{{model_name="{model}",le="{edge}"}} {total}')
    lines += [f"{name}_sum{label} {counters.first_tokens_sum_s:.6f}", f"{name}_count{label} {total}"]
    return "\n".join(lines) + "\n"
