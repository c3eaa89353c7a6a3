"""Evaluations through the REST API, typed: name a suite and a target, run, wait, judge, compare."""

import time
from collections.abc import Callable, Iterator
from typing import Any, Literal, NotRequired, TypedDict

from clients.flywheel.client import ApiError, Client

ENDED = ("done", "failed", "cancelled")
UNREACHABLE_S = 60.0
PAGE = 1000
POLL_S = 1.0

Decision = Literal["passed", "failed", "undecided"]


class Run(TypedDict):
    """The part of a run that is read here."""

    id: int
    state: str
    suite_version_id: int
    sampling: dict[str, Any]
    total: int
    error: str
    done: NotRequired[int]
    score: NotRequired[dict[str, Any]]
    suite_digest: NotRequired[str]


class RuleResult(TypedDict):
    kind: str
    words: str
    state: Decision
    sentence: str
    figures: dict[str, Any]


class Gate(TypedDict):
    id: int
    decision: Decision
    sentence: str
    rules: list[RuleResult]
    run_id: int
    baseline_id: int | None
    revision: int
    url: str


class StillRunning(Exception):
    """The time was up before the run had ended; the run goes on."""

    def __init__(self, run: int, seconds: float) -> None:
        super().__init__(f"Run {run} has not ended after {seconds:,.0f} s. It goes on.")


def named(rows: list[dict[str, Any]], wanted: str, what: str, names: tuple[str, ...]) -> dict[str, Any]:
    """The row that carries ``wanted`` under one of ``names``; LookupError says which there are."""
    for row in rows:
        if wanted in (row[name] for name in names):
            return row
    known = ", ".join(row[names[0]] for row in rows[:20]) or "none yet"
    raise LookupError(f"There is no {what} “{wanted}”. There are: {known}.")


def suite_version(client: Client, name: str, number: int | None = None) -> dict[str, Any]:
    """The newest version of a suite, or the one with ``number``, with the suite's ``slug``."""
    suite = named(client.get("/suites"), name, "suite", ("slug", "name"))
    rows = client.get(f"/suites/{suite['id']}/versions")
    if number is not None:
        rows = [row for row in rows if row["number"] == number]
    newest = max(rows, key=lambda row: row["number"], default=None)
    if newest is None:
        missing = "no cases yet" if number is None else f"no version {number}"
        raise LookupError(f"The suite “{name}” has {missing}.")
    return {**newest, "slug": suite["slug"], "suite_id": suite["id"]}


def target(client: Client, text: str) -> dict[str, Any]:
    """The body's part that names what is asked.

    ``1.1``, ``1.1:high_speed``, ``in-service``, ``in-service:high_speed``, ``endpoint:NAME``.
    """
    if text.startswith("endpoint:"):
        rows = [row for row in client.get("/deployments") if row["kind"] == "external"]
        return {"deployment_id": named(rows, text.removeprefix("endpoint:"), "endpoint", ("name",))["id"]}
    number, _, edition = text.partition(":")
    if number == "in-service":
        serving = client.get("/versions", state="in_service", limit=1)
        if not serving:
            raise LookupError("No version is in service yet.")
        version = serving[0]
    else:
        version = named(client.get("/versions", limit=500), number, "version", ("number",))
    return {"version_id": version["id"], "edition": (edition or "standard").replace("-", "_")}


def run_start(client: Client, *, suite_version_id: int, target: dict[str, Any], **sampling: Any) -> Run:
    given = {name: value for name, value in sampling.items() if value is not None}
    found: Run = client.post("/runs", {"suite_version_id": suite_version_id, **target, **given})
    return found


def run_wait(
    client: Client, run: int, *, timeout_s: float, tell: Callable[[Run], None] = lambda _: None
) -> Run:
    """The run once it has ended; raises StillRunning. A server that restarts is waited for."""
    deadline = last_answer = time.monotonic()
    deadline += timeout_s
    while True:
        try:
            found: Run = client.get(f"/runs/{run}")
            last_answer = time.monotonic()
            if found["state"] in ENDED:
                return found
            tell(found)
        except ApiError as error:
            if not error.is_passing or time.monotonic() - last_answer > UNREACHABLE_S:
                raise
        if time.monotonic() >= deadline:
            raise StillRunning(run, timeout_s)
        time.sleep(min(POLL_S, max(0.0, deadline - time.monotonic())))


def check_gate(client: Client, suite_id: int, name: str) -> None:
    """LookupError where the suite has no gate: better said before the run than after it."""
    try:
        client.get(f"/suites/{suite_id}/gate")
    except ApiError as error:
        if error.status == 404:
            raise LookupError(f"The suite “{name}” has no gate. Give it rules first.") from None
        raise


def judge(client: Client, run: int, baseline: int | None = None) -> Gate:
    """The gate's decision on an ended run, against the version in service or a named run."""
    found: Gate = client.post(f"/runs/{run}/gate", {"baseline_id": baseline})
    return found


def results(client: Client, run: int) -> Iterator[dict[str, Any]]:
    """Every result of a run, a page at a time."""
    after = 0
    while rows := client.get(f"/runs/{run}/results", after=after, limit=PAGE):
        yield from rows
        after = rows[-1]["id"]


def compare(client: Client, new: int, base: int) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/runs/{new}/compare/{base}")
    return found
