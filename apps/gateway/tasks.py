"""Celery tasks of the gateway: thin doors to its services."""

from celery import shared_task

from apps.gateway import services


@shared_task(name="gateway.spool_ingest")
def spool_ingest() -> None:
    services.spool_ingest_tick()
