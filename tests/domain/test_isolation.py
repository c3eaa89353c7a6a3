from typing import Any

import pytest

from domain.contracts import ChatMessage, HiddenCheck, TaskSpec, VerifierSpec
from domain.isolation import needs_sandbox

PROGRAM = {"kind": "python_tests", "params": {"entry_point": "f"}}


def _task(kind: str, **more: Any) -> TaskSpec:
    params = more.pop("params", {})
    return TaskSpec(
        id="t",
        family="f",
        messages=(ChatMessage(role="user", content="?"),),
        verifier=VerifierSpec(kind=kind, params=params),
        **more,
    )


@pytest.mark.parametrize(
    ("task", "needed"),
    [
        (_task("exact"), False),
        (_task("python_tests"), True),
        (_task("all", params={"parts": [{"kind": "exact"}, PROGRAM]}), True),
        (_task("graph", params={"nodes": [{"name": "a", **PROGRAM}]}), True),
        (_task("end_state", environment="tools"), False),
        (_task("judge"), False),
        (_task("exact", environment="coding"), True),
        (_task("exact", hidden=HiddenCheck(verifier=VerifierSpec(**PROGRAM))), True),
        (_task("no such kind"), False),
    ],
)
def test_a_task_needs_a_sandbox_where_code_of_a_model_runs(task: TaskSpec, needed: bool) -> None:
    assert needs_sandbox(task) is needed
