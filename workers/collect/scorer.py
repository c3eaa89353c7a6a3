"""Evidence ``scorer``: what a data set's own scorer says of the answer, in a sandbox with reasoning-gym.

``{"status", "score", "reason", "detail"}``. What the guards refuse is not sent. An entry that comes out
otherwise than when the task was made (another version of the library) is ``infra_error``.
"""

import asyncio
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from domain.contracts import TaskSpec
from domain.verifiers.scorer import request, scored_text
from workers.collect.frames import Forged, Gone, Line
from workers.sandbox.protocol import MIB, Backend, Limits, SandboxSpec, SandboxUnavailable

SPEC = SandboxSpec(
    image="reasoning",
    limits=Limits(wall_s=40.0, cpu_s=30, memory_bytes=1536 * MIB),
    env=(("OMP_NUM_THREADS", "1"), ("OPENBLAS_NUM_THREADS", "1")),
    preimport=("reasoning_gym", "sympy.parsing.sympy_parser"),
)
_DETAIL = 300


async def collect_scorer(backend: Backend, task: TaskSpec, answer: str) -> dict[str, Any]:
    text, refused = scored_text(task, answer)
    if refused:
        return {"status": "ok", "score": 0.0, "reason": refused, "detail": ""}
    talk = _Question({**request(task), "answer": text})
    try:
        result = await backend.run(
            SPEC, [*backend.interpreter, "/workspace/score.py"], files=_agent(), talk=talk
        )
    except SandboxUnavailable as unavailable:
        return {"status": "unavailable", "detail": str(unavailable)[:_DETAIL]}
    if talk.found is None:
        status = "nonzero" if result.status == "ok" else result.status
        last = result.stderr.text.strip().splitlines()[-1:]
        return {"status": status, "detail": (result.detail or "".join(last) or talk.trouble)[:_DETAIL]}
    if talk.found.get("reason") == "other entry":
        detail = "The library makes another task from this seed than when the task was made."
        return {"status": "infra_error", "detail": detail}
    return {
        "status": "ok",
        "detail": "",
        "score": talk.found.get("score"),
        "reason": talk.found.get("reason"),
    }


class _Question:
    """The host's side of ``score.py``."""

    def __init__(self, asked: Mapping[str, Any]) -> None:
        self._asked = asked
        self.found: dict[str, Any] | None = None
        self.trouble = ""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.found = await Line(reader, writer).ask(self._asked)
        except (Forged, Gone) as error:
            self.trouble = str(error)
            await asyncio.sleep(0.2)  # it is ending: let its own end say how


@lru_cache(maxsize=1)
def _agent() -> dict[str, bytes]:
    return {"score.py": (Path(__file__).with_name("inside") / "score.py").read_bytes()}
