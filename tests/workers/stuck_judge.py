"""A worker process whose judge never returns from the last of four answers; to be killed by a test.

python -m tests.workers.stuck_judge <store url> <file of a RunEvalBatch>
"""

import itertools
import sys
import time
from pathlib import Path
from typing import Any

from artifacts import ArtifactStore
from domain.contracts import RunEvalBatch, Verdict
from domain.verifiers import verify
from tests.workers.conftest import FakeContext
from workers import episode
from workers.evals import run_eval_batch

_judged = itertools.count(1)


def _judge(*arguments: Any) -> Verdict:
    if next(_judged) == 4:
        time.sleep(3600)
    return verify(*arguments)


if __name__ == "__main__":
    episode.verify = _judge
    message = RunEvalBatch.model_validate_json(Path(sys.argv[2]).read_text())
    run_eval_batch(message, FakeContext(ArtifactStore(sys.argv[1])))
