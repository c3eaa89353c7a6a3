"""One backend for all tests of this folder, and a way to run a few lines of Python in it."""

import asyncio
import textwrap

import pytest

from tests.workers.sandbox.programs import SMALL, Run
from workers.sandbox import ExecResult, Limits, SandboxSpec
from workers.sandbox.bubblewrap import BubblewrapBackend
from workers.sandbox.worker_pool import worker_pool


@pytest.fixture(scope="module", autouse=True)
def _nobody_elses() -> None:
    """Sandboxes that other tests of this process left ready would count among those looked for here."""
    worker_pool().close()


@pytest.fixture(scope="session")
def backend() -> BubblewrapBackend:
    return BubblewrapBackend()


@pytest.fixture
def run(backend: BubblewrapBackend) -> Run:
    """``run(code, **arguments of Backend.run)`` under small limits."""

    def call(code: str, *, limits: Limits = SMALL, **arguments: object) -> ExecResult:
        argv = [*backend.interpreter, "-c", textwrap.dedent(code)]
        return asyncio.run(backend.run(SandboxSpec(limits=limits), argv, **arguments))

    return call
