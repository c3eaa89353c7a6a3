"""Celery tasks of versions: thin doors to the services, harmless to run twice."""

from celery import shared_task

from apps.versions import services


@shared_task(name="versions.releases_tick")
def releases_tick() -> None:
    services.releases_tick()


@shared_task(name="versions.engines_reconcile")
def engines_reconcile() -> None:
    services.engines_reconcile()
