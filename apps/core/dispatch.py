"""Sending messages: only after the transaction that decided them has committed."""

from typing import Any

from celery import Celery
from django.conf import settings
from django.db import transaction
from django.utils.module_loading import import_string


def dispatch(task: str, *args: Any, queue: str = "web") -> None:
    """Send Celery task ``task`` with JSON ``args`` to ``queue`` on commit."""
    transaction.on_commit(lambda: send_now(task, *args, queue=queue))


def send_now(task: str, *args: Any, queue: str = "web") -> None:
    # Named by the settings: Celery's "current app" is another one wherever ours was not imported yet.
    app: Celery = import_string(settings.CELERY_APP)
    app.send_task(task, args=list(args), queue=queue, ignore_result=True)
