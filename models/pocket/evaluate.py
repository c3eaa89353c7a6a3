"""Measure the pocket model on prompts that its training skipped: ``python -m models.pocket.evaluate``.

The same verifiers as everywhere judge the answers; functions run in the sandbox. Prints the
table of the model card: pass rate at temperature 0, and at temperature 1 with eight samples a
task, where the interval of a rate is that of its tasks.
"""

import argparse
import asyncio
from pathlib import Path

import torch

from domain.contracts.tasks import TaskSpec
from domain.intervals import clustered_rate, wilson
from domain.verifiers import verify
from models.pocket.lessons import LESSONS
from models.pocket.train import WEIGHTS_DIR
from packs.registry import pack_named
from packs.starter import PACK
from workers.engine.adapters import Served
from workers.engine.batching import Batcher, Request
from workers.engine.model import assemble, load_model
from workers.engine.sampling import Params
from workers.engine.text import Text
from workers.evidence import broken, collect_evidence, worker_collectors

SAMPLES = 8


def main() -> None:
    options = _options()
    torch.set_num_threads(1)
    text = Text(options.model)
    config, base = load_model(options.model)
    served = Served("pocket", assemble(config, base), str(options.model))
    batcher = Batcher(config, decode=text.decode)
    print(f"| family | n | temperature 0 | temperature 1 | pass@{SAMPLES} |\n|---|---|---|---|---|")
    lessons = [(pack_named(lesson.pack), lesson.family) for lesson in LESSONS]
    for pack, family in [*((PACK, family.name) for family in PACK.families), *lessons]:
        tasks = pack.generate(family, seed=options.seed, count=options.tasks, reserved=True)
        greedy = asyncio.run(_verdicts(tasks, _answers(batcher, served, text, tasks, 0.0, 1, options.seed)))
        drawn = asyncio.run(
            _verdicts(tasks, _answers(batcher, served, text, tasks, 1.0, SAMPLES, options.seed))
        )
        print(f"| `{family}` | {len(tasks)} | {_cells(tasks, greedy, drawn)} |", flush=True)


def _answers(
    batcher: Batcher,
    served: Served,
    text: Text,
    tasks: list[TaskSpec],
    temperature: float,
    samples: int,
    seed: int,
) -> list[list[str]]:
    """For each task its sampled answers."""
    groups = []
    for index, task in enumerate(tasks):
        messages = [message.model_dump(exclude_none=True) for message in task.messages]
        prompt = text.chat(messages, task.tools, True)
        draws = [
            Params(
                max_tokens=task.max_tokens, temperature=temperature, seed=seed * 10**6 + index * samples + k
            )
            for k in range(samples)
        ]
        groups.append([Request(prompt=prompt, params=params, served=served) for params in draws])
    for request in (request for group in groups for request in group):
        batcher.add(request)
    while batcher.busy:
        batcher.step()
    return [[text.decode([d.token for d in request.drawn]) for request in group] for group in groups]


async def _verdicts(tasks: list[TaskSpec], answers: list[list[str]]) -> list[list[bool]]:
    """Whether each answer passes. An answer that could not be judged stops the measurement."""
    known: dict[tuple[str, str], bool] = {}
    for task, group in zip(tasks, answers, strict=True):
        for answer in dict.fromkeys(group):
            evidence = await collect_evidence(task, answer, worker_collectors())
            verdict = verify(task, answer, evidence)
            if broken(evidence) or verdict.state == "unscored":
                raise RuntimeError(f"{task.id} could not be judged: {broken(evidence)} {verdict.reasons}")
            known[task.id, answer] = verdict.state == "passed"
    return [[known[task.id, answer] for answer in group] for task, group in zip(tasks, answers, strict=True)]


def _cells(tasks: list[TaskSpec], greedy: list[list[bool]], drawn: list[list[bool]]) -> str:
    sure = wilson(sum(passed for (passed,) in greedy), len(tasks))
    any_of = wilson(sum(any(group) for group in drawn), len(tasks))
    flat = [(passed, task.id) for task, group in zip(tasks, drawn, strict=True) for passed in group]
    mean = sum(passed for passed, _ in flat) / len(flat)
    sampled = clustered_rate([passed for passed, _ in flat], [cluster for _, cluster in flat])
    assert sure is not None
    assert any_of is not None
    assert sampled is not None
    greedy_rate = sum(passed for (passed,) in greedy) / len(tasks)
    any_rate = sum(any(group) for group in drawn) / len(tasks)
    return " | ".join(
        f"{rate:.1%} ({low:.1%}–{high:.1%})"
        for rate, (low, high) in (
            (greedy_rate, (sure.low, sure.high)),
            (mean, (sampled.low, sampled.high)),
            (any_rate, (any_of.low, any_of.high)),
        )
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=WEIGHTS_DIR)
    parser.add_argument("--tasks", type=int, default=200, help="for each family")
    parser.add_argument("--seed", type=int, default=77)
    return parser.parse_args()


if __name__ == "__main__":
    main()
