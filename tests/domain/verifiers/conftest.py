"""The smallest valid task for a verifier."""

from collections.abc import Callable
from typing import Any

import pytest

from domain.contracts import ChatMessage, TaskSpec, Verdict, VerifierSpec
from domain.verifiers import verify

Judge = Callable[..., Verdict]


@pytest.fixture
def task() -> Callable[..., TaskSpec]:
    def build(kind: str, reference: Any, **params: Any) -> TaskSpec:
        return TaskSpec(
            id="task-1",
            family="test",
            messages=(ChatMessage(role="user", content="?"),),
            verifier=VerifierSpec(kind=kind, params=params),
            reference=reference,
        )

    return build


@pytest.fixture
def judge(task: Callable[..., TaskSpec]) -> Judge:
    """judge(kind, reference, answer, evidence=…, **params)"""

    def run(kind: str, reference: Any, answer: str, evidence: Any = None, **params: Any) -> Verdict:
        return verify(task(kind, reference, **params), answer, evidence or {})

    return run
