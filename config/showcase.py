"""Data for the pictures of ``make screenshots``: made by real runs over the REST API, on the pocket engine
or on an endpoint of ``showcase_endpoints``. Every figure in a picture was measured on what its page names.

``showcase_make`` names the pages that no link leads to, or whose telling row is not the first one, for
``docs/make_screenshots.py``.
"""

import json
from collections.abc import Callable
from typing import NamedTuple

import httpx

from clients.flywheel import ApiError, Client
from config import showcase_texts as texts
from config.showcase_calls import (
    WAIT_S,
    Json,
    cases_of,
    decision_wait,
    is_over,
    result_id,
    run_start,
    runs_wait,
    suite_from_packs,
    tasks_of,
)
from config.showcase_endpoints import JUDGES, LIVE, READER, Endpoints

_PACK_FAMILIES = ["order_status", "refund_request", "ticket_routing", "chart_value", "screen_table"]
_CHECKED = ["balance_check", "ratio", "bank_statement", "minutes_label", "chart_value", "order_status"]
_CALM_ROUNDS = 3


class Turn(NamedTuple):
    """What the demo turn left: ids of its versions, and of the family's verifier."""

    base: int
    trained: int
    damaged: int
    adapter: str  # names of models on the engine
    bare: str
    verifier: int


class Made(NamedTuple):
    """``pages`` as ``name=path``; ``problems`` name the parts that could not be made, and why."""

    pages: list[str]
    problems: list[str]


def showcase_make(client: Client, key: str, engine: str) -> Made:
    """Make all of it; some minutes on two cores. ``engine`` is the standard engine's address.

    A part that fails does not keep the others from their pictures.
    """
    turn = _turn(client)
    if turn is None:
        return Made([], ["The turn's release was not promoted: there are no two versions to show."])
    made = Made([], [])
    with Endpoints(engine) as endpoints:
        endpoints.behind = turn.adapter
        ids = {name: _endpoint(client, endpoints, name) for name in (LIVE, READER, *JUDGES)}
        watched = client.post("/probes", {"deployment_id": ids[LIVE]})["id"]
        client.post("/packs/checks", {"families": _CHECKED, "sample": 3})
        parts: dict[str, Callable[[], list[str]]] = {
            "judges": lambda: _judges(client),
            "changes of a suite": lambda: _suite_changes(client),
            "import": lambda: _import(client, key),
            "agents and pictures": lambda: _reader(client, endpoints, ids[READER]),
            "long context": lambda: _maps(client, endpoints, turn, ids[READER]),
            "versions and gates": lambda: _versions(client, turn, ids[LIVE]),
            "verifier": lambda: _verifier(client, turn),
            "probe": lambda: _probe(client, endpoints, watched, turn),
            "packs": lambda: _packs(client),
        }
        for name, part in parts.items():
            try:
                made.pages.extend(part())
            except (ApiError, httpx.HTTPError, TimeoutError, LookupError, StopIteration) as error:
                made.problems.append(f"{name}: {type(error).__name__}: {error}")
    return made


def _turn(client: Client) -> Turn | None:
    """None where the turn was not made, or did not end with a release."""
    released = next((row for row in client.get("/releases") if row["state"] == "promoted"), None)
    if released is None:
        return None
    rows = {row["id"]: row for row in client.get("/versions")}
    damaged = next((row["id"] for row in rows.values() if row["adapter_name"].endswith("-damaged")), 0)
    family = next(row for row in client.get("/families") if row["name"] == "invoice_fields")
    base, trained = released["control_id"], released["candidate_id"]
    bare = rows[base]["adapter_name"] or rows[base]["base"]
    return Turn(base, trained, damaged, rows[trained]["adapter_name"], bare, family["verifier"])


def _endpoint(client: Client, endpoints: Endpoints, name: str) -> int:
    """Prices are examples: a cost is what the counted tokens would be worth at them."""
    body: Json = {"name": name, "base_url": endpoints.url, "model": name, "api_key": "none"}
    if name != READER:
        body |= {"input_usd_per_mtok": "0.10", "output_usd_per_mtok": "0.40"}
    return int(client.post("/deployments", body)["id"])


# judges ------------------------------------------------------------------------------------------


