"""Middle of a turn: train on the failures, and measure on cases that were held out."""

from typing import Any

from apps.loop.turn import plan
from apps.loop.turn.context import Turn, TurnFailed

LOOK_S = 1.0
ENDED = ("done", "failed", "cancelled")


def train(turn: Turn) -> bool:
    """One GRPO run on the failures; its last segment registers a version."""
    body = {
        "name": f"turn {turn.row.pk}",
        "dataset_id": turn.state["dataset"],
        "parent_version_id": turn.state["base"]["id"],
        "config": plan.TRAIN,
        "steps": plan.STEPS,
        "seed": turn.seed,
    }
    run_id = turn.made_once(
        "training_run",
        "/training/runs",
        body,
        lambda row: (row["name"], row["dataset_id"]) == (body["name"], body["dataset_id"]),
    )
    run = turn.api.get(f"/training/runs/{run_id}")
    if run["state"] == "draft":  # it was made, and then the server went away
        run = turn.api.post(f"/training/runs/{run_id}/start")
    tenth = 10 * run["steps_done"] // run["steps"]
    if tenth and run["pass_rate"] is not None:
        rate = f"{100 * run['pass_rate']:.0f} %"
        turn.say_once(
            f"train{tenth}", f"Step {run['steps_done']} of {run['steps']}, {rate} of its samples pass."
        )
    if run["state"] == "paused":
        turn.say_once(f"paused{run['steps_done']}", f"Training is paused. {run['error']}".strip())
    if run["state"] not in ENDED:
        turn.pause(LOOK_S)
        return False
    if run["state"] != "done" or run["version_id"] is None:
        raise TurnFailed(f"Training ended as {run['state']}. {run['error']}".strip())
    version = turn.api.get(f"/versions/{run['version_id']}")
    turn.state["trained"] = {"id": version["id"], "number": version["number"]}
    turn.say(f"Version {version['number']} registered.")
    return True


def evaluate(turn: Turn) -> bool:
    """Base and new on the same held-out cases, compared pair by pair."""
    base = start_baseline(turn)
    new = start_eval(turn, "trained_run", turn.state["suite_version"], turn.state["trained"]["id"])
    states = [turn.api.get(f"/runs/{run}")["state"] for run in (base, new)]
    if any(state not in ENDED for state in states):
        turn.pause(LOOK_S)
        return False
    if states != ["done", "done"]:
        raise TurnFailed("An evaluation did not finish; see Evals.")
    found = turn.api.get(f"/runs/{new}/compare/{base}")
    turn.state["comparison"] = found
    turn.say(f"Base {found['base']['text']}; new {found['new']['text']}.")
    turn.say(found["sentence"])
    return True


def start_baseline(turn: Turn) -> int:
    return start_eval(turn, "base_run", turn.state["suite_version"], turn.state["base"]["id"])


def start_eval(turn: Turn, key: str, suite_version: int, version: int) -> int:
    """Id of the run of ``version`` on ``suite_version``, which belongs to this turn alone."""
    body: dict[str, Any] = {
        "suite_version_id": suite_version,
        "version_id": version,
        "edition": "standard",
        "seed": turn.seed,
    }
    return turn.made_once(
        key,
        "/runs",
        body,
        lambda row: (row["suite_version_id"], row["version_id"]) == (suite_version, version),
    )
