"""What tests of several rooms of the workers share: a context, and a pocket engine that runs."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from artifacts import ArtifactStore
from tests.workers.engine.conftest import WEIGHTS, running_pocket
from workers.engine.pocket import PocketSettings


class FakeContext:
    """A worker that only remembers what it was told."""

    def __init__(self, store: ArtifactStore) -> None:
        self.store = store
        self.reports: list[dict[str, Any]] = []

    def progress(self, values: dict[str, Any]) -> None:
        self.reports.append(values)

    def when_reported(self, action: Callable[[], object]) -> None:
        action()


@pytest.fixture
def ctx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeContext:
    monkeypatch.setenv("FLYWHEEL_ADAPTERS", str(tmp_path / "adapters"))
    return FakeContext(ArtifactStore(f"file://{tmp_path}/artifacts"))


@pytest.fixture(scope="session")
def engine_url() -> Iterator[str]:
    with running_pocket(PocketSettings(model=WEIGHTS)) as url:
        yield url
