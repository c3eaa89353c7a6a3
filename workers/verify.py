"""A batch of stored solutions judged without a model: the gauntlet that admits a verifier.

Each is played through its task's environment as a model's turns would be, so that what the verifier
sees here is what it sees in training.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

from domain.contracts import RunVerifyBatch, TaskSpec, VerifyBatchResult
from domain.verifiers import verify
from packs.registry import Solution
from workers.context import Context
from workers.evidence import Collector, broken, collect_evidence, collectors_with
from workers.scripted import play_solution

_REASONS = 3
_REASON_LENGTH = 300
# Sandboxes wait more than they compute, but a gauntlet must not starve what else a worker does.
_IN_FLIGHT = 2 * (os.cpu_count() or 1)


def run_verify_batch(message: RunVerifyBatch, ctx: Context) -> VerifyBatchResult:
    """Judge every item ``repeats`` times; results as a JSONL artifact in the order of the items."""
    items = [
        (TaskSpec.model_validate(line["task"]), tuple(line.get("turns", ())) or line["answer"])
        for line in ctx.store.iter_jsonl(message.items_digest)
    ]
    results = asyncio.run(_judge_all(items, message, ctx))
    return VerifyBatchResult(
        results_digest=ctx.store.put_jsonl(results),
        counts=dict(Counter(state for result in results for state in result["states"])),
    )


async def _judge_all(
    items: list[tuple[TaskSpec, Solution]], message: RunVerifyBatch, ctx: Context
) -> list[dict[str, Any]]:
    slots = asyncio.Semaphore(_IN_FLIGHT)
    collectors = collectors_with(message.judges)
    done = 0

    async def one(task: TaskSpec, solution: Solution) -> dict[str, Any]:
        nonlocal done
        async with slots:
            judge = _judge_kept if message.keep_evidence else _judge
            result = await judge(task, solution, message.repeats, collectors)
        done += 1
        ctx.progress({"done": done, "total": len(items)})
        return result

    return list(await asyncio.gather(*(one(task, solution) for task, solution in items)))


async def _judge(
    task: TaskSpec, solution: Solution, repeats: int, collectors: Mapping[str, Collector]
) -> dict[str, Any]:
    states: list[str] = []
    reasons: list[str] = []
    for _ in range(repeats):
        # The hidden verifier stays out: nothing may be fitted to it, the gauntlet neither.
        played = await play_solution(task, solution, collectors=collectors, hidden_share=0.0)
        states.append(played.state)
        reasons += [played.error] if played.error else []
        reasons += played.verdict.reasons if played.verdict else ()
    return {
        "states": states,
        "reasons": [reason[:_REASON_LENGTH] for reason in dict.fromkeys(reasons)][:_REASONS],
    }


async def _judge_kept(
    task: TaskSpec, solution: Solution, repeats: int, collectors: Mapping[str, Collector]
) -> dict[str, Any]:
    """The answer as it stands, with the evidence that the verdict rests on."""
    answer = solution if isinstance(solution, str) else solution[-1]
    states: list[str] = []
    scores: list[float | None] = []
    reasons: list[str] = []
    evidence: Mapping[str, Mapping[str, Any]] = {}
    for _ in range(repeats):
        evidence = await collect_evidence(task, answer, collectors)
        if why := broken(evidence):
            states, scores, reasons = [*states, "error"], [*scores, None], [*reasons, why]
            continue
        verdict = verify(task, answer, evidence)
        states.append(verdict.state)
        scores.append(verdict.score)
        reasons += verdict.reasons
    return {
        "states": states,
        "scores": scores,
        "reasons": [reason[:_REASON_LENGTH] for reason in dict.fromkeys(reasons)][:_REASONS],
        "evidence": evidence,
    }
