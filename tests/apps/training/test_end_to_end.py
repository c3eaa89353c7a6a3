"""Three steps of real GRPO: the pocket engine in its own process, the workers' own functions, the planner."""

import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest
import torch

from apps.core.models import Project, WorkUnit
from apps.core.permissions import Actor
from apps.core.units import unit_report, units_pump
from apps.feedback import services as feedback
from apps.training import services
from apps.training.models import TrainingRun
from apps.versions.models import ModelVersion
from apps.versions.services import base_model_register
from artifacts import ArtifactStore
from domain.contracts import RunRolloutBatch, RunTrainSegment, RunVerifyBatch
from packs.registry import pack_named
from tests.ports import free_port
from tests.waiting import GUARD_S, until
from workers.rollouts import run_rollout_batch
from workers.train import segment as segment_module
from workers.train.segment import run_train_segment
from workers.verify import run_verify_batch

WEIGHTS = Path(__file__).parents[3] / "models" / "pocket" / "weights"
FAMILY = "invoice_arithmetic"
_WORK = {
    "rollout_batch": (RunRolloutBatch, run_rollout_batch),
    "train_segment": (RunTrainSegment, run_train_segment),
    "verify_batch": (RunVerifyBatch, run_verify_batch),
}


class Context:
    """A worker in this process."""

    def __init__(self, store: ArtifactStore) -> None:
        self.store = store

    def progress(self, values: dict[str, Any]) -> None:
        pass

    def when_reported(self, action: Callable[[], object]) -> None:
        action()


@pytest.fixture
def engine(settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:  # type: ignore[no-untyped-def]
    """The pocket model served by a process of its own."""
    monkeypatch.setenv("FLYWHEEL_ADAPTERS", str(tmp_path / "adapters"))
    torch.set_num_threads(1)
    segment_module._session = None
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "workers.engine.pocket", "--model", str(WEIGHTS), "--port", str(port)],
        cwd=WEIGHTS.parents[2],
    )
    url = f"http://127.0.0.1:{port}"
    settings.ENGINE_ROLLOUT_URL = url
    try:
        until(lambda: process.poll() is not None or _answers(url), what="the engine answers", every_s=0.1)
        assert process.poll() is None, "the engine ended at once"
        yield url
    finally:
        process.terminate()
        process.wait(GUARD_S)
        segment_module._session = None


@pytest.fixture
def started(project: Project, actor: Actor, store: ArtifactStore, engine: str) -> TrainingRun:
    """A run on tasks of the starter pack whose verifier really passed its gauntlet."""
    pack = pack_named("starter")
    tasks = pack.generate(FAMILY, seed=5, count=40, reserved=False)
    family = feedback.family_ensure(
        project=project, name=FAMILY, pack="starter", verifier_kind=tasks[0].verifier.kind, by=actor
    )
    feedback.assets_import(project=project, family=family, tasks=tasks, by=actor)
    assert family.verifier is not None
    feedback.verifier_check(verifier=family.verifier, by=actor)
    _work_off(store)
    dataset = feedback.dataset_create(project=project, name="sums", families=[FAMILY], by=actor)
    base = base_model_register(
        project=project, name="pocket", engine_name="pocket", path=str(WEIGHTS), by=actor
    )
    run = services.run_create(
        project=project,
        name="Sums",
        dataset=dataset,
        parent=base.versions.get(),
        config={"groups": 4, "group_size": 4, "refills": 2},
        steps=3,
        by=actor,
    )
    services.run_start(run=run, by=actor)
    return run


def test_three_steps_make_a_version(started: TrainingRun, store: ArtifactStore, engine: str) -> None:
    _work_off(store)

    started.refresh_from_db()
    version = ModelVersion.objects.get(origin=started.lineage_key)
    learned = [segment for segment in started.segments.all() if not segment.skipped]
    drift = dict(started.metrics.filter(name="engine_kl").values_list("step", "value"))
    assert (started.state, started.error) == ("done", "")
    assert started.version == version
    assert len(learned) == started.policy_version >= 1
    assert version.adapter_name.startswith(f"{started.slug}-v{started.policy_version}-a1-")
    assert store.exists(version.adapter_digest)
    assert all(abs(value) < 0.05 for value in drift.values())  # engine and trainer mean the same tokens
    assert _served(store, started) == _planned(started)
    held = {card["id"] for card in httpx.get(f"{engine}/v1/models").json()["data"]}
    assert len(held) <= 4  # the base, and the adapters that a rollout within the limit may need


def _served(store: ArtifactStore, run: TrainingRun) -> set[str]:
    digests = set(run.trajectories.values_list("digest", flat=True))
    tables = [pq.read_table(io.BytesIO(store.get(digest)), columns=["served_model"]) for digest in digests]
    return {name for table in tables for name in table.column("served_model").to_pylist()}


def _planned(run: TrainingRun) -> set[str]:
    units = WorkUnit.objects.filter(owner=run.lineage_key, kind="rollout_batch")
    return set(units.values_list("payload__target__model", flat=True))


def _work_off(store: ArtifactStore) -> None:
    """Do what is planned, one unit after the other, until nothing is open."""
    context = Context(store)
    while units_pump() or WorkUnit.objects.open().exists():
        unit = WorkUnit.objects.filter(state="sent").order_by("-priority", "pk").first()
        assert unit is not None
        message, work = _WORK[unit.kind]
        result = work(message.model_validate(unit.payload), context)  # type: ignore[operator, attr-defined]
        unit_report(
            report={
                "type": "UnitFinished",
                "unit_id": unit.pk,
                "attempt": unit.attempt,
                "result": result.model_dump(mode="json"),
            }
        )


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=GUARD_S).status_code == 200
    except httpx.TransportError:
        return False
