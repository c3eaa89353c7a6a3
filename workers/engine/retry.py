"""How often, and when again, an external endpoint is asked: attempts, pauses, one deadline.

The gateway makes one attempt of every request that reaches it; everything else is decided here, so
that a result can say how many attempts it took. Rules of single statuses are ``domain.retrying``.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self, TypeVar

from domain.contracts import EngineTarget
from domain.retrying import pause_s
from workers.engine.replies import EngineError

Reply = TypeVar("Reply")

# Our gateway held the request back until its patience ended; the endpoint never saw it.
HELD_BACK = frozenset({"endpoint_busy"})
_RECONNECT_S = 1.0


@dataclass(frozen=True)
class RetryPolicy:
    """``max_attempts`` of one request, ``deadline_s`` for all of them with the pauses between."""

    max_attempts: int
    deadline_s: float

    @classmethod
    def of(cls, target: EngineTarget) -> Self | None:
        """The target's policy; None for an engine of ours."""
        if target.max_attempts is None:
            return None
        return cls(target.max_attempts, target.deadline_s or target.max_attempts * target.timeout_s)


async def with_retries(
    send: Callable[[], Awaitable[Reply]],
    policy: RetryPolicy,
    *,
    draw: Callable[[], float] = random.random,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> tuple[Reply, int]:
    """The reply of the first attempt that succeeds, and which it was. Raises the last attempt's
    EngineError, whose ``attempts`` says how many there were.

    An attempt that cannot have reached the endpoint (our gateway was away, or held the request back)
    is not counted; only the deadline ends those.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + policy.deadline_s
    attempts, last = 0, EngineError(0, "no answer in time", True)
    while True:
        attempts += 1
        try:
            async with asyncio.timeout_at(deadline):
                return await send(), attempts
        except TimeoutError:
            raise _given_up(last, attempts, policy.deadline_s) from None
        except EngineError as error:
            last = error
        if not last.retryable:
            last.attempts = attempts
            raise last
        if not last.reached or last.code in HELD_BACK:
            attempts -= 1
            pause = last.retry_after_s or _RECONNECT_S
            pause += draw() * pause / 2
        elif attempts >= policy.max_attempts:
            last.attempts = attempts
            raise last
        else:
            pause = pause_s(attempts, draw=draw(), told_s=last.retry_after_s)
        if loop.time() + pause >= deadline:
            raise _given_up(last, attempts, policy.deadline_s)
        await sleep(pause)


def _given_up(last: EngineError, attempts: int, deadline_s: float) -> EngineError:
    """``last`` as the reason that time ran out."""
    error = EngineError(
        last.status, f"{last.message} (given up after {deadline_s:g} s)", last.retryable, code=last.code
    )
    error.attempts = max(1, attempts)
    return error
