"""inspect-ai against an OpenAI-compatible endpoint: one line of JSON with what it took.

Runs in an environment of its own, where inspect-ai and openai are installed and nothing of ours is:

    python inspect_eval.py <base url> <samples> <connections>

The first, small evaluation warms up; the second is measured, from call to written log.
"""

import json
import os
import resource
import sys
import tempfile
import time
from typing import Any

from inspect_ai import Task, eval  # the peer's own name
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import exact
from inspect_ai.solver import generate


def main(base_url: str, samples: int, connections: int) -> None:
    os.environ["OPENAI_API_KEY"] = "none"
    model = get_model("openai/mock", base_url=base_url, api_key="none", responses_api=False)
    with tempfile.TemporaryDirectory() as logs:
        _run(model, 64, connections, logs)
        cpu, started = _cpu_s(), time.perf_counter()
        log = _run(model, samples, connections, logs)
        wall_s, cpu_s = time.perf_counter() - started, _cpu_s() - cpu
    accuracy = next(iter(log.results.scores[0].metrics.values())).value
    done = log.results.completed_samples
    print(json.dumps({"samples": done, "accuracy": accuracy, "wall_s": wall_s, "cpu_s": cpu_s}))


def _run(model: Any, samples: int, connections: int, logs: str) -> Any:
    dataset = MemoryDataset(
        [
            Sample(
                id=f"q{n}", input=f"Question {n}: reply with the answer {n} and nothing else.", target=str(n)
            )
            for n in range(samples)
        ]
    )
    task = Task(dataset=dataset, solver=generate(max_tokens=16, temperature=0.0), scorer=exact())
    [log] = eval(
        task, model=model, max_connections=connections, max_samples=connections, log_dir=logs, display="none"
    )
    assert log.status == "success", log.error
    return log


def _cpu_s() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
