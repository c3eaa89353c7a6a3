"""The one Celery task: check the message, find the function for its kind, run it."""

import importlib
import logging
import os
import socket
from typing import Any, NamedTuple

from celery import shared_task
from kombu.exceptions import OperationalError
from pydantic import ValidationError

from artifacts.store import ArtifactMissing
from domain.contracts import (
    RunEvalBatch,
    RunPackCheck,
    RunRolloutBatch,
    RunTrainSegment,
    RunVerifyBatch,
    UnitFailed,
    UnitRequest,
)
from domain.contracts.base import Contract
from workers.context import UnitRefused
from workers.runtime import UnitContext, as_report, describe, run_unit

logger = logging.getLogger(__name__)


class Kind(NamedTuple):
    """``module:function`` is imported when the first such unit comes: torch takes seconds."""

    request: type[Contract]
    module: str
    function: str


KINDS = {
    "pack_check": Kind(RunPackCheck, "workers.pack_check", "run_pack_check"),
    "eval_batch": Kind(RunEvalBatch, "workers.evals", "run_eval_batch"),
    "rollout_batch": Kind(RunRolloutBatch, "workers.rollouts", "run_rollout_batch"),
    "train_segment": Kind(RunTrainSegment, "workers.train.segment", "run_train_segment"),
    "verify_batch": Kind(RunVerifyBatch, "workers.verify", "run_verify_batch"),
    "calibrate_batch": Kind(RunVerifyBatch, "workers.verify", "run_verify_batch"),
}

# A new attempt meets the same. Everything else may be a passing fault of an engine or a disk.
PERMANENT = (ArtifactMissing, UnitRefused)


@shared_task(name="workers.run_unit")
def run_unit_task(message: dict[str, Any]) -> None:
    """Run one attempt of a unit. Running it twice is harmless: old attempts are discarded."""
    try:
        request = UnitRequest.model_validate(message)
    except ValidationError:
        _reject(message, "The worker could not read the message.")
        return
    kind = KINDS.get(request.kind)
    if kind is None:
        _reject(message, "The worker does not know this kind of unit.")
        return
    try:
        payload = kind.request.model_validate(request.payload)
    except ValidationError:
        _reject(message, "The worker could not read the unit's payload.")
        return

    def work(context: UnitContext) -> Contract:
        result: Contract = getattr(importlib.import_module(kind.module), kind.function)(payload, context)
        return result

    run_unit(request, work, send=send_report, worker=worker_name(), permanent=PERMANENT)


def send_report(report: dict[str, Any]) -> None:
    """Put a report on the web side's queue; the broker being away for a moment is waited out."""
    from workers.celery import app

    app.send_task("core.unit_report", args=[report], queue="web", ignore_result=True, argsrepr="", retry=True)


def worker_name() -> str:

    return f"{socket.gethostname()}:{os.getpid()}"


def _reject(message: object, why: str) -> None:
    """Say which unit it was, if that can be told, and nothing of what was in it."""
    unit_id, attempt = (
        message.get(field) if isinstance(message, dict) else None for field in ("unit_id", "attempt")
    )
    if not isinstance(unit_id, int) or not isinstance(attempt, int):
        logger.error("a message without a unit was rejected")
        return
    logger.error("unit %d attempt %d was rejected", unit_id, attempt)
    try:
        send_report(as_report(UnitFailed(unit_id=unit_id, attempt=attempt, error=why, retryable=False)))
    except OperationalError as error:
        logger.error("unit %d: the rejection was not sent: %s", unit_id, describe(error))
