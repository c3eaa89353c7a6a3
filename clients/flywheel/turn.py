"""Follow a demo turn from the command line: start it, print its lines, return its report."""

import time
from typing import Any, NamedTuple

from clients.flywheel.client import ApiError, Client

POLL_S = 1.0
UNREACHABLE_S = 60.0


class Outcome(NamedTuple):
    report: dict[str, Any]
    sentence: str
    succeeded: bool


def follow_turn(client: Client, *, seed: int | None = None) -> Outcome:
    """Start a turn and follow it to its end. A server that restarts is waited for."""
    turn = client.post("/loop/turns", {"seed": seed})
    shown, last_answer = 0, time.monotonic()
    while True:
        for line in turn["lines"][shown:]:
            print(f"{line['seconds']:6.1f} s  {line['phase']:<10} {line['text']}", flush=True)
        shown = len(turn["lines"])
        if turn["status"] != "running":
            break
        time.sleep(POLL_S)
        try:
            turn = client.get(f"/loop/turns/{turn['id']}")
            last_answer = time.monotonic()
        except ApiError as error:
            if not error.is_passing or time.monotonic() - last_answer > UNREACHABLE_S:
                raise
    report = turn["report"] or {"seed": turn["seed"], "error": turn["error"]}
    sentence = turn["sentence"] or turn["error"] or "The turn was stopped by a person."
    return Outcome(report, sentence, turn["status"] == "done")
