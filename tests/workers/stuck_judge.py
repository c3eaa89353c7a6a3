"""A worker process whose judge never returns; to be killed by a test.

python -m tests.workers.stuck_judge <store url> <file of a RunEvalBatch>
"""

import sys
import time
from pathlib import Path
from typing import Any

from artifacts import ArtifactStore
from domain.contracts import RunEvalBatch
from tests.workers.conftest import FakeContext
from workers import episode
from workers.evals import run_eval_batch


def _never(*arguments: Any) -> Any:
    time.sleep(3600)


if __name__ == "__main__":
    episode.verify = _never
    message = RunEvalBatch.model_validate_json(Path(sys.argv[2]).read_text())
    run_eval_batch(message, FakeContext(ArtifactStore(sys.argv[1])))
