"""A project with a dataset of admitted tasks, and workers that report what a test tells them."""

import hashlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from apps.core.models import Project, WorkUnit
from apps.core.permissions import Actor
from apps.core.units import unit_report, units_pump
from apps.feedback import services as feedback
from apps.feedback.models import Dataset, Family, Verifier
from apps.training import services
from apps.training.models import TrainingRun
from apps.versions.models import ModelVersion
from apps.versions.services import base_model_register
from artifacts import ArtifactStore
from domain.contracts import Check, Step, TaskSpec, Trajectory, Verdict
from domain.contracts.trajectory_table import RolloutInfo
from packs.registry import pack_named
from workers.trajectory_file import trajectory_file

PASS, FAIL = 1.0, 0.0
CONFIG = {"groups": 4, "group_size": 2, "refills": 1, "train": {"staleness": 1}}


def starter_tasks(count: int = 24, seed: int = 3) -> list[TaskSpec]:
    return pack_named("starter").generate("invoice_fields", seed=seed, count=count, reserved=False)


@pytest.fixture
def family(project: Project, actor: Actor) -> Family:
    """With tasks, and a verifier that passed its gauntlet."""
    family = feedback.family_ensure(
        project=project, name="invoice_fields", pack="starter", verifier_kind="json_fields", by=actor
    )
    feedback.assets_import(project=project, family=family, tasks=starter_tasks(), by=actor)
    admit(family.verifier)
    return family


def admit(verifier: Verifier | None, admission: str = "admitted") -> None:
    assert verifier is not None
    Verifier.objects.filter(pk=verifier.pk).update(admission=admission)


@pytest.fixture
def dataset(family: Family, store: ArtifactStore, actor: Actor) -> Dataset:
    return feedback.dataset_create(project=family.project, name="invoices", families=[family.name], by=actor)


@pytest.fixture
def parent(project: Project, actor: Actor) -> ModelVersion:
    base = base_model_register(
        project=project, name="pocket", engine_name="pocket", path="/models/pocket", by=actor
    )
    version: ModelVersion = base.versions.get(minor=0)
    return version


MakeRun = Callable[..., TrainingRun]


@pytest.fixture
def make_run(project: Project, dataset: Dataset, parent: ModelVersion, actor: Actor) -> MakeRun:
    """A draft of three steps; keywords change it."""

    def make(**changes: Any) -> TrainingRun:
        values = {"name": "Invoices", "steps": 3, "config": CONFIG} | changes
        return services.run_create(project=project, dataset=dataset, parent=parent, by=actor, **values)

    return make


@pytest.fixture
def run(make_run: MakeRun, actor: Actor) -> TrainingRun:
    """Started."""
    run = make_run()
    services.run_start(run=run, by=actor)
    return run


