"""Adapters on the rollout engine: which one generates, and which ones it may forget.

The worker unloads what a rollout batch names in ``retire`` and removes its files; both can be made
again from the artifact, so an adapter that is retired too early costs a reload and no more.
"""

from django.conf import settings

from apps.core.models import WorkUnit
from apps.training.models import TrainingRun
from apps.versions.models import ModelVersion
from domain.contracts import EngineTarget

# An engine holds a few adapters; what was loaded longer ago has been retired by a batch since.
_RECENT = 64


def rollout_target(run: TrainingRun) -> EngineTarget:
    """The rollout engine with the newest adapter, or the parent while there is none."""
    return EngineTarget(
        base_url=settings.ENGINE_ROLLOUT_URL,
        model=run.adapter_name or run.parent.engine_model,
        adapter_digest=run.adapter_digest or run.parent.adapter_digest,
    )


def adapters_to_retire(run: TrainingRun) -> tuple[str, ...]:
    """Adapters of this project's runs that the engine loaded for rollouts and that nothing needs:
    no open unit, no run that goes on, no registered version."""
    loaded: set[str] = set()
    keep = {run.adapter_name}
    retired: set[str] = set()
    recent = WorkUnit.objects.filter(project=run.project, kind="rollout_batch").order_by("-pk")
    for payload, state in recent.values_list("payload", "state")[:_RECENT]:
        target = payload["target"]
        if target["adapter_digest"]:
            loaded.add(target["model"])
        if state in (WorkUnit.State.PENDING, WorkUnit.State.SENT, WorkUnit.State.RUNNING):
            keep.add(target["model"])
        if state in (WorkUnit.State.DONE, WorkUnit.State.PENDING, WorkUnit.State.SENT):
            retired |= set(payload["retire"])
    old = loaded - keep - retired
    if not old:
        return ()
    old -= set(ModelVersion.objects.filter(adapter_name__in=old).values_list("adapter_name", flat=True))
    goes_on = TrainingRun.objects.filter(
        adapter_name__in=old, state__in=[TrainingRun.State.RUNNING, TrainingRun.State.PAUSED]
    )
    return tuple(sorted(old - set(goes_on.values_list("adapter_name", flat=True))))
