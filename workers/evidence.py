"""What a verifier needs and cannot see itself: programs run in a sandbox.

A collector gets the part of the task that asks for it, and the answer. Its report says in
``status`` whether the program ran; ``infra_error`` is worth another try, as nothing is known then.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from domain.contracts import EngineTarget, TaskSpec, VerifierSpec
from domain.verifiers import KINDS, graph
from domain.verifiers.geometry import EVIDENCE as GEOMETRY
from domain.verifiers.grader_python import EVIDENCE as GRADER_PYTHON
from domain.verifiers.panel import EVIDENCE as JUDGEMENTS
from domain.verifiers.panel import ask_id
from domain.verifiers.python_tests import EVIDENCE as PYTHON_CALLS
from domain.verifiers.python_tests import answer_source, sandbox_calls
from domain.verifiers.repo_tests import EVIDENCE as REPO_TESTS
from domain.verifiers.scene import EVIDENCE as SCENE
from domain.verifiers.scorer import EVIDENCE as SCORER
from domain.verifiers.strict_json import NotStrictJson
from workers.collect.code import code_collectors
from workers.collect.geometry import collect_geometry
from workers.collect.grader import collect_grade
from workers.collect.judge import judge_collector
from workers.collect.repo_tests import collect_repo_tests
from workers.collect.scene import collect_scene
from workers.collect.scorer import collect_scorer
from workers.sandbox import Backend, Limits
from workers.sandbox.python_calls import collect_python_calls
from workers.sandbox.worker_pool import worker_pool

Collector = Callable[[TaskSpec, str], Awaitable[Mapping[str, Any]]]
Seen = Mapping[str, Mapping[str, Any]]  # evidence by name, as the environment gave it

INFRASTRUCTURE = "infra_error"
_ATTEMPTS = 2


@dataclass(frozen=True)
class FromEpisode:
    """A collector that also looks at what the environment left behind, such as ``workspace``."""

    collect: Callable[[TaskSpec, str, Seen], Awaitable[Mapping[str, Any]]]

    async def __call__(self, task: TaskSpec, answer: str) -> Mapping[str, Any]:
        return await self.collect(task, answer, {})


async def collect_evidence(
    task: TaskSpec, answer: str, collectors: Mapping[str, Collector], *, seen: Seen | None = None
) -> dict[str, Mapping[str, Any]]:
    """Evidence by name for all that the task's verifier needs, and all that was ``seen`` in its
    environment; what nobody can collect is absent, and the verifier then decides nothing."""
    seen = seen or {}
    evidence: dict[str, Mapping[str, Any]] = dict(seen)
    for name in sorted((_needs(task.verifier) & collectors.keys()) - seen.keys()):
        asking = _asking(task, name)
        if name == JUDGEMENTS:
            evidence[name] = await _of_parts(asking, answer, collectors[name])
        else:
            evidence[name] = await _collected(asking[0], answer, collectors[name], seen)
    if (composite := _graph(task)) is not None:
        evidence[graph.NODES] = await _of_nodes(composite, answer, collectors, seen)
    return evidence


async def _collected(task: TaskSpec, answer: str, collector: Collector, seen: Seen) -> Mapping[str, Any]:
    report: Mapping[str, Any] = {}
    for _ in range(_ATTEMPTS):
        if isinstance(collector, FromEpisode):
            report = await collector.collect(task, answer, seen)
        else:
            report = await collector(task, answer)
        if report.get("status") != INFRASTRUCTURE:
            break
    return report


async def _of_parts(asking: list[TaskSpec], answer: str, collector: Collector) -> Mapping[str, Any]:
    """Every judge of a composed verifier is asked its own question; one alone needs no name."""
    reports = [await _collected(part, answer, collector, {}) for part in asking]
    if len(reports) == 1:
        return reports[0]
    worst = next((report for report in reports if report.get("status") == INFRASTRUCTURE), {"status": "ok"})
    names = [ask_id(part.verifier, part.reference) for part in asking]
    return {**worst, "parts": dict(zip(names, reports, strict=True))}


async def _of_nodes(
    task: TaskSpec, answer: str, collectors: Mapping[str, Collector], seen: Seen
) -> dict[str, Mapping[str, Mapping[str, Any]]]:
    """Evidence of each node that asks for some, from its own part of the answer."""
    try:
        answers = graph.node_answers(task, answer)
    except NotStrictJson:
        return {}  # the verifier says so without any evidence
    found: dict[str, Mapping[str, Mapping[str, Any]]] = {}
    for node in graph.graph_of(task).nodes:
        part = answers[node.name]
        if part is not None:
            own = await collect_evidence(graph.node_task(task, node), part, collectors, seen=seen)
            found[node.name] = {name: report for name, report in own.items() if name not in seen}
    return found


@lru_cache(maxsize=1)
def worker_collectors() -> Mapping[str, Collector]:
    """The collectors of this process; their programs run in sandboxes of its pool."""
    return sandbox_collectors(worker_pool())


def collectors_with(judges: Mapping[str, EngineTarget]) -> Mapping[str, Collector]:
    """Those of this process and, where the message names ``judges``, one that asks them."""
    own = worker_collectors()
    return {**own, JUDGEMENTS: judge_collector(judges)} if judges else own


def sandbox_collectors(backend: Backend, *, limits: Limits | None = None) -> dict[str, Collector]:
    """All that this worker can collect, with programs run by ``backend``."""

    async def python_calls(task: TaskSpec, answer: str) -> Mapping[str, Any]:
        asked = sandbox_calls(task)
        return await collect_python_calls(
            backend,
            code=answer_source(answer),
            entry_point=asked["entry_point"],
            calls=asked["calls"],
            limits=limits or Limits(),
        )

    of_repository = partial(collect_repo_tests, backend, limits=limits or Limits())
    return {
        PYTHON_CALLS: python_calls,
        REPO_TESTS: FromEpisode(of_repository),
        **code_collectors(backend, limits or Limits()),
        GEOMETRY: partial(collect_geometry, backend),
        SCENE: partial(collect_scene, backend),
        SCORER: partial(collect_scorer, backend),
        GRADER_PYTHON: partial(collect_grade, backend, limits=limits or Limits()),
    }


def broken(evidence: Mapping[str, Mapping[str, Any]]) -> str:
    """Why the host's side failed, or "" when it did not."""
    for name, report in evidence.items():
        if name == graph.NODES:
            reasons = (f"{node}: {why}" for node, own in report.items() if (why := broken(own)))
            if first := next(reasons, ""):
                return first
        elif report.get("status") == INFRASTRUCTURE:
            return f"{name}: {str(report.get('detail', ''))[:200]}"
    return ""


