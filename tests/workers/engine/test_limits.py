"""How many requests a batch keeps open."""

from typing import Any

import pytest

from domain.contracts import ChatMessage, EngineTarget, TaskSpec, VerifierSpec
from workers.engine.limits import useful_concurrency

TASK = TaskSpec(
    id="t",
    family="f",
    messages=(ChatMessage(role="user", content="x" * 400),),
    verifier=VerifierSpec(kind="exact"),
    max_tokens=900,
)


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ({}, 32),
        ({"max_concurrency": 8}, 8),
        ({"max_concurrency": 500}, 32),
        ({"requests_per_minute": 60}, 15),
        ({"requests_per_minute": 1}, 1),
        ({"tokens_per_minute": 20_000}, 5),
        ({"tokens_per_minute": 1}, 1),
        ({"max_concurrency": 4, "requests_per_minute": 6000}, 4),
    ],
)
def test_a_batch_asks_no_faster_than_is_useful(terms: dict[str, Any], expected: int) -> None:
    target = EngineTarget(base_url="http://h", model="m", **terms)

    assert useful_concurrency(target, [TASK], 32) == expected
