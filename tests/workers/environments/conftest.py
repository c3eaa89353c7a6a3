"""Tasks with tools, and a sandbox that is not one."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from artifacts import ArtifactStore
from domain.contracts import ChatMessage, TaskSpec, VerifierSpec
from tests.workers.environments.sandbox_fake import FakeSandbox, Program, said


def call(tool: str, **arguments: Any) -> str:
    return json.dumps({"tool": tool, "arguments": arguments})


def task_in(environment: str, **params: Any) -> TaskSpec:
    return TaskSpec(
        id="t",
        family="f",
        messages=(ChatMessage(role="user", content="Do it."),),
        verifier=VerifierSpec(kind="exact"),
        reference="x",
        environment=environment,
        environment_params=params,
    )


@pytest.fixture
def fake(store: ArtifactStore) -> Callable[..., FakeSandbox]:
    def make(program: Program = lambda argv, files: said("")) -> FakeSandbox:
        return FakeSandbox(store, program)

    return make


def shop() -> Mapping[str, Any]:
    """A small state of orders and tickets."""
    return {
        "now": "2026-03-02T09:00",
        "orders": {
            "policy": {"refund_days": 30},
            "customers": {"C-1": {"name": "Ana Roth", "email": "ana@example.org"}},
            "orders": {
                "O-1": {
                    "customer": "C-1",
                    "status": "delivered",
                    "placed_on": "2026-02-01",
                    "delivered_on": "2026-02-20",
                    "items": [{"sku": "A", "name": "Lamp", "quantity": 1, "price": 59.9}],
                    "paid": 59.9,
                    "refunded": 0,
                }
            },
        },
        "tickets": {
            "tickets": {
                "T-1": {
                    "subject": "Refund",
                    "customer": "C-1",
                    "status": "open",
                    "priority": "normal",
                    "queue": "returns",
                    "messages": [{"from": "customer", "text": "I want my money back", "at": "2026-03-01"}],
                }
            },
            "queues": ["returns", "billing"],
        },
    }
