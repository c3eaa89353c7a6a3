"""The life of a training run: created as a draft, started, paused, resumed, cancelled.

The configuration is checked by the same rules the worker applies, as far as they can be known
here; the worker checks again.
"""

from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.text import slugify

from apps.core.errors import Conflict, Refused
from apps.core.events import publish
from apps.core.lineage import Node, lineage_record
from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.core.units import units_cancel
from apps.feedback.models import Dataset, TaskAsset
from apps.training.config import RunConfig, parse_config
from apps.training.models import TrainingRun
from apps.training.services.admission import require_admission
from apps.training.services.plan import run_plan
from apps.versions.models import ModelVersion
from domain.lifecycle import IllegalMove, next_state

MAX_STEPS = 100_000
MAX_SEED = 2**31 - 1


def run_create(
    *,
    project: Project,
    name: str,
    dataset: Dataset,
    parent: ModelVersion,
    config: dict[str, Any] | None = None,
    steps: int = 100,
    seed: int = 1,
    by: Actor,
) -> TrainingRun:
    """A draft. Raises Refused on a configuration that no worker would accept, and on held-out tasks:
    what measures a version may not train it."""
    name = name.strip()
    if not name:
        raise Refused("Give the run a name.", code="name_missing")
    if not 1 <= steps <= MAX_STEPS:
        raise Refused(f"Choose between 1 and {MAX_STEPS:,} steps.", code="steps_invalid")
    if dataset.kind != Dataset.Kind.RL:
        raise Refused("GRPO needs a dataset of RL tasks; this one holds another kind.", code="dataset_kind")
    if dataset.split != TaskAsset.Split.TRAIN:
        raise Refused(
            "This dataset is held out: its tasks measure versions, so none may train on them.",
            code="dataset_held_out",
        )
    if not 0 <= seed <= MAX_SEED:
        raise Refused(f"Choose a seed between 0 and {MAX_SEED:,}.", code="seed_invalid")
    checked: RunConfig = parse_config(config or {})
    with transaction.atomic():
        run = TrainingRun.objects.create(
            project=project,
            name=name[:100],
            slug=f"{(slugify(name)[:30] or 'run')}-new-{timezone.now().timestamp():.6f}".replace(".", "-"),
            parent=parent,
            dataset=dataset,
            seed=seed,
            config=checked.model_dump(mode="json"),
            steps=steps,
            created_by=by.name,
        )
        # The slug names adapters on engines for ever, so it carries the run's id.
        run.slug = f"{slugify(name)[:30] or 'run'}-{run.pk}"
        run.save(update_fields=["slug"])
        here = Node(run.lineage_key, run.name, run.get_absolute_url())
        lineage_record(
            project=project,
            parent=Node(f"feedback.dataset:{dataset.pk}", str(dataset), dataset.get_absolute_url()),
            child=here,
        )
        audit(actor=by, action="training_run.create", obj=run, dataset=dataset.pk, steps=steps)
        publish(project=project, topic=run.lineage_key, kind="TrainingRunCreated")
    return run


def run_start(*, run: TrainingRun, by: Actor) -> None:
    """Start the draft. Every verifier of its dataset must have passed the gauntlet."""
    require_admission(run.dataset)
    with transaction.atomic():
        locked = _move(run, TrainingRun.State.RUNNING)
        locked.started_at = locked.started_at or timezone.now()
        locked.save(update_fields=["state", "started_at"])
        audit(actor=by, action="training_run.start", obj=locked)
        publish(project=locked.project, topic=locked.lineage_key, kind="TrainingRunStarted")
        run_plan(run=locked)
    run.refresh_from_db()


def run_pause(*, run: TrainingRun, by: Actor) -> None:
    """Nothing new is planned; what runs now finishes and is kept."""
    with transaction.atomic():
        locked = _move(run, TrainingRun.State.PAUSED)
        locked.save(update_fields=["state"])
        audit(actor=by, action="training_run.pause", obj=locked)
        publish(project=locked.project, topic=locked.lineage_key, kind="TrainingRunPaused")
    run.refresh_from_db()


def run_resume(*, run: TrainingRun, by: Actor) -> None:
    """Continue where the plan stands; a failed run continues from its last checkpoint."""
    require_admission(run.dataset)
    with transaction.atomic():
        locked = _move(run, TrainingRun.State.RUNNING)
        locked.error, locked.finished_at = "", None
        locked.save(update_fields=["state", "error", "finished_at"])
        audit(actor=by, action="training_run.resume", obj=locked)
        publish(project=locked.project, topic=locked.lineage_key, kind="TrainingRunStarted")
        run_plan(run=locked)
    run.refresh_from_db()


def run_cancel(*, run: TrainingRun, by: Actor) -> None:
    """End it for good. Its open units are cancelled, so their results are discarded; no version is made."""
    with transaction.atomic():
        locked = _move(run, TrainingRun.State.CANCELLED)
        locked.finished_at = timezone.now()
        locked.save(update_fields=["state", "finished_at"])
        units_cancel(owner=locked.lineage_key)
        audit(actor=by, action="training_run.cancel", obj=locked)
        publish(project=locked.project, topic=locked.lineage_key, kind="TrainingRunCancelled")
    run.refresh_from_db()


def _move(run: TrainingRun, state: str) -> TrainingRun:
    locked = TrainingRun.objects.select_for_update(of=("self",)).select_related("project").get(pk=run.pk)
    try:
        locked.state = next_state("training_run", locked.state, state)
    except IllegalMove as error:
        raise Conflict(str(error), code="illegal_move") from None
    return locked
