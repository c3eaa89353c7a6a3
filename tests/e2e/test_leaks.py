"""Made-up people go in by every way there is; afterwards nothing of them may be found anywhere."""

import json
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from clients.flywheel import ApiError, Client
from tests.e2e.places import BrokerWatch, checkpoint, ciphertexts, database_values, stored
from tests.e2e.planted import Crowd, Person
from tests.e2e.stack import RunningStack
from tests.e2e.upstream import echoing_model
from tests.waiting import until

pytestmark = pytest.mark.e2e

FAMILY = "invoice_fields"
WAIT_S = 900.0
SEED = 20  # of the people: the same ones every time, so that a failure can be had again
TAG = "leaktest"  # of what they send: letters, which no rule takes for a number


@dataclass
class Planting:
    """What was done, and what was found at the two moments that matter."""

    crowd: Crowd
    tag: str = TAG
    operations: dict[str, str] = field(default_factory=dict)  # way -> operation
    before: list[str] = field(default_factory=list)
    readable_before: list[str] = field(default_factory=list)
    messages_seen: int = 0
    in_broker: list[str] = field(default_factory=list)
    exports: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def planting(stack: RunningStack) -> Planting:
    return plant(stack)


def plant(stack: RunningStack) -> Planting:
    """Everything planted, anonymized, labelled, made into tasks, evaluated and exported."""
    done = Planting(Crowd(seed=SEED))
    with echoing_model() as address, stack.client() as client, BrokerWatch(stack.data) as broker:
        for model in ("echo", "broken", "cut"):
            client.post("/deployments", {"name": f"{done.tag}-{model}", "base_url": address, "model": model})
        _wait_for_models(done, stack)
        with stack.without("worker-web"), stack.without("worker-anonymize"):
            _captures(done, client)
            _traffic(done, stack, client)
            _feedback(done, client)
            _mistakes(done, stack, client)
            until(lambda: list((stack.data / "spool").glob("*")), what="the spool is written")
            done.before = _found(done.crowd, stored(stack.data))
            done.readable_before = _found(done.crowd, ciphertexts(stack.data))
        _wait_until_anonymized(done, stack)
        _late_feedback(done, client)
        _suites(done, stack, client)
        _wait_until_anonymized(done, stack)
        _labels(done, client)
        _tasks(done, stack, client)
    done.messages_seen = len(broker.seen)
    done.in_broker = _found(done.crowd, broker.seen.items())
    checkpoint(stack.data)
    return done


def test_text_that_waits_is_ciphertext_only(planting: Planting):
    assert planting.before == []


def test_what_waits_is_really_there(planting: Planting):
    """Without this the search before could be looking at nothing."""
    ways = {entry.split(": ")[1] for entry in planting.readable_before}

    assert {
        "capture messages",
        "capture answer",
        "capture correction",
        "comment",
        "gateway",
        "gateway error",
    } <= ways


def test_the_search_finds_what_is_stored(planting: Planting, stack: RunningStack):
    kept = [text for place, text in database_values(stack.data) if place == "feedback_capture.content"]

    assert any("INV-204" in text for text in kept)
    assert any("<PERSON_1>" in text for text in kept)


def test_nothing_planted_is_left_in_database_artifacts_logs_broker_or_spool(
    planting: Planting, stack: RunningStack
):
    assert _found(planting.crowd, stored(stack.data)) == []
    assert _found(planting.crowd, [("start", stack.output)]) == []


def test_nothing_planted_passed_through_the_broker(planting: Planting):
    assert planting.messages_seen > 20
    assert planting.in_broker == []


def test_ciphertext_is_gone_once_anonymized(planting: Planting, stack: RunningStack):
    """Except for exchanges that are held an hour in case feedback comes."""
    held = {way for way, operation in planting.operations.items() if _is_held(stack, operation)}
    left = [
        entry for entry in _found(planting.crowd, ciphertexts(stack.data)) if entry.split(": ")[1] not in held
    ]

    assert left == []


def test_every_capture_became_readable_and_kept_its_invoice(planting: Planting, stack: RunningStack):
    states = dict(stack.rows("SELECT state, count(*) FROM feedback_capture GROUP BY state"))

    assert set(states) == {"anonymized"}
    assert states["anonymized"] >= 8


