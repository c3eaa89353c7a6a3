"""One backend for the collectors' tests, and a small shop whose tests are judged apart and inside."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from domain.contracts import ChatMessage, TaskSpec, Verdict, VerifierSpec
from domain.verifiers import verify
from workers.collect.repo_tests import collect_repo_tests
from workers.sandbox import Limits
from workers.sandbox.bubblewrap import BubblewrapBackend

LIMITS = Limits(cpu_s=2, wall_s=60.0)  # of time far more than they take: the machine may be busy
SHOP = {
    "shop/__init__.py": "",
    "shop/errors.py": "class Empty(ValueError):\n    pass\n",
    "shop/cart.py": """from shop.errors import Empty

RATE = 3


class Cart:
    def __init__(self):
        self.items = []

    def add(self, name, price):
        self.items.append((name, price))
        return self

    def total(self):
        if not self.items:
            raise Empty("nothing in it")
        return total([price for _, price in self.items])


def total(prices):
    return sum(prices) * RATE
""",
}
TESTS = {
    "tests/test_hidden.py": """from checks import raises, same
from shop.cart import RATE, Cart, total
from shop.errors import Empty


def test_total():
    same(total([1, 20]), 63)


def test_total_of_nothing():
    same(total([]), 0)


def test_rate():
    same(RATE, 3)


def test_cart():
    cart = Cart()
    cart.add("pen", 2).add("cup", 5)
    same(cart.total(), 21)
    same(cart.items, [("pen", 2), ("cup", 5)])


def test_empty():
    with raises(Empty):
        Cart().total()
    with raises(ValueError):
        Cart().total()
"""
}
NAMES = ("test_total", "test_total_of_nothing", "test_rate", "test_cart", "test_empty")
IDS = [f"tests/test_hidden.py::{name}" for name in NAMES]

Grade = Callable[..., Verdict]


@pytest.fixture(scope="session")
def backend() -> BubblewrapBackend:
    return BubblewrapBackend()


@pytest.fixture
def grade(backend: BubblewrapBackend) -> Grade:
    """grade({path: text or None for a deleted file}, mode=…, **reference) judges the changed shop."""

    def run(
        changed: dict[str, str | None], *, mode: str = "apart", limits: Limits = LIMITS, **more: Any
    ) -> Verdict:
        task = repository_task(mode=mode, **more)
        start = {**task.reference["files"], **task.reference.get("shown", {})}
        files = {path: text for path, text in {**start, **changed}.items() if text is not None}
        seen = {"workspace": {"status": "ok", "files": files}}
        report = asyncio.run(collect_repo_tests(backend, task, "a patch", seen, limits=limits))
        return verify(task, "a patch", {**seen, "repo_tests": report})

    return run


def repository_task(*, mode: str = "apart", **more: Any) -> TaskSpec:
    return TaskSpec(
        id="task-1",
        family="test",
        messages=(ChatMessage(role="user", content="Repair it."),),
        verifier=VerifierSpec(kind="repo_tests", params={"sources": ["shop/*.py"], "mode": mode}),
        reference={"files": SHOP, "tests": TESTS, "ids": IDS, **more},
    )


def with_total(body: str) -> dict[str, str | None]:
    """The shop with another body of ``total``."""
    return {"shop/cart.py": SHOP["shop/cart.py"].replace("return sum(prices) * RATE", body)}


def at_import(lines: str) -> dict[str, str | None]:
    """The shop with ``lines`` before everything else in its cart."""
    return {"shop/cart.py": f"{lines}\n{SHOP['shop/cart.py']}"}


def score(verdict: Verdict, name: str) -> float | None:
    return next(check.score for check in verdict.checks if check.name == name)
