"""Which judges a verifier asks, however deeply it is composed."""

from collections.abc import Iterator, Mapping
from typing import Any

from domain.judging import PROMPTS
from domain.verifiers import judge, label, pairwise
from domain.verifiers.panel import JUDGE_KINDS, quorum

_MIN_WORDS = {"judge": judge.MIN_WORDS, "label": label.MIN_WORDS, "pairwise": pairwise.MIN_WORDS}
_SETS = ("models", "prompts", "labels", "passing_labels", "passing_outcomes")


def judge_specs(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """``(kind, params)`` of every judge in ``spec``, a verifier as JSON: itself, its parts, its nodes."""
    level: list[Any] = [spec]
    while level:
        below: list[Any] = []
        for part in level:
            if not isinstance(part, Mapping) or not isinstance(part.get("params", {}), Mapping):
                continue
            params = part.get("params", {})
            if part.get("kind") in JUDGE_KINDS:
                yield part["kind"], params
                continue
            for key in ("parts", "nodes"):
                below += params[key] if isinstance(params.get(key), list) else []
            below += [params[key] for key in ("first", "then", "part") if key in params]
        level = below


def effective(kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """``params`` with every default written out and without the order of what has none: equal for judges
    that judge alike. A case's own question is left out. No model reads [""]: the project's first one."""
    found: dict[str, Any] = {
        "prompts": list(PROMPTS[:2]),
        "repeats": 1,
        "min_verdicts": quorum(params),
        "min_words": _MIN_WORDS[kind],
        **{key: value for key, value in params.items() if key != "question"},
        "models": params.get("models") or [""],
    }
    if kind != "label":
        found.setdefault("aggregate", "unanimous")
    if kind == "judge":
        found["threshold"] = judge.threshold_of(params)
        found.setdefault("max_spread", 0.4 if found["aggregate"] == "unanimous" else 1.0)
        found["max_spread"] = float(found["max_spread"])
    if kind == "pairwise":
        found.setdefault("passing_outcomes", ["win"])
    return {key: sorted(value) if key in _SETS else value for key, value in found.items()}