def _judges(client: Client) -> list[str]:
    """One judge that agrees with people, one that goes by length and does not."""
    client.post("/gold-answers", texts.gold_answers())
    pages = []
    for name, models in (("Names the fact", JUDGES[:1]), ("Long enough", JUDGES[1:])):
        params = {"criteria": texts.CRITERIA, "models": list(models), "prompts": ["rubric", "defects"]}
        judge = client.post("/judges", {"name": name, "kind": "judge", "params": params})["id"]
        made = client.post(f"/judges/{judge}/calibrations", {"limit": 40})
        done = client.wait(f"/calibrations/{made['id']}", is_over, timeout_s=WAIT_S, every_s=0.3)
        at = f"/evals/judges/{judge}/"
        mark = "-doubtful" if done["doubts"] else ""
        pages += [
            f"evals-judges-one{mark}={at}",
            f"evals-judges-one-calibrations-one{mark}={at}calibrations/{made['number']}/",
        ]
    return [*pages, f"evals-judges-one-revise={at}revise/"]


# suites ------------------------------------------------------------------------------------------


def _suite_changes(client: Client) -> list[str]:
    about = {"name": "Shop questions", "description": "What customers ask most."}
    suite = client.post("/suites", about)["id"]
    for second, note in ((False, "First cases"), (True, "New terms for returns")):
        client.post(f"/suites/{suite}/versions", {"tasks": texts.talk_tasks(second=second), "note": note})
    return [f"evals-suites-one-changes=/evals/suites/{suite}/changes/?old=1&new=2"]


def _import(client: Client, key: str) -> list[str]:
    """A table with rows that cannot be taken, as its preview shows them."""
    with httpx.Client(base_url=client.base_url, timeout=60.0) as http:
        sent = http.post(
            "/api/v1/suites/imports",
            headers={"Authorization": f"Bearer {key}"},
            data={"name": "Shop catalogue", "options": json.dumps({})},
            files=[("files", ("catalogue.csv", texts.CATALOGUE.encode(), "text/csv"))],
        )
    sent.raise_for_status()
    number = sent.json()["id"]
    client.wait(f"/suites/imports/{number}", lambda row: row["state"] != "reading", timeout_s=WAIT_S)
    return [f"evals-suites-imports-one=/evals/suites/imports/{number}/"]


def _reader(client: Client, endpoints: Endpoints, reader: int) -> list[str]:
    """Agents with tools, and pictures: a suite drawn from packs."""
    version = suite_from_packs(client, "Support and pictures", _PACK_FAMILIES, 6)
    endpoints.learn(tasks_of(client, version))
    run = run_start(client, version, deployment_id=reader)
    runs_wait(client, [run])
    turns = result_id(client, run, family="order_status", state="passed")
    lost = result_id(client, run, family="refund_request", state="failed")
    picture = result_id(client, run, family="chart_value", state="passed")
    case = next(row["id"] for row in cases_of(client, version) if row["family"] == "chart_value")
    at, suite = f"/evals/runs/{run}/results", f"/evals/suites/{version['suite_id']}/v{version['number']}/"
    return [
        f"evals-runs-one-families=/evals/runs/{run}/",
        f"evals-runs-one-results-one-turns={at}/{turns}/",
        f"evals-runs-one-results-one-turns-failed={at}/{lost or turns}/",
        f"evals-runs-one-results-one-picture={at}/{picture}/",
        f"evals-suites-one-one-picture={suite}?case={case}",
    ]


def _maps(client: Client, endpoints: Endpoints, turn: Turn, reader: int) -> list[str]:
    version = client.post(
        "/long-context-suites",
        {"name": "Far back", "version_id": turn.trained, "kinds": ["retrieval", "multi_hop"], "per_cell": 3},
    )
    endpoints.learn(tasks_of(client, version))
    runs = [
        run_start(client, version, deployment_id=reader),
        run_start(client, version, version_id=turn.trained),
    ]
    runs_wait(client, runs)
    return [f"evals-runs-one-map=/evals/runs/{runs[0]}/map/"]


# versions, dashboards, gates -----------------------------------------------------------------------


