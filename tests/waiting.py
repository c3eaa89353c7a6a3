"""Waiting in tests: always for a condition, with a guard that no busy machine reaches.

A guard is there so that a test ends; it is never what a test measures.
"""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

GUARD_S = 240.0

T = TypeVar("T")


def until(
    condition: Callable[[], T], *, what: str = "", timeout_s: float = GUARD_S, every_s: float = 0.02
) -> T:
    """The first true answer of ``condition``; AssertionError naming ``what`` after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"after {timeout_s:.0f} s still not: {what or condition}"
        time.sleep(every_s)


async def becomes(condition: Callable[[], T], *, what: str = "", timeout_s: float = GUARD_S) -> T:
    """The same on an event loop, which goes on meanwhile."""
    deadline = time.monotonic() + timeout_s
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"after {timeout_s:.0f} s still not: {what or condition}"
        await asyncio.sleep(0.005)
