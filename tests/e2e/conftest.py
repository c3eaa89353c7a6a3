"""One installation for all tests of this folder, stopped and looked for after the last of them.

The guard against hanging is wider here than elsewhere: a set-up kills eight processes one after another.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.stack import RunningStack, running_stack

GUARD_S = 3600.0  # for one test and its set-up

_open = contextlib.ExitStack()


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """Shared: a test adds to it and must not count on being alone, nor stop it."""
    yield _open.enter_context(running_stack(tmp_path_factory.mktemp("stack") / "data"))
    _open.close()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Eight processes that nobody needs any more must not run beside the tests of other folders."""
    items = item.session.items
    if not any("stack" in getattr(later, "fixturenames", ()) for later in items[items.index(item) + 1 :]):
        _open.close()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("e2e"):
            item.add_marker(pytest.mark.timeout(GUARD_S))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """A failure shows what the processes said."""
    outcome: Any = yield
    report = outcome.get_result()
    started = getattr(item, "funcargs", {}).get("stack")
    if report.failed and isinstance(started, RunningStack):
        report.sections.append(("the stack's logs", started.logs()))
