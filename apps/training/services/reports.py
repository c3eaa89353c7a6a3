"""What workers report about a run's units. Called inside the transaction that closes the unit."""

import io
import logging
from collections import Counter
from typing import Any

import pyarrow.parquet as pq
from django.utils import timezone

from apps.core.events import publish
from apps.core.models import WorkUnit
from apps.core.ui import numbers
from apps.training.config import RunConfig
from apps.training.models import Segment, TrainingRun, Trajectory
from apps.training.services.ending import run_fail, run_hold
from apps.training.services.loopholes import STATES, errors_refused, loopholes_watch
from apps.training.services.metrics import draw_metrics, training_metrics
from apps.training.services.plan import curriculum_of, run_plan
from apps.training.services.trajectories import trajectories_index
from artifacts import get_store
from domain.contracts import RolloutBatchResult, RunTrainSegment, TrainSegmentResult

logger = logging.getLogger(__name__)
_OVER = (TrainingRun.State.CANCELLED, TrainingRun.State.DONE)


def rollout_batch_finished(unit: WorkUnit, result: dict[str, Any]) -> None:
    """Keep the rollouts, index their trajectories, and refill groups that teach nothing."""
    run, segment = _locked(unit)
    round_number = int(unit.key.split(":")[3])
    if segment.state != Segment.State.ROLLOUTS or segment.rounds != round_number or run.state in _OVER:
        return
    body = RolloutBatchResult.model_validate(result)
    known = Trajectory.objects.filter(run=run, digest=body.trajectories_digest).exists()
    useful = trajectories_index(run=run, step=segment.index, digest=body.trajectories_digest)
    if not body.counts.get("passed", 0) + body.counts.get("failed", 0):
        # Not a fact about the policy: going on would use up the plan without learning anything.
        why = f"no answer could be judged ({_states_text(body.counts)}).{_usual_error(body)}"
        run_fail(run=run, error=f"Generating step {segment.index + 1}: {why}")
        return
    _count_round(run, segment, body)
    loopholes_watch(run=run, step=segment.index)
    if known:
        # The trainer takes an artifact once; the same bytes again are nothing new to learn from.
        logger.warning("rollouts repeated run=%s step=%s", run.pk, segment.index)
    else:
        _keep_rollouts(segment, body, useful)
    config = RunConfig.model_validate(run.config)
    if segment.groups_useful >= config.groups or segment.rounds > config.refills:
        segment.state = Segment.State.TRAINING
    segment.save()
    publish(
        project=run.project, topic=run.lineage_key, kind="RolloutsFinished", step=segment.index, **body.counts
    )
    if (why := errors_refused(body.counts)) and run.state == TrainingRun.State.RUNNING:
        run_hold(run=run, reason=f"Generating step {segment.index + 1}: {why}{_usual_error(body)}")
    run_plan(run=run)


def rollout_batch_failed(unit: WorkUnit, error: str) -> None:
    run, segment = _locked(unit)
    run_fail(run=run, error=f"Generating step {segment.index + 1} failed: {error}")


def train_segment_finished(unit: WorkUnit, result: dict[str, Any]) -> None:
    """Advance to the new policy version; the last segment registers a model version."""
    run, segment = _locked(unit)
    if segment.state != Segment.State.TRAINING or run.state in _OVER:
        return
    body = TrainSegmentResult.model_validate(result)
    message = RunTrainSegment.model_validate(unit.payload)
    segment.state, segment.finished_at = Segment.State.DONE, timezone.now()
    segment.result, segment.skipped = body.model_dump(mode="json"), body.skipped[:200]
    segment.save()
    run.checkpoint_digest = body.checkpoint_digest
    if body.policy_version != run.policy_version:
        run.policy_version, run.adapter_digest = body.policy_version, body.adapter_digest
        # The digest too: an engine that outlived a restored database must not know the name already.
        run.adapter_name = f"{run.slug}-v{body.policy_version}-a{unit.attempt}-{body.adapter_digest[:8]}"
    run.save(update_fields=["checkpoint_digest", "policy_version", "adapter_digest", "adapter_name"])
    training_metrics(run, segment, body, trained_from=message.policy_version)
    publish(project=run.project, topic=run.lineage_key, kind="SegmentFinished", step=segment.index)
    run_plan(run=run)


def train_segment_failed(unit: WorkUnit, error: str) -> None:
    """Stop. A batch that the trainer refused would be refused again, so resuming draws another;
    one that no worker finished is good and is kept."""
    run, segment = _locked(unit)
    if segment.state == Segment.State.TRAINING and _was_refused(unit):
        segment.state, segment.redraws = Segment.State.ROLLOUTS, segment.redraws + 1
        segment.draws, segment.rollout_digests, segment.policy_version = [], [], None
        segment.rounds = segment.groups_useful = 0
        segment.save()
    run_fail(run=run, error=f"Training step {segment.index + 1} failed: {error}")


def _was_refused(unit: WorkUnit) -> bool:
    return unit.state == WorkUnit.State.FAILED and unit.attempt < unit.max_attempts


def _states_text(counts: dict[str, int]) -> str:
    """``3 errors, 1 unscored``."""
    words = {state: numbers.count(counts.get(state, 0), state, state) for state in STATES}
    words["error"] = numbers.count(counts.get("error", 0), "error")
    return ", ".join(words[state] for state in STATES if counts.get(state))


def _usual_error(body: RolloutBatchResult) -> str:
    """The error that most episodes of the batch ended in, as a further sentence, or ""."""
    table = pq.read_table(io.BytesIO(get_store().get(body.trajectories_digest)), columns=["state", "error"])
    errors = Counter(row["error"] for row in table.to_pylist() if row["state"] == "error" and row["error"])
    if not errors:
        return ""
    error = errors.most_common(1)[0][0]
    return f" Most frequent error: {error}{'' if error.endswith('.') else '.'}"


def _count_round(run: TrainingRun, segment: Segment, body: RolloutBatchResult) -> None:
    """What a round taught the planner, whatever becomes of its artifact."""
    if segment.rounds == 0:
        draw_metrics(run, segment, body)
    segment.rounds += 1
    curriculum = curriculum_of(run)
    for task_id, pass_rate in body.tasks.items():
        curriculum = curriculum.updated(task_id, pass_rate)
    run.curriculum = curriculum.to_dict()
    run.save(update_fields=["curriculum"])


def _keep_rollouts(segment: Segment, body: RolloutBatchResult, useful: int) -> None:
    segment.rollout_digests = [*segment.rollout_digests, body.trajectories_digest]
    segment.groups_useful += useful
    oldest = body.policy_version if segment.policy_version is None else segment.policy_version
    segment.policy_version = min(body.policy_version, oldest)


def _locked(unit: WorkUnit) -> tuple[TrainingRun, Segment]:
    run = (
        TrainingRun.objects.select_for_update(of=("self",))
        .select_related("project", "parent__base", "dataset")
        .get(pk=unit.owner.rpartition(":")[2])
    )
    index = int(unit.key.split(":")[2])
    return run, Segment.objects.get(run=run, index=index)