def test_exports_hold_tasks_and_nobody(planting: Planting):
    assert {name.split()[0] for name in planting.exports} >= {"dataset", "suite"}
    assert all(text.strip() for text in planting.exports.values())
    assert _found(planting.crowd, planting.exports.items()) == []


# ways in -------------------------------------------------------------------------------------


def _captures(done: Planting, client: Client) -> None:
    person = done.crowd.person
    plain = _user("Which invoice is meant? Reply with its number. INV-204")
    tooled = person("capture tools")
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "find", "arguments": json.dumps(tooled.record())},
    }
    tool = {
        "type": "function",
        "function": {"name": "find", "description": f"Ask {tooled.name}", "parameters": {}},
    }
    items = [
        {"external_id": f"{done.tag}-1", "messages": [_user(person("capture messages").letter())]},
        {"external_id": f"{done.tag}-2", "messages": [plain], "answer": person("capture answer").letter()},
        {
            "external_id": f"{done.tag}-3", "messages": [plain], "answer": "INV-2",
            "correction": json.dumps(person("capture correction").record()),
        },
        {
            "external_id": f"{done.tag}-4", "tools": [tool], "answer": "",
            "messages": [
                {"role": "system", "content": f"You work for {tooled.name}."}, plain,
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": json.dumps(tooled.record())},
            ],
        },
        {
            "external_id": f"{done.tag}-5", "answer": "",
            "messages": [_user([{"type": "text", "text": person("capture parts").letter()}])],
        },
    ]  # fmt: skip
    results = client.post(
        "/captures", {"items": [{"failed": True, "family": FAMILY, **item} for item in items]}
    )
    assert [row["status"] for row in results["results"]] == ["created"] * len(items)
    named = person("capture ids")
    bad = [
        {"external_id": named.name, "messages": [plain]},
        {"external_id": named.card, "messages": [plain]},
        {"external_id": named.mail, "messages": [plain]},
        {"external_id": f"{done.tag}-6", "cluster": named.name, "messages": [plain]},
        {"external_id": f"{done.tag}-7", "family": named.mail, "messages": [plain]},
    ]
    results = client.post("/captures", {"items": bad})
    assert [row["status"] for row in results["results"]] == ["invalid"] * len(bad)


def _traffic(done: Planting, stack: RunningStack, client: Client) -> None:
    person = done.crowd.person
    ask = _Asking(done, client)
    ask("gateway", person("gateway").note())
    ask("gateway stream", person("gateway stream").note(), stream=True)
    ask("gateway too long", 9 * person("gateway too long").letter())
    ask("gateway error", person("gateway error").letter(), model=f"endpoint:{done.tag}-broken")
    ask("gateway cut", person("gateway cut").letter(), model=f"endpoint:{done.tag}-cut", stream=True)
    ask("gateway echo", person("gateway echo").letter(), model=f"endpoint:{done.tag}-echo")
    ask(
        "gateway echo stream",
        person("gateway echo stream").letter(),
        model=f"endpoint:{done.tag}-echo",
        stream=True,
    )
    named = person("gateway headers")
    headers = {
        "x-flywheel-session": named.mail, "x-flywheel-source": named.name, "x-flywheel-family": named.name,
        "x-flywheel-external-id": named.mail,
    }  # fmt: skip
    ask("gateway headers", "Add 12 and 30.", headers=headers, user=named.name)
    ask(
        "gateway headers",
        "Add 12 and 30.",
        headers=headers,
        user=named.name,
        model=f"endpoint:{done.tag}-broken",
    )


class _Asking:
    """Sends one request and remembers its operation, also when it fails."""

    def __init__(self, done: Planting, client: Client) -> None:
        self._done, self._client = done, client
        self._http = httpx.Client(
            base_url=client.base_url,
            timeout=240,
            headers={"Authorization": client._http.headers["authorization"]},
        )

    def __call__(self, way: str, text: str, *, headers: dict[str, str] | None = None, **body: Any) -> None:
        sent = {"model": "auto", "max_tokens": 8, "messages": [{"role": "user", "content": text}], **body}
        answer = self._http.post("/v1/chat/completions", json=sent, headers=headers or {})
        assert "x-flywheel-operation" in answer.headers, answer.text[:300]
        self._done.operations[way] = answer.headers["x-flywheel-operation"]