def _needs(spec: VerifierSpec) -> frozenset[str]:
    """As ``needs``, without what single nodes of a graph ask for."""
    if spec.kind == graph.NAME:
        return frozenset()
    return KINDS[spec.kind].needs.union(*(_needs(part) for part, _ in _parts(spec)))


def _graph(task: TaskSpec) -> TaskSpec | None:
    """``task`` narrowed to the first graph in its verifier."""
    if task.verifier.kind == graph.NAME:
        return task
    for spec, own in _parts(task.verifier):
        nested = {"verifier": spec, "reference": own.get("reference", task.reference)}
        if (found := _graph(task.model_copy(update=nested))) is not None:
            return found
    return None


def _parts(spec: VerifierSpec) -> list[tuple[VerifierSpec, Mapping[str, Any]]]:
    if spec.kind == graph.NAME:
        return []
    params = spec.params
    parts = params.get("parts") or [params[key] for key in ("first", "then", "part") if key in params]
    return [
        (VerifierSpec(kind=part["kind"], params=part.get("params", {})), part)
        for part in parts
        if isinstance(part, Mapping) and "kind" in part
    ]


def _asking(task: TaskSpec, name: str) -> list[TaskSpec]:
    """``task`` narrowed to each part of its verifier that itself needs ``name``, in their order."""
    if name in KINDS[task.verifier.kind].needs:
        return [task]
    found: list[TaskSpec] = []
    for spec, part in _parts(task.verifier):
        if name in _needs(spec):
            nested = {"verifier": spec, "reference": part.get("reference", task.reference)}
            found += _asking(task.model_copy(update=nested), name)
    return found
