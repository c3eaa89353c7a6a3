"""Celery of the web side: anonymization, planning, reports. It has the database.

The heavy side is ``workers.celery``; the two share the broker and nothing else.
"""

import os
from pathlib import Path

from celery import Celery
from celery.signals import setup_logging

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from django.conf import settings  # noqa: E402  (settings need the environment above)


def broker_options(url: str, data_dir: Path) -> dict[str, object]:
    """Celery's broker settings for ``url``; ``embedded://`` is the filesystem transport."""
    if not url.startswith("embedded://"):
        return {"broker_url": url, "broker_transport_options": {"visibility_timeout": 3600}}
    return {
        "broker_url": "filesystem://localhost",
        "broker_transport": "workers.broker:Transport",
        "broker_transport_options": {"data_folder": str(data_dir / "broker"), "polling_interval": 0.05},
    }


app = Celery("config")
app.conf.update(
    **broker_options(settings.BROKER_URL, settings.DATA_DIR),
    task_ignore_result=True,
    task_serializer="json",
    accept_content=["json"],
    task_default_queue="web",
    task_routes={"feedback.anonymize*": {"queue": "anonymize"}, "workers.run_unit": {"queue": "eval"}},
    worker_hijack_root_logger=False,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    timezone="UTC",
    task_create_missing_queues=True,
    worker_send_task_events=False,
)
app.autodiscover_tasks(
    packages=[
        "apps.core",
        "apps.versions",
        "apps.feedback",
        "apps.evals",
        "apps.training",
        "apps.gateway",
        "apps.loop",
    ]
)


@setup_logging.connect
def _keep_django_logging(**_: object) -> None:
    """Celery would replace the log configuration, and with it the rule that texts are never logged."""


@app.on_after_finalize.connect
def _schedule(sender: Celery, **_: object) -> None:
    from apps.core.registries import periodic_tasks

    for entry in periodic_tasks:
        sender.add_periodic_task(
            entry.every_s,
            sender.signature(entry.task),
            name=entry.task,
            expires=max(5.0, entry.every_s * 2),
            queue=entry.queue,
        )