def _feedback(done: Planting, client: Client) -> None:
    """On what was answered and on what is not known yet; through the API and through the gateway."""
    person, of = done.crowd.person, done.operations
    items = [
        {"operation": of["gateway"], "value": False, "comment": person("comment").letter()},
        {"operation": of["gateway stream"], "value": False, "correction": person("correction").letter()},
    ]  # fmt: skip
    results = client.post("/feedback", {"items": items})["results"]
    assert [row["status"] for row in results] == ["created", "created"]
    early = person("gateway feedback")
    body = {
        "inference_id": of["gateway echo"], "metric": "correct", "value": "down", "comment": early.letter(),
        "correction": json.dumps(early.record()),
    }  # fmt: skip
    headers = {"Authorization": client._http.headers["authorization"]}
    answer = httpx.post(f"{client.base_url}/v1/feedback", json=body, headers=headers, timeout=240)
    assert answer.status_code == 202, answer.text


def _mistakes(done: Planting, stack: RunningStack, client: Client) -> None:
    """Requests that are refused must not be remembered by their text either."""
    person = done.crowd.person("mistakes")
    tries: list[tuple[str, Any]] = [
        ("/captures", {"items": [{"external_id": f"{done.tag}-8", "messages": person.letter()}]}),
        ("/captures", {"items": person.letter()}),
        ("/feedback", {"items": [{"operation": person.mail, "comment": person.letter()}]}),
        ("/feedback", {"items": [{"operation": "op_x", "metric": person.name, "value": person.letter()}]}),
        ("/queue/next", {"family": person.letter()}),
        ("/anonymization-rules/try", {"rules": {}, "text": person.letter()}),
    ]
    for path, body in tries:
        _tried(client, path, body, refusals=(400, 422))
    headers = {"Authorization": client._http.headers["authorization"]}
    for body in ({"model": person.name, "messages": [{"role": "user", "content": "x"}]}, person.letter()):
        answer = httpx.post(f"{stack.url}/v1/chat/completions", json=body, headers=headers, timeout=240)
        assert answer.status_code in (400, 404)
    asked = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1}
    for name in ("task-type", "family", "external-id", "source"):
        named = {**headers, f"x-flywheel-{name}": person.name}
        httpx.post(f"{stack.url}/v1/chat/completions", json=asked, headers=named, timeout=240)
    for query in (f"q={person.name}", f"state={person.mail}"):
        httpx.get(f"{stack.url}/api/v1/cases?{query}", headers=headers, timeout=240)
    with stack.browser() as pages:
        pages.get("/failures/", params={"q": person.name})


def _late_feedback(done: Planting, client: Client) -> None:
    """About an exchange that is anonymized already."""
    person = done.crowd.person("late feedback")
    item = {
        "operation": done.operations["gateway error"],
        "metric": "late",
        "value": -1,
        "comment": person.letter(),
    }
    assert client.post("/feedback", {"items": [item]})["results"][0]["status"] == "created"


def _suites(done: Planting, stack: RunningStack, client: Client) -> None:
    """Imported and posted cases, run against a model that repeats them, its failures captured."""
    imported, posted = done.crowd.person("suite import"), done.crowd.person("suite cases")
    lines = "\n".join(json.dumps(_task(f"case-{at}", imported)) for at in range(2))
    answer = httpx.post(
        f"{stack.url}/api/v1/suites/import",
        files={"file": ("cases.jsonl", lines.encode())}, data={"name": f"{done.tag} import"},
        headers={"Authorization": f"Bearer {stack.key}"}, timeout=240,
    )  # fmt: skip
    assert answer.status_code == 201, answer.text
    suite = client.post("/suites", {"name": f"{done.tag} cases"})
    version = client.post(f"/suites/{suite['id']}/versions", {"tasks": [_task("case-1", posted)]})
    echo = next(row for row in client.get("/deployments") if row["name"] == f"{done.tag}-echo")
    versions = [answer.json(), version]
    runs = [
        client.post("/runs", {"suite_version_id": row["id"], "deployment_id": echo["id"]}) for row in versions
    ]
    for run in runs:
        ended = client.wait(f"/runs/{run['id']}", lambda row: row["state"] != "running", timeout_s=WAIT_S)
        assert ended["score"]["failed"] == ended["total"], ended
    with stack.browser() as pages:
        for run in runs:
            token = pages.cookies["csrftoken"]
            page = pages.post(
                f"/evals/runs/{run['id']}/capture-failures/", data={"csrfmiddlewaretoken": token}
            )
            assert page.status_code == 200
        for row in versions:
            page = pages.get(f"/evals/suites/{row['suite_id']}/v{row['number']}/export/")
            assert page.status_code == 200, page.text[:300]
            done.exports[f"suite {row['suite_id']}"] = page.text


