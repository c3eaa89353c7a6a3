"""Celery of the heavy side, configured from the environment alone; there is no Django here.

    celery -A workers.celery worker --pool solo -Q rollout,eval
    celery -A workers.celery worker --pool solo -Q train

FLYWHEEL_BROKER_URL  a Redis or RabbitMQ URL; the default ``embedded://`` is a folder
FLYWHEEL_DATA        where that folder lies (``broker`` below it), default ``var``
FLYWHEEL_ARTIFACTS   see ``artifacts.get_store``

One process runs one unit at a time and may be killed at any moment: the side that planned the unit
notices the missing heartbeat and sends a new attempt.
"""

import logging
import os
from pathlib import Path
from typing import Any

from celery import Celery
from celery.signals import setup_logging

from workers import quiet_logs


def broker_options(environ: dict[str, str] | None = None) -> dict[str, Any]:
    """Celery's broker settings for this environment."""
    found = dict(os.environ) if environ is None else environ
    url = found.get("FLYWHEEL_BROKER_URL") or "embedded://"
    if not url.startswith("embedded://"):
        return {"broker_url": url, "broker_transport_options": {"visibility_timeout": 3600}}
    folder = Path(found.get("FLYWHEEL_DATA") or "var").resolve() / "broker"
    return {
        "broker_url": "filesystem://localhost",
        "broker_transport": "workers.broker:Transport",
        "broker_transport_options": {"data_folder": str(folder), "polling_interval": 0.05},
        "worker_enable_remote_control": False,
    }


# No fixups: Celery's own would load Django wherever DJANGO_SETTINGS_MODULE happens to be set.
app = Celery("workers", include=["workers.tasks"], fixups=[])
app.conf.update(
    **broker_options(),
    accept_content=["json"],
    task_serializer="json",
    task_ignore_result=True,
    task_default_queue="eval",
    task_create_missing_queues=True,
    worker_concurrency=1,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    worker_send_task_events=False,
    task_send_sent_event=False,
    broker_connection_retry_on_startup=True,
    timezone="UTC",
)


@setup_logging.connect
def _quiet_logging(loglevel: int | str | None = None, **_: object) -> None:
    quiet_logs.install(loglevel if isinstance(loglevel, int) else logging.INFO)
