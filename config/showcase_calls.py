"""Calls of the REST API that the parts of ``showcase`` share: suites, runs, and waiting for them."""

import time
from collections.abc import Sequence
from typing import Any

from clients.flywheel import ApiError, Client

WAIT_S = 180.0
Json = dict[str, Any]
_ENDED = ("done", "failed", "cancelled")


def suite_from_packs(client: Client, name: str, families: Sequence[str], each: int) -> Json:
    body = {"name": name, "families": list(families), "per_family": each, "seed": 7}
    suite = client.post("/pack-suites", body)["id"]
    made = client.wait(f"/suites/{suite}/versions", bool, timeout_s=WAIT_S, every_s=0.3)
    return dict(made[0])


def cases_of(client: Client, version: Json) -> list[Json]:
    path = f"/suites/{version['suite_id']}/versions/{version['number']}/cases"
    return list(client.get(path, limit=1000)["cases"])


def tasks_of(client: Client, version: Json) -> list[Json]:
    return [row["task"] for row in cases_of(client, version)]


def run_start(client: Client, version: Json, **how: Any) -> int:
    return int(client.post("/runs", {"suite_version_id": version["id"], **how})["id"])


def runs_wait(client: Client, runs: Sequence[int]) -> None:
    for run in runs:
        client.wait(f"/runs/{run}", is_over, timeout_s=WAIT_S, every_s=0.3)


def result_id(client: Client, run: int, **filters: str) -> int:
    """A result that matches, or any of the family."""
    rows = client.get(f"/runs/{run}/results", **filters)
    rows = rows or client.get(f"/runs/{run}/results", family=filters["family"])
    return int(rows[0]["id"])


def is_over(row: Json) -> bool:
    return row["state"] in _ENDED


def decision_wait(client: Client, run: int) -> None:
    """Until the gate has spoken by itself, after the run's end."""
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            client.get(f"/runs/{run}/gate")
            return
        except ApiError as error:
            if error.status != 404 or time.monotonic() > deadline:
                raise
        time.sleep(0.5)
