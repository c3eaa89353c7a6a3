"""Fixtures: an upstream that plays a script, and a gateway over it without a database."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from apps.gateway.asgi import Gateway
from apps.gateway.spool import Spool
from tests.apps.gateway.world import FakeUpstream, World
from tests.waiting import GUARD_S


@pytest.fixture(autouse=True)
def _keep_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test's transaction lives on its one connection, which must not be closed before its end."""
    for module in ("reporting", "signals"):
        monkeypatch.setattr(f"apps.gateway.{module}.close_old_connections", lambda: None)


@pytest.fixture
async def upstream() -> AsyncIterator[FakeUpstream]:
    fake = FakeUpstream()
    await fake.start()
    yield fake
    await fake.stop()


@pytest.fixture
async def world(upstream: FakeUpstream, tmp_path: Path) -> AsyncIterator[World]:
    spool = Spool(tmp_path / "spool")
    made: list[World] = []

    def take_feedback(*, key_id: int, items: list[dict[str, Any]]) -> list[dict[str, str]]:
        made[0].feedback += items
        return [{"external_id": "", "status": "created", "message": ""} for _ in items]

    gateway = Gateway(
        load=lambda: made[0].snapshot(),
        spool=spool,
        max_body_bytes=4 * 1024 * 1024,
        take_feedback=take_feedback,
        read_timeout_s=GUARD_S,
    )
    made.append(World(gateway, upstream, spool))
    yield made[0]
    await gateway.stop()
