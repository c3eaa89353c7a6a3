"""First half of a turn: from failing traffic to a dataset."""

from typing import Any

from apps.loop.turn import plan
from apps.loop.turn import traffic as users
from apps.loop.turn.context import Turn, TurnFailed
from apps.loop.turn.improving import start_baseline
from clients.flywheel import ApiError

LOOK_S = 1.0
_BATCH = 50


def prepare(turn: Turn) -> bool:
    """Wait for engines and for the gauntlet's word on the family's verifier, then make the suites."""
    family = next((row for row in turn.api.get("/families") if row["name"] == plan.FAMILY), None)
    if family is None or family["verifier"] is None:
        raise TurnFailed(f"The project has no family “{plan.FAMILY}” with a verifier.")
    admission = turn.api.get(f"/verifiers/{family['verifier']}")["admission"]
    if admission == "refused":
        raise TurnFailed("The gauntlet refused the family's verifier; see Training → Gauntlet.")
    engines = [row for row in turn.api.get("/deployments") if row["kind"] == "engine"]
    if admission != "admitted" or not engines or not all(row["healthy"] for row in engines):
        turn.say_once("waiting", "Waiting for the engines and for the verifier's gauntlet.")
        turn.pause(LOOK_S)
        return False
    serving = next((row for row in turn.api.get("/versions") if row["state"] == "in_service"), None)
    if serving is None:
        raise TurnFailed("No version is in service; promote one under Versions first.")
    turn.state["base"] = {"id": serving["id"], "number": serving["number"]}
    newest = turn.api.get("/captures", limit=1)
    turn.state["captures_before"] = newest[0]["id"] if newest else 0
    cases = [task.model_dump(mode="json", exclude_defaults=True) for task in plan.held_out(turn.seed)]
    turn.state["suite_version"] = _suite(turn, f"Held out, turn {turn.row.pk}", cases)
    turn.state["drill_suite"] = _suite(turn, f"Smoke, turn {turn.row.pk}", cases[: plan.DRILL_CASES])
    turn.say(f"Version {serving['number']} is in service; {len(cases)} cases are held out.")
    return True


def traffic(turn: Turn) -> bool:
    """Users ask; those who got a wrong answer send the right one."""
    state = turn.state.setdefault("traffic", {"sent": 0, "wrong": 0, "unanswered": 0})
    questions = plan.watched(turn.seed)
    chunk = questions[state["sent"] : state["sent"] + users.CHUNK]
    exchanges = users.send(turn, "traffic", chunk, state["sent"])
    state["sent"] += len(chunk)
    state["wrong"] += sum(exchange.passed is False for exchange in exchanges)
    state["unanswered"] += sum(exchange.passed is None for exchange in exchanges)
    if state["sent"] < len(questions):
        return False
    lost = f" {state['unanswered']} got no answer." if state["unanswered"] else ""
    turn.say(
        f"{state['sent']} requests through the gateway; {state['wrong']} users corrected the answer.{lost}"
    )
    if state["wrong"] < plan.FEWEST_FAILURES:
        raise TurnFailed(f"Only {state['wrong']} answers were wrong: too few failures to learn from.")
    start_baseline(turn)  # runs while the failures are worked on
    return True


def anonymize(turn: Turn) -> bool:
    """Captures are anonymized by the worker; nothing is labelled before that."""
    states = [row["state"] for row in _captures(turn)]
    if len(states) < turn.state["traffic"]["wrong"] or "raw" in states:
        turn.pause(LOOK_S)
        return False
    done, refused = states.count("anonymized"), states.count("refused")
    turn.state["anonymized"] = done
    turn.say(f"{done} failures anonymized, their ciphertext deleted; {refused} could not be.")
    return True


def label(turn: Turn) -> bool:
    """The corrections that users sent stand; a labeller names the kind of failure, case by case."""
    cases = _cases(turn)
    new = [case for case in cases if case["state"] == "new"]
    held = 0
    for case in new[:_BATCH]:
        try:
            turn.api.post(f"/cases/{case['id']}/label", {"kind": "wrong_value", "severity": "major"})
        except ApiError as error:
            if error.code != "case_leased":
                raise
            held += 1
    if new:
        if held:
            turn.say_once("case-held", "A person is working on a case of this turn; the turn waits for them.")
        if held == len(new[:_BATCH]):
            turn.pause(LOOK_S)
        return False
    if len(cases) < turn.state["anonymized"]:  # the last ones are being opened
        turn.pause(LOOK_S)
        return False
    turn.say(f"{len(cases)} cases labelled with their users' corrections.")
    return True


def assets(turn: Turn) -> bool:
    """Labelled cases become tasks with a verifier; the train split becomes a dataset."""
    refused: list[int] = turn.state.setdefault("refused_cases", [])
    cases = _cases(turn)
    due = [case for case in cases if case["state"] == "labelled" and case["id"] not in refused]
    for case in due[:_BATCH]:
        try:
            turn.api.post(f"/cases/{case['id']}/asset", {"family": plan.FAMILY})
        except ApiError as error:
            if error.status not in (400, 409):
                raise
            refused.append(case["id"])
            turn.say_once(f"asset-{error.code}", f"A case did not become a task: {error.message}")
    if due:
        return False
    made = len(cases) - len(refused)
    if made == 0:
        raise TurnFailed("None of the failures became a task; the log says why.")
    turn.state["assets"] = {"made": made, "refused": len(refused)}
    dataset = turn.api.post(
        "/datasets",
        {"name": f"turn-{turn.row.pk}", "kind": "rl", "split": "train", "families": [plan.FAMILY]},
    )
    turn.state["dataset"] = dataset["id"]
    turn.say(f"{made} tasks made, {len(refused)} refused; {dataset['count']} are in the train split.")
    return True


def _captures(turn: Turn) -> list[dict[str, Any]]:
    """Failures that this turn's users reported, and nobody else's."""
    mine, before = f"{users.session(turn, 'traffic')}-", turn.state["captures_before"]
    found = []
    for row in turn.rows("/captures"):
        if row["id"] <= before:
            break
        if row["failed"] and row["external_id"].startswith(mine):
            found.append(row)
    return found


def _cases(turn: Turn) -> list[dict[str, Any]]:
    """The cases of those failures, newest first."""
    captures = {row["id"] for row in _captures(turn)}
    return [case for case in turn.rows("/cases", family=plan.FAMILY) if case["capture"] in captures]


def _suite(turn: Turn, name: str, tasks: list[dict[str, Any]]) -> int:
    """The suite's newest version; unchanged tasks give the version that exists."""
    suite = next((row for row in turn.api.get("/suites") if row["name"] == name), None)
    suite = suite or turn.api.post("/suites", {"name": name})
    version = turn.api.post(f"/suites/{suite['id']}/versions", {"tasks": tasks, "keep_personal_data": True})
    return int(version["id"])
