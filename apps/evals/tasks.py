"""Celery tasks of evals: thin doors to the services."""

from celery import shared_task

from apps.core.permissions import system_actor
from apps.evals import services
from apps.evals.models import Probe, Suite


@shared_task(name="evals.probes_tick")
def probes_tick() -> None:
    services.probes_tick()


@shared_task(name="evals.probe_round")
def probe_round(probe_id: int) -> None:
    probe = Probe.objects.select_related("project", "deployment", "version__base").filter(pk=probe_id).first()
    if probe is not None:
        services.probe_round(probe=probe)


@shared_task(name="evals.gates_tick")
def gates_tick() -> None:
    """Judge runs that have ended."""
    services.gates_tick()


@shared_task(name="evals.figures_tick")
def figures_tick() -> None:
    """Runs from before results were added up get their sums, a few at a time."""
    services.runs_refigure_missing()


@shared_task(name="evals.pack_suite_draw")
def pack_suite_draw(suite_id: int, families: list[str], per_family: int, seed: int, by: str) -> None:
    """``by`` was asked when the suite was wanted; the trail carries that name."""
    suite = Suite.objects.select_related("project").filter(pk=suite_id).first()
    if suite is not None:
        services.pack_suite_draw(
            suite=suite,
            families=families,
            per_family=per_family,
            seed=seed,
            by=system_actor(suite.project, by),
        )


@shared_task(name="evals.suite_imports_sweep")
def suite_imports_sweep() -> None:
    services.suite_imports_sweep()
