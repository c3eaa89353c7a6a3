"""Attempts at an external endpoint: how many, after which pauses, and when they end."""

import asyncio
from typing import Any

import pytest

from domain.contracts import EngineTarget
from workers.engine.client import EngineError
from workers.engine.retry import RetryPolicy, with_retries

POLICY = RetryPolicy(max_attempts=5, deadline_s=600.0)


class Script:
    """Answers each attempt with the next error, then with "ok"; remembers the pauses."""

    def __init__(self, *errors: EngineError) -> None:
        self.errors = list(errors)
        self.sent = 0
        self.pauses: list[float] = []

    async def send(self) -> str:
        self.sent += 1
        if self.errors:
            raise self.errors.pop(0)
        return "ok"

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def run(self, policy: RetryPolicy = POLICY) -> tuple[str, int]:
        return await with_retries(self.send, policy, draw=lambda: 1.0, sleep=self.sleep)


def busy(told_s: float | None = None, **more: Any) -> EngineError:
    return EngineError(429, "busy", True, retry_after_s=told_s, **more)


async def test_the_attempt_that_succeeds_is_counted() -> None:
    script = Script(busy(), EngineError(500, "broke", True))

    assert await script.run() == ("ok", 3)
    assert script.pauses == [0.5, 1.0]


async def test_what_the_endpoint_asks_for_is_waited_for() -> None:
    script = Script(busy(7.0))

    await script.run()

    assert script.pauses == [7.5]


async def test_attempts_end_with_the_policy_and_the_error_says_how_many() -> None:
    script = Script(*[busy() for _ in range(9)])

    with pytest.raises(EngineError, match="busy") as given_up:
        await script.run(RetryPolicy(3, 600.0))

    assert (given_up.value.attempts, script.sent) == (3, 3)


async def test_what_stays_is_not_sent_again() -> None:
    script = Script(EngineError(400, "too long", False))

    with pytest.raises(EngineError):
        await script.run()

    assert script.sent == 1


async def test_no_pause_goes_beyond_the_deadline() -> None:
    script = Script(busy(100.0))

    with pytest.raises(EngineError, match="given up after 50 s") as given_up:
        await script.run(RetryPolicy(5, 50.0))

    assert (script.pauses, given_up.value.attempts, given_up.value.status) == ([], 1, 429)


async def test_an_attempt_that_never_ends_is_ended_by_the_deadline() -> None:
    async def hang() -> str:
        await asyncio.sleep(60)
        return "late"

    with pytest.raises(EngineError, match="no answer in time"):
        await with_retries(hang, RetryPolicy(5, 0.05))


@pytest.mark.parametrize(
    "error",
    [EngineError(0, "refused", True, reached=False), busy(2.0, code="endpoint_busy")],
    ids=["gateway away", "held back"],
)
async def test_what_cannot_have_reached_the_endpoint_is_no_attempt(error: EngineError) -> None:
    script = Script(*[error] * 8)

    assert await script.run(RetryPolicy(2, 600.0)) == ("ok", 1)
    assert len(script.pauses) == 8


async def test_a_cancel_passes_through() -> None:
    async def hang() -> str:
        await asyncio.sleep(60)
        return "late"

    task = asyncio.create_task(with_retries(hang, POLICY))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


def test_an_engine_of_ours_has_no_such_policy() -> None:
    own = EngineTarget(base_url="http://h", model="m")
    external = own.model_copy(update={"max_attempts": 4, "deadline_s": 90.0})

    assert RetryPolicy.of(own) is None
    assert RetryPolicy.of(external) == RetryPolicy(4, 90.0)