def _task(name: str, person: Person) -> dict[str, Any]:
    return {
        "id": name, "family": FAMILY, "messages": [_user(person.letter())], "max_tokens": 16,
        "verifier": {"kind": "exact"}, "reference": f"INV-999 for {person.name} <{person.mail}>",
        "source": person.mail,
    }  # fmt: skip


def _labels(done: Planting, client: Client) -> None:
    """A person types what they see in another window."""
    typed, noted = done.crowd.person("label correction"), done.crowd.person("label note")
    cases = client.get("/cases", state="new", limit=500)
    assert len(cases) >= 8
    for case in cases:
        client.post(
            f"/cases/{case['id']}/label",
            {
                "kind": "wrong_value", "severity": "major",
                "correction": f"{typed.letter()}\nINV-204", "note": noted.letter(),
            },
        )  # fmt: skip


def _tasks(done: Planting, stack: RunningStack, client: Client) -> None:
    """Cases become tasks of a family that accepts any exact answer, tasks become datasets and files."""
    family = client.post("/families", {"name": f"letters-{done.tag}", "verifier_kind": "exact"})
    cases = client.get("/cases", state="labelled", limit=500)
    tasks = [
        _tried(client, f"/cases/{case['id']}/asset", {"family": family["name"]}, refusals=(400, 409))
        for case in cases
    ]
    assert len([task for task in tasks if task]) >= 3
    for kind in ("rl", "sft", "preference"):
        for split in ("train", "held_out"):
            wanted = {"name": f"{done.tag} {kind} {split}", "kind": kind, "split": split}
            dataset = _tried(client, "/datasets", {**wanted, "families": [family["name"]]}, refusals=(400,))
            if dataset is None:  # no task fell on this side
                continue
            answer = httpx.get(
                f"{stack.url}/api/v1/datasets/{dataset['id']}/export",
                headers={"Authorization": f"Bearer {stack.key}"}, timeout=240,
            )  # fmt: skip
            done.exports[f"dataset {kind} {split}"] = answer.text


def _user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def _tried(client: Client, path: str, body: Any, *, refusals: tuple[int, ...]) -> Any:
    """The answer, or None when it was refused as expected."""
    try:
        return client.post(path, body)
    except ApiError as error:
        if error.status not in refusals:
            raise
        return None


# looking -------------------------------------------------------------------------------------


def _found(crowd: Crowd, places: Any) -> list[str]:
    return sorted({f"{place}: {hit}" for place, text in places for hit in crowd.found_in(text)})


def _is_held(stack: RunningStack, operation: str) -> bool:
    return bool(stack.value("SELECT count(*) FROM feedback_heldexchange WHERE operation = ?", operation))


def _wait_for_models(done: Planting, stack: RunningStack) -> None:
    headers = {"Authorization": f"Bearer {stack.key}"}

    def known() -> bool:
        answer = httpx.get(f"{stack.url}/v1/models", headers=headers, timeout=240)
        return answer.status_code == 200 and f"endpoint:{done.tag}-cut" in answer.text

    until(known, what="the gateway knows the endpoints", every_s=0.3)


def _wait_until_anonymized(done: Planting, stack: RunningStack) -> None:
    names = list(done.operations.values())
    known = f"SELECT count(*) FROM feedback_inference WHERE operation IN ({','.join('?' * len(names))})"

    def is_done() -> bool:
        raw = stack.value("SELECT count(*) FROM feedback_capture WHERE state = 'raw'")
        signals = stack.value(
            "SELECT count(*) FROM feedback_feedbacksignal s WHERE raw IS NOT NULL AND EXISTS "
            "(SELECT 1 FROM feedback_capture c WHERE c.operation = s.operation)"
        )
        return raw == 0 and signals == 0 and stack.value(known, *names) == len(set(names))

    until(is_done, what="everything is anonymized", timeout_s=WAIT_S, every_s=1.0)
