"""Personal data in cases: replaced in what is asked, expected and judged by, alike wherever it stands.

What the project holds already stays as it is, so that an export imports identically. What a verifier
runs (patterns, schemas, programs) is left word for word; the texts that it compares with are not.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from apps.core.models import Project
from apps.evals.formats.splits import TAG
from apps.evals.models import Case
from apps.evals.services.lines import Line
from apps.evals.services.suites import task_digest, verifier_problem
from apps.feedback.anonymizer import CannotAnonymize, anonymize_content
from apps.feedback.captures import cluster_key
from apps.feedback.contents import Invalid, identifier_checked
from apps.feedback.rules import Rules, rules_in_force
from domain.contracts import TaskSpec
from domain.surrogates import surrogate_map, surrogates

_COMPARED = ("texts", "criteria", "question", "item", "reference")
_EVERY = 50


class CannotMask(ValueError):
    """A case that must not be stored as it is. ``number`` is its line; the text is for users."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(reason)
        self.number = number


class Masked(NamedTuple):
    task: TaskSpec
    replaced: int


def masked_lines(
    project: Project, lines: Sequence[Line], progress: Callable[[int], None] | None = None
) -> list[Masked | CannotMask]:
    """Every line without personal data, or why that cannot be, in order."""
    rules = rules_in_force(project)
    digests = [task_digest(line.task) for line in lines]
    known = _known(project, digests)
    found: list[Masked | CannotMask] = []
    for at, (line, digest) in enumerate(zip(lines, digests, strict=True)):
        if progress is not None and at % _EVERY == 0:
            progress(at)
        if digest in known:
            found.append(Masked(line.task, 0))
            continue
        try:
            found.append(masked(line.task, rules))
        except (Invalid, CannotAnonymize) as problem:
            prefix = "it cannot be anonymized: " if isinstance(problem, CannotAnonymize) else ""
            found.append(CannotMask(line.number, f"{prefix}{problem}"))
    return found


def masked(task: TaskSpec, rules: Rules) -> Masked:
    """The case with one consistent set of same-type surrogates; the id must be nobody's. Raises
    ``Invalid`` and ``CannotAnonymize``."""
    identifier_checked(task.id, "id")
    body = task.model_dump(mode="json", exclude_defaults=True)
    texts: dict[str, Any] = {"messages": body["messages"], "reference": body.get("reference")}
    texts["tags"] = {key: kept for key, kept in body.get("tags", {}).items() if key != TAG}
    texts["judged"] = _compared(body["verifier"])
    hidden = body.get("hidden") or {}
    texts["hidden"] = [hidden.get("reference"), _compared(hidden.get("verifier", {}))]
    found = anonymize_content(texts, rules)
    if not found.spans:
        source = cluster_key(task.source)
        return Masked(task if source == task.source else task.model_copy(update={"source": source}), 0)
    clean = surrogates(found.content, surrogate_map(found.content, seed=task.id))
    changed = {
        **body,
        "messages": clean["messages"],
        "reference": clean["reference"],
        "source": cluster_key(task.source),
        "verifier": _put_back(body["verifier"], clean["judged"]),
    }
    if "tags" in body:
        changed["tags"] = {**body["tags"], **clean["tags"]}
    if hidden:
        reference, judged = clean["hidden"]
        changed["hidden"] = {**hidden, "verifier": _put_back(hidden["verifier"], judged)}
        if "reference" in hidden:
            changed["hidden"]["reference"] = reference
    made = TaskSpec.model_validate(changed)
    if problem := verifier_problem(made):
        raise Invalid(f"without personal data it cannot be judged: {problem[1]}")
    return Masked(made, len(found.spans))


def _known(project: Project, digests: Sequence[str]) -> set[str]:
    known: set[str] = set()
    for start in range(0, len(digests), 500):
        rows = Case.objects.filter(suite__project=project, digest__in=digests[start : start + 500])
        known |= set(rows.values_list("digest", flat=True))
    return known


def _compared(spec: Any) -> list[Any]:
    """Texts that a verifier compares with, in a fixed order, its parts' included."""
    found: list[Any] = []
    if not isinstance(spec, dict):
        return found
    for holder in (spec.get("params"), spec):
        if isinstance(holder, dict):
            found += [holder[name] for name in _COMPARED if name in holder]
    for part in _parts(spec):
        found += _compared(part)
    return found


def _put_back(spec: dict[str, Any], values: Sequence[Any]) -> dict[str, Any]:
    made, rest = _filled(spec, list(values))
    assert not rest
    return made


def _filled(spec: dict[str, Any], values: list[Any]) -> tuple[dict[str, Any], list[Any]]:
    made = {**spec, **({"params": dict(spec["params"])} if isinstance(spec.get("params"), dict) else {})}
    for holder in (made.get("params"), made):
        if isinstance(holder, dict):
            for name in _COMPARED:
                if name in holder:
                    holder[name] = values.pop(0)
    params = made.get("params")
    if isinstance(params, dict):
        for name in ("parts", "nodes"):
            if isinstance(params.get(name), list):
                parts = []
                for part in params[name]:
                    if isinstance(part, dict):
                        part, values = _filled(part, values)
                    parts.append(part)
                params[name] = parts
        for name in ("first", "then", "part"):
            if isinstance(params.get(name), dict):
                params[name], values = _filled(params[name], values)
    return made, values


def _parts(spec: dict[str, Any]) -> list[dict[str, Any]]:
    params = spec.get("params")
    if not isinstance(params, dict):
        return []
    listed = [
        part for name in ("parts", "nodes") for part in _list(params.get(name)) if isinstance(part, dict)
    ]
    return listed + [params[name] for name in ("first", "then", "part") if isinstance(params.get(name), dict)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
