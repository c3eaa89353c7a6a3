"""Celery tasks of core: thin doors to ``units``."""

from typing import Any

from celery import shared_task

from apps.core import units, web_units


@shared_task(name="core.unit_report")
def unit_report(report: dict[str, Any]) -> None:
    if units.unit_report(report=report) and report["type"] in ("UnitFinished", "UnitFailed"):
        units.units_pump()


@shared_task(name="core.run_unit")
def run_unit(message: dict[str, Any]) -> None:
    web_units.unit_run(message=message)


@shared_task(name="core.units_pump")
def units_pump() -> None:
    units.units_pump()


@shared_task(name="core.units_reap")
def units_reap() -> None:
    units.units_reap()
