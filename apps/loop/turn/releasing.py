"""Last part of a turn: release what was trained, then prove that a bad version is rolled back."""

from typing import Any

from apps.loop.turn import plan
from apps.loop.turn import traffic as users
from apps.loop.turn.context import Turn, TurnFailed
from apps.loop.turn.damage import damaged_adapter
from apps.loop.turn.improving import ENDED, start_eval
from apps.loop.turn.report import turn_report

LOOK_S = 1.0
_LOOKS = 20  # how often the gateway is asked until it has the newest revision


def release(turn: Turn) -> bool:
    """Canary by steps while users go on asking; the gate decides."""
    trained = turn.state["trained"]
    ended = _canary(turn, "release", trained["id"], "The demo turn releases what it trained.")
    if ended is None:
        return False
    turn.say(f"Version {trained['number']}: {_words(ended)}. {' '.join(ended['reasons'])}")
    return True


def in_service(turn: Turn) -> bool:
    """Ask the gateway itself what serves, once it has the revision that the release's end made."""
    good = turn.api.get(f"/releases/{turn.state['release']}")
    expected = turn.state["trained" if good["state"] == "promoted" else "base"]["number"]
    served = _served(turn, expected)
    if served is None:
        return False
    turn.state["in_service_after_release"] = served
    turn.say(f"The gateway answers with version {served['version']}.")
    return True


def damage(turn: Turn) -> bool:
    """Register a deliberately damaged copy of the new version, and evaluate it as any other."""
    if "damaged" not in turn.state:
        trained = turn.api.get(f"/versions/{turn.state['trained']['id']}")
        digest = damaged_adapter(trained["adapter_digest"], seed=turn.seed)
        version = turn.api.post(
            "/versions",
            {
                "parent_id": trained["id"],
                "adapter_digest": digest,
                "adapter_name": f"turn-{turn.row.pk}-damaged",
                "origin": turn.row.lineage_key,  # registering it again gives the same version
                "origin_label": f"turn {turn.row.pk}",
                "notes": "A copy whose adapter was damaged on purpose: the canary must catch it.",
            },
        )
        turn.state["damaged"] = {"id": version["id"], "number": version["number"]}
        turn.say(f"Version {version['number']} is a copy with a damaged adapter.")
    run_id = start_eval(turn, "damaged_run", turn.state["drill_suite"], turn.state["damaged"]["id"])
    run = turn.api.get(f"/runs/{run_id}")
    if run["state"] not in ENDED:
        turn.pause(LOOK_S)
        return False
    turn.say(f"It passes {run['score']['text']} on a small suite; it is released all the same.")
    return True


def drill(turn: Turn) -> bool:
    """Release the damaged version: the canary must roll it back."""
    damaged = turn.state["damaged"]
    ended = _canary(turn, "drill", damaged["id"], "Drill: a damaged version must be rolled back.")
    if ended is None:
        return False
    turn.say_once("drill-ended", f"Version {damaged['number']}: {_words(ended)} {_after(ended)}.")
    if ended["state"] == "rolled_back":  # as it should be: nobody has to look at it
        turn.api.post(f"/releases/{ended['id']}/acknowledge")
    served = _served(turn, turn.state["in_service_after_release"]["version"])
    if served is None:
        return False
    turn.state["in_service"] = served
    return True


def report(turn: Turn) -> bool:
    turn.row.report = turn_report(turn)
    turn.say(turn.row.report["sentence"])
    return True


def _canary(turn: Turn, stage: str, candidate: int, reason: str) -> dict[str, Any] | None:
    """Start the release once and send it a chunk of traffic; its end, or None while it runs."""
    body = {"version_id": candidate, "plan": plan.RELEASE_PLAN, "reason": reason}
    release_id = turn.made_once(
        stage, "/releases", body, lambda row: (row["candidate_id"], row["reason"]) == (candidate, reason)
    )
    found = turn.api.get(f"/releases/{release_id}")
    if found["state"] != "running":
        return dict(found)
    if found["warming"] or found["paused"]:
        what = "is paused" if found["paused"] else "warms up: the engines load the adapter"
        turn.say_once(f"{stage}-{what}", f"The release {what}.")
        turn.pause(LOOK_S)
        return None
    turn.say_once(f"{stage}{found['step']}", f"{100 * found['weight']:.0f} % of users on the canary.")
    sent: int = turn.state.setdefault(f"{stage}_sent", 0)
    if sent >= plan.RELEASE_CAP:
        raise TurnFailed(f"The release still holds after {sent} requests. {' '.join(found['reasons'])}")
    chunk = plan.flowing(turn.seed, stage)[sent : sent + users.CHUNK]
    users.send(turn, stage, chunk, sent)
    turn.state[f"{stage}_sent"] = sent + len(chunk)
    return None


def _served(turn: Turn, expected: str) -> dict[str, str] | None:
    """What the gateway's own response names; None to be asked again while it is not ``expected``.

    It is asked a few times only: what it says in the end is taken as it is.
    """
    answer = turn.api.chat(
        [{"role": "user", "content": "Which version are you?"}], max_tokens=1, temperature=0.0
    )
    served = {name: answer.headers[f"x-flywheel-{name}"] for name in ("version", "edition")}
    looks = turn.state.get("looks", 0) + 1
    if served["version"] != expected and looks < _LOOKS:
        turn.state["looks"] = looks
        turn.pause(LOOK_S)
        return None
    turn.state["looks"] = 0
    return served


def _words(ended: dict[str, Any]) -> str:
    return str(ended["state"]).replace("_", " ")


def _after(ended: dict[str, Any]) -> str:
    units = ended["units_at_end"]
    return "before any traffic" if not units else f"after {units} units"
