"""Evidence ``grader_python``: what a person's grading function says of the answer, in a sandbox.

``{"status", "result", "error", "detail"}``. The function and its item are the project's own; the answer
comes to it as data.
"""

import asyncio
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from domain import typed_json
from domain.contracts import TaskSpec
from domain.verifiers.grader_python import MAX_ANSWER, grader_call
from workers.collect.frames import Forged, Gone, Line
from workers.sandbox.protocol import Backend, Limits, SandboxSpec, SandboxUnavailable

_DETAIL = 300


async def collect_grade(backend: Backend, task: TaskSpec, answer: str, *, limits: Limits) -> dict[str, Any]:
    if len(answer) > MAX_ANSWER:
        return {"status": "ok"}  # the verifier says so without a grade
    talk = _Question(grader_call(task, answer))
    try:
        result = await backend.run(
            SandboxSpec(limits=limits),
            [*backend.interpreter, "/workspace/grade.py"],
            files=_agent(),
            talk=talk,
        )
    except SandboxUnavailable as unavailable:
        return {"status": "unavailable", "detail": str(unavailable)[:_DETAIL]}
    if talk.found is None:
        status = "nonzero" if result.status == "ok" else result.status
        last = result.stderr.text.strip().splitlines()[-1:]
        return {"status": status, "detail": (result.detail or "".join(last) or talk.trouble)[:_DETAIL]}
    found = talk.found
    if "error" in found:
        return {"status": "ok", "error": str(found["error"])[:_DETAIL] or "it failed without a word"}
    return {"status": "ok", "result": found.get("result")}


class _Question:
    """The host's side of ``grade.py``."""

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
    return {
        "grade.py": (Path(__file__).with_name("inside") / "grade.py").read_bytes(),
        "typed_json.py": Path(str(typed_json.__file__)).read_bytes(),
    }