def _versions(client: Client, turn: Turn, live: int) -> list[str]:
    """Three versions and an endpoint on one suite, and what its gate says: undecided, passed and failed."""
    version = suite_from_packs(client, "Invoices and sums", ["invoice_fields", "invoice_arithmetic"], 40)
    suite, gate = version["suite_id"], f"/suites/{version['suite_id']}/gate"
    base, new = (run_start(client, version, version_id=row) for row in (turn.base, turn.trained))
    runs_wait(client, [base, new])
    rate = client.get(f"/runs/{new}")["score"]["pass_rate"]
    client.post(gate, {"rules": _rules(rate - 0.05), "reason": "A first floor, near what was measured."})
    client.post(f"/runs/{new}/gate", {})
    again = run_start(client, version, version_id=turn.trained, samples=4, temperature=0.8)
    client.post(gate, {"rules": _rules(rate / 2, margin=0.1), "reason": "No worse than what serves."})
    runs = [run_start(client, version, deployment_id=live), again]
    runs += [run_start(client, version, version_id=turn.damaged)] if turn.damaged else []
    runs_wait(client, runs)
    for run in (runs[0], runs[-1]):
        decision_wait(client, run)
    named = {row["decision"]: row["url"] for row in client.get("/gates", suite_id=suite)}
    pages = [f"evals-gates-one-{word}={url}" for word, url in named.items()]
    chosen = "&".join(f"run={run}" for run in (new, runs[0]))
    return [
        *pages,
        f"evals-suites-one-gate=/evals/suites/{suite}/gate/",
        f"evals-suites-one-gate-edit=/evals/suites/{suite}/gate/edit/",
        f"evals-dashboard=/evals/dashboard/?suite={suite}",
        f"evals-runs-one-samples=/evals/runs/{again}/",
        f"evals-runs-one-gate=/evals/runs/{runs[0]}/gate/",
        f"evals-runs-one-compare-slices=/evals/runs/{new}/compare/?against={base}&by=family",
        f"evals-compare=/evals/compare/?base={base}&{chosen}",
    ]


def _rules(floor: float, margin: float = 0.0) -> list[Json]:
    rules: list[Json] = [
        {"kind": "coverage", "min_coverage": 0.95},
        {"kind": "error_rate", "max_rate": 0.02},
        {"kind": "floor", "min_rate": round(floor, 2)},
        {"kind": "slice_floor", "axis": "family", "value": "", "min_rate": round(floor / 4, 2)},
    ]
    if margin:
        rules.append({"kind": "non_inferiority", "margin": margin, "alpha": 0.05})
    return rules


# verifiers -----------------------------------------------------------------------------------------


def _verifier(client: Client, turn: Turn) -> list[str]:
    """How far the family's verifier agrees with people, and a trial that a worker judged."""
    agreement = client.post(f"/verifiers/{turn.verifier}/agreements")["id"]
    params = {"criteria": texts.CRITERIA, "models": [JUDGES[0]], "prompts": ["rubric"]}
    answers = [row["answer"] for row in texts.gold_answers()[:3]]
    asked = {
        "kind": "judge",
        "params": params,
        "answers": answers,
        "question": "When do you open on Sundays?",
    }
    trial = client.post("/verifier-trials", asked)["trial"]
    client.wait(f"/verifier-trials/{trial}", lambda row: row["finished"], timeout_s=WAIT_S, every_s=0.3)
    client.wait(
        f"/verifier-agreements/{agreement}",
        lambda row: bool(row["finished_at"]),
        timeout_s=WAIT_S,
        every_s=0.5,
    )
    return [
        f"training-verifiers-one=/training/verifiers/{turn.verifier}/",
        f"training-verifiers-trials-one=/training/verifiers/trials/{trial}/",
        f"training-verifiers-agreements-one=/training/verifiers/agreements/{agreement}/",
    ]


# probes --------------------------------------------------------------------------------------------


def _probe(client: Client, endpoints: Endpoints, watched: int, turn: Turn) -> list[str]:
    """Calm rounds; then another model answers under the same name, and two rounds notice."""
    _probe_idle(client, watched)
    for count in range(_CALM_ROUNDS + 2):
        endpoints.behind = turn.adapter if count < _CALM_ROUNDS else turn.bare
        _probe_once(client, watched)
    followed = client.post("/probes", {"follows": True})["id"]
    _probe_idle(client, followed)
    return [f"evals-probes-one=/evals/probes/{watched}/"]


def _probe_once(client: Client, probe: int) -> None:
    rounds = f"/probes/{probe}/rounds"
    before = len(client.get(rounds))
    client.post(f"/probes/{probe}/ask")
    client.wait(rounds, lambda rows: len(rows) > before, timeout_s=WAIT_S, every_s=0.3)
    _probe_idle(client, probe)


def _probe_idle(client: Client, probe: int) -> None:
    """Until the reference is there and no round is being asked."""

    def idle(row: Json) -> bool:
        return row["has_reference"] and row["busy_until"] is None

    client.wait(f"/probes/{probe}", idle, timeout_s=WAIT_S, every_s=0.3)


def _packs(client: Client) -> list[str]:
    client.wait("/packs", _checked, timeout_s=WAIT_S, every_s=0.5)
    return [f"training-packs-one-checked=/training/packs/{_CHECKED[-1]}/"]


def _checked(packs: list[Json]) -> bool:
    rows = [family for pack in packs for family in pack["families"]]
    return all(row["check"] for row in rows if row["name"] in _CHECKED)
