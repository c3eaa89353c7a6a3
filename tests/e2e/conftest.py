"""One installation for the whole session, stopped and looked for at its end.

The guard against hanging is wider here than elsewhere: a set-up kills eight processes one after another.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.stack import RunningStack, running_stack

GUARD_S = 3600.0  # for one test and its set-up


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """Shared: a test adds to it and must not count on being alone, nor stop it."""
    with running_stack(tmp_path_factory.mktemp("stack") / "data") as started:
        yield started


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