class Workers:
    """Reports for units as a worker would, without doing the work."""

    def __init__(self, store: ArtifactStore) -> None:
        self.store = store
        self._adapters = itertools.count(1)

    def open(self, kind: str = "") -> list[WorkUnit]:
        units = WorkUnit.objects.open().order_by("pk")
        return list(units.filter(kind=kind) if kind else units)

    def only(self, kind: str) -> WorkUnit:
        (unit,) = self.open(kind)
        return unit

    def first(self, kind: str) -> WorkUnit:
        return self.open(kind)[0]

    def roll(
        self,
        unit: WorkUnit | None = None,
        *,
        rewards: Sequence[float | None] = (PASS, FAIL),
        flat: int = 0,
        **changes: Any,
    ) -> str:
        """Finish a rollout batch: every group earns ``rewards``, the first ``flat`` of them all fail."""
        unit = unit or self.first("rollout_batch")
        digest, result = self.rollouts(unit, rewards=rewards, flat=flat)
        self.finish(unit, result | changes)
        return digest

    def rollouts(
        self, unit: WorkUnit, *, rewards: Sequence[float | None] = (PASS, FAIL), flat: int = 0
    ) -> tuple[str, dict[str, Any]]:
        payload = unit.payload
        lines = list(self.store.iter_jsonl(payload["tasks_digest"]))
        trajectories = [
            trajectory(
                lines[line]["id"],
                sample,
                FAIL if number < flat else reward,
                seed=payload["seed"] + sample,
                policy_version=payload["policy_version"],
            )
            for number, line in enumerate(payload["indexes"])
            for sample, reward in enumerate(rewards)
        ]
        info = RolloutInfo(policy_version=payload["policy_version"], temperature=payload["temperature"])
        digest = self.store.put(trajectory_file(trajectories, info))
        scored = [t.reward for t in trajectories if t.reward is not None]
        states = [t.state for t in trajectories]
        return digest, {
            "trajectories_digest": digest,
            "policy_version": payload["policy_version"],
            "counts": {state: states.count(state) for state in sorted(set(states))},
            "reward_mean": sum(scored) / len(scored) if scored else None,
            "pass_rate": states.count("passed") / len(scored) if scored else None,
            "completion_tokens_mean": 3.0,
            "groups_zero_variance": flat,
            "tasks": {lines[line]["id"]: 0.5 for line in payload["indexes"]} if scored else {},
            "pipeline": {"engine_busy_share": 0.8},
        }

    def train(self, unit: WorkUnit | None = None, *, skipped: str = "", **metrics: float) -> str:
        """Finish a training segment; returns the adapter's digest."""
        unit = unit or self.first("train_segment")
        number = next(self._adapters)
        adapter = self.store.put(b"adapter %d" % number)
        self.finish(
            unit,
            {
                "policy_version": unit.payload["policy_version"] + (not skipped),
                "checkpoint_digest": hashlib.sha256(b"checkpoint %d" % number).hexdigest(),
                "adapter_digest": adapter,
                "metrics": {"loss": 0.1, "grad_norm": 0.5, **metrics},
                "skipped": skipped,
            },
        )
        return adapter

    def finish(self, unit: WorkUnit, result: dict[str, Any], *, attempt: int | None = None) -> bool:
        sent = self.send(unit)
        return unit_report(
            report={
                "type": "UnitFinished",
                "unit_id": unit.pk,
                "attempt": attempt if attempt is not None else sent.attempt,
                "result": result,
            }
        )

    def fail(self, unit: WorkUnit, error: str = "out of luck", *, retryable: bool = False) -> bool:
        sent = self.send(unit)
        return unit_report(
            report={
                "type": "UnitFailed",
                "unit_id": unit.pk,
                "attempt": sent.attempt,
                "error": error,
                "retryable": retryable,
            }
        )

    def send(self, unit: WorkUnit) -> WorkUnit:
        WorkUnit.objects.filter(pk=unit.pk).update(not_before=None)  # no pause between attempts here
        units_pump()
        unit.refresh_from_db()
        return unit


def trajectory(
    task_id: str, sample: int, reward: float | None, *, seed: int = 0, policy_version: int = 0
) -> Trajectory:
    tokens = (10 + sample, 20, 2)
    step = Step(
        observation="Invoice INV-1, total 12.50",
        action='{"total": 12.50}',
        token_ids=tokens,
        logprobs=(-0.05, -1.2, -3.0),
        mask=(1,) * 3,
        policy_version=policy_version,
        finish_reason="stop",
    )
    state = "error" if reward is None else "passed" if reward > 0.5 else "failed"
    return Trajectory(
        task_id=task_id,
        family="invoice_fields",
        group=f"{task_id}@0",
        sample=sample,
        seed=seed,
        prompt_ids=(1, 7, 8),
        steps=(step,),
        state=state,  # type: ignore[arg-type]
        verdict=_verdict(state),
        reward=reward,
        reward_terms={} if reward is None else {"terminal": reward},
        error="the engine did not answer" if reward is None else "",
        completion_tokens=3,
        prompt_tokens=3,
        served_model="pocket",
    )


def _verdict(state: str) -> Verdict | None:
    if state == "error":
        return None
    score = float(state == "passed")
    check = Check(
        name="total", role="terminal", score=score, reason="" if score else "total is 12.50, not 120.50"
    )
    return Verdict(
        state=state,  # type: ignore[arg-type]
        score=score,
        checks=(check,),
        reasons=() if score else ("total is 12.50, not 120.50",),
    )


@pytest.fixture
def workers(store: ArtifactStore) -> Workers:
    return Workers(store)


@pytest.fixture(autouse=True)
def _plenty_of_slots(settings) -> None:  # type: ignore[no-untyped-def]
    settings.WORKER_SLOTS = {"eval": 8, "rollout": 8, "train": 8}
