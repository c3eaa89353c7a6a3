"""How a run ends: with the version it made, or with a reason why not."""

from django.utils import timezone

from apps.core.events import publish
from apps.core.permissions import system_actor
from apps.core.units import units_cancel
from apps.training.models import TrainingRun
from apps.versions.services import version_register
from domain.lifecycle import may_move, next_state

NOTHING_LEARNED = "No step had anything to learn from, so no version was made."


def run_finish(*, run: TrainingRun) -> None:
    """Close the run and register what it made; a run that never learned registers nothing.
    The caller holds the run's lock."""
    run.state, run.finished_at = next_state("training_run", run.state, TrainingRun.State.DONE), timezone.now()
    if run.adapter_digest:
        run.version = version_register(
            project=run.project,
            base=run.parent.base,
            parent=run.parent,
            adapter_name=run.adapter_name,
            adapter_digest=run.adapter_digest,
            origin=run.lineage_key,
            origin_label=run.name,
            origin_url=run.get_absolute_url(),
            by=system_actor(run.project, "training"),
        )
    else:
        run.error = NOTHING_LEARNED
    run.save(update_fields=["state", "finished_at", "version", "error"])
    publish(
        project=run.project,
        topic=run.lineage_key,
        kind="TrainingRunFinished",
        say=f"{run.name} finished",
        version=run.version.number if run.version else None,
    )


def run_fail(*, run: TrainingRun, error: str) -> None:
    """Stop with a reason. What was learned stays in the last checkpoint; resuming continues there.
    The caller holds the run's lock."""
    if not may_move("training_run", run.state, TrainingRun.State.FAILED):
        return
    run.state, run.error, run.finished_at = TrainingRun.State.FAILED, error[:2000], timezone.now()
    run.restarts += 1  # part of the units' keys: what is planned after resuming is new work
    run.save(update_fields=["state", "error", "finished_at", "restarts"])
    units_cancel(owner=run.lineage_key)
    publish(project=run.project, topic=run.lineage_key, kind="TrainingRunFailed", say=f"{run.name} failed")


def run_hold(*, run: TrainingRun, reason: str) -> None:
    """Pause for a reason that a person has to settle. The caller holds the run's lock."""
    run.state, run.error = next_state("training_run", run.state, TrainingRun.State.PAUSED), reason
    run.save(update_fields=["state", "error"])
    publish(project=run.project, topic=run.lineage_key, kind="TrainingRunPaused", say=f"{run.name} paused")
