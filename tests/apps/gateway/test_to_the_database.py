"""From a request to the rows of the feedback room, through files, with nothing replaced between."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from apps.core.permissions import Actor
from apps.core.services import api_key_create
from apps.feedback.models import Capture, FeedbackSignal, Inference
from apps.gateway.asgi import Gateway
from apps.gateway.errors import GatewayError
from apps.gateway.ingest import spool_ingest
from apps.gateway.signals import feedback_take
from apps.gateway.spool import Spool
from tests.apps.gateway.world import FakeUpstream, World, answers, status

pytestmark = pytest.mark.django_db


def exchanges(folder: Path, project_id: int, *calls: dict[str, Any]) -> list[str]:
    """Send each call, a failing one for ``fails``; returns the operations."""

    async def run() -> list[str]:
        upstream, made = FakeUpstream(), []
        await upstream.start()
        gateway = Gateway(load=lambda: made[0].snapshot(), spool=Spool(folder), max_body_bytes=10**6)
        made.append(World(gateway, upstream, gateway.spool, project_id=project_id))
        await made[0].routes()
        operations = []
        for call in calls:
            fails = call.pop("fails", False)
            upstream.plays("base", status(500) if fails else answers("42"))
            response = await made[0].chat(**call)
            operations.append(response.headers["x-flywheel-operation"])
        await gateway.stop()
        await upstream.stop()
        return operations

    return asyncio.run(run())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spool"


def test_operations_become_inferences_and_failures_become_captures(folder: Path, project: Any) -> None:
    good, bad = exchanges(folder, project.pk, {}, {"fails": True, "headers": {"x-flywheel-family": "sums"}})

    result = spool_ingest(folder)

    assert (result.rows, result.rejected_by_project) == (2, {})
    rows = {row.operation: row for row in Inference.objects.all()}
    assert (rows[good].status, rows[good].error, rows[good].completion_tokens) == (200, "", 7)
    assert (rows[bad].status, rows[bad].error, rows[bad].family) == (502, "upstream_error", "sums")
    assert [capture.operation for capture in Capture.objects.all()] == [bad]


def test_the_same_file_twice_gives_the_same_rows(folder: Path, project: Any) -> None:
    exchanges(folder, project.pk, {}, {"fails": True})
    (path,) = folder.iterdir()
    data = path.read_bytes()
    spool_ingest(folder)

    path.write_bytes(data)
    spool_ingest(folder)

    assert (Inference.objects.count(), Capture.objects.count()) == (2, 1)


def test_feedback_before_the_row_makes_a_success_a_failure_once_it_comes(
    folder: Path, project: Any, actor: Actor
) -> None:
    (operation,) = exchanges(folder, project.pk, {})
    key = api_key_create(project=project, name="k", scopes=["gateway"], by=actor).key

    results = feedback_take(
        key_id=key.pk,
        items=[{"operation": operation, "metric": "rating", "value": False, "correction": "43"}],
    )
    assert FeedbackSignal.objects.get().joined_at is None
    spool_ingest(folder)

    assert results[0]["status"] == "created"
    assert FeedbackSignal.objects.get().joined_at is not None
    capture = Capture.objects.get()
    assert (capture.operation, capture.failed) == (operation, True)


def test_feedback_with_a_revoked_key_is_refused(project: Any) -> None:
    with pytest.raises(GatewayError) as caught:
        feedback_take(key_id=999, items=[{"operation": "op_1", "value": True}])

    assert caught.value.status == 401
