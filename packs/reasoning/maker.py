"""``python -m packs.reasoning.maker``: makes entries of data sets, one for each line it reads.

A process of its own with a fixed hash seed (see ``entries.py``), because several data sets walk over
sets of strings. In: ``{"name", "seed", "config"}``. Out: ``{"question", "answer", "digest"}``, or null for an
entry without a known answer, or ``{"error"}``.
"""

import hashlib
import json
import os
import random
import sys
from typing import Any

from packs.reasoning.solutions import SOLVERS


def make(name: str, seed: int, config: dict[str, Any]) -> dict[str, str] | None:
    """Entry 0 of the data set; its known answer is the library's or our own."""
    import numpy
    import reasoning_gym

    random.seed(seed)  # some programs of codeio draw from the common generators
    numpy.random.seed(seed)
    entry = reasoning_gym.create_dataset(name, size=1, seed=seed, **config)[0]
    known = SOLVERS[name](entry) if name in SOLVERS else entry["answer"]
    if known is None or not str(known).strip():
        return None
    same = hashlib.sha256(f"{entry['question']}\n{entry['answer']}".encode()).hexdigest()[:16]
    return {"question": entry["question"], "answer": str(known), "digest": same}


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # some data sets print while they are made
    for line in sys.stdin:
        asked = json.loads(line)
        made: dict[str, str] | None
        try:
            made = make(asked["name"], asked["seed"], asked["config"])
        except Exception as error:
            made = {"error": f"{type(error).__name__}: {error}"[:300]}
        out.write(json.dumps(made) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
