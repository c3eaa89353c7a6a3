"""The command line against a real server, with a worker that asks a scripted endpoint."""

import json
import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from django.db import connections

from apps.core.models import Project
from apps.core.permissions import SCOPES, Actor
from apps.core.services import api_key_create
from apps.core.units import unit_report, units_pump
from apps.evals import services as evals
from apps.versions import services as versions
from artifacts import ArtifactStore
from clients.flywheel import cli
from clients.flywheel import evals as client_evals
from tests.apps.evals.conftest import make_task
from tests.endpoints import ChatEndpoint, Refusal
from tests.waiting import GUARD_S
from workers import tasks

pytestmark = pytest.mark.django_db(transaction=True)

CASES = 24


def answer(body: dict[str, Any]) -> str | Refusal:
    """Model ``good`` adds right; ``poor`` is one too high on odd numbers; ``mute`` has no answer at all."""
    number = int(body["messages"][-1]["content"].split()[2])
    model = body["model"].rpartition(":")[2]
    if model == "mute":
        return Refusal(400, "no such model", "model_missing")
    return str(number + 1 + (number % 2 if model == "poor" else 0))


@pytest.fixture
def endpoints(project: Project, actor: Actor, settings: Any) -> Iterator[None]:
    """``good``, ``poor`` and ``mute``, reached where the worker expects the gateway."""
    served = ChatEndpoint(answer)
    settings.BASE_URL = served.url
    for name in ("good", "poor", "mute"):
        versions.deployment_register_external(
            project=project, name=name, base_url="http://127.0.0.1:9", model=name, api_key="", by=actor
        )
    yield
    served.stop()


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Sends what waits, runs it as a worker does, and reports it. Set the event to hold it back."""
    sent: queue.Queue[dict[str, Any]] = queue.Queue()
    held, over = threading.Event(), threading.Event()

    def record(task: str, *args: Any, queue: str = "web") -> None:
        if task == "workers.run_unit":
            sent.put(args[0])

    def work() -> None:
        try:
            while not over.wait(0.02):
                if held.is_set():
                    continue
                units_pump()
                while not sent.empty():
                    tasks.run_unit_task(sent.get())
        finally:
            connections.close_all()

    monkeypatch.setattr("apps.core.units.send_now", record)
    monkeypatch.setattr(tasks, "send_report", lambda report: unit_report(report=report))
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield held
    over.set()
    thread.join(timeout=GUARD_S)
    assert not thread.is_alive()


@pytest.fixture
def shell(
    store: ArtifactStore,
    project: Project,
    actor: Actor,
    live_server: Any,
    endpoints: None,
    worker: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> threading.Event:
    """A suite with a gate on a served installation, and the command line's environment."""
    suite = evals.suite_create(project=project, name="Sums", by=actor)
    cases = [make_task(n, family="odd" if n % 2 else "even") for n in range(CASES)]
    evals.suite_version_create(suite=suite, tasks=cases, by=actor)
    rules = [
        {"kind": "floor", "min_rate": 0.75},
        {"kind": "no_regression", "cases": ["case-1"], "must": "pass"},
    ]
    evals.gate_revise(suite=suite, rules=rules, reason="Agreed", by=actor)
    key = api_key_create(project=project, name="ci", scopes=["read", "evals"], by=actor)
    assert "release" in SCOPES  # the key of a CI needs no more than reading and evaluating
    monkeypatch.setenv("FLYWHEEL_URL", live_server.url)
    monkeypatch.setenv("FLYWHEEL_API_KEY", key.secret)
    monkeypatch.setattr(client_evals, "POLL_S", 0.1)
    return worker


def test_a_good_model_passes_the_gate_and_a_poor_one_fails_it(
    shell: threading.Event, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    report = tmp_path / "report.xml"
    words = ["eval", "run", "sums", "--gate", "--junit", str(report), "--timeout", "600", "--target"]

    assert cli.main([*words, "endpoint:good"]) == 0
    assert "Gate passed: All 3 rules hold." in capsys.readouterr().out
    assert ElementTree.parse(report).getroot().attrib["failures"] == "0"

    assert cli.main([*words, "endpoint:poor"]) == 1
    said = capsys.readouterr().out
    assert "Gate failed: 2 of 3 rules failed." in said
    assert "case-1 failed." in said
    root = ElementTree.parse(report).getroot()
    failed = [case.attrib["name"] for case in root[0].iter("testcase") if case.find("failure") is not None]
    assert failed == [f"case-{n}" for n in range(CASES) if n % 2]
    assert "case-1 failed." in "".join(at.attrib["message"] for at in root[1].iter("failure"))


def test_an_endpoint_that_does_not_answer_leaves_the_gate_undecided(
    shell: threading.Event, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    report = tmp_path / "report.xml"
    words = ["eval", "run", "sums", "--gate", "--junit", str(report), "--target", "endpoint:mute"]

    assert cli.main([*words, "--timeout", "600"]) == 2

    assert "Gate undecided" in capsys.readouterr().out
    root = ElementTree.parse(report).getroot()
    assert len(list(root[0].iter("error"))) == CASES
    assert not list(root[0].iter("failure"))


def test_a_run_that_was_left_is_judged_later_and_compared(
    shell: threading.Event, capsys: pytest.CaptureFixture[str]
):
    shell.set()
    late = ["eval", "run", "sums", "--gate", "--target", "endpoint:good", "--timeout", "0.3"]
    assert cli.main(late) == 3
    run = capsys.readouterr().err.split("Run ")[1].split()[0]
    shell.clear()
    assert cli.main(["eval", "gate", run, "--wait", "--timeout", "600", "--format", "json"]) == 0
    first = json.loads(capsys.readouterr().out)

    poor = ["eval", "run", "sums", "--target", "endpoint:poor", "--wait", "--format", "json"]
    assert cli.main(poor) == 0
    second = json.loads(capsys.readouterr().out)
    pair = [str(first["run"]["id"]), str(second["run"]["id"])]

    assert cli.main(["eval", "compare", *pair, "--exit-code"]) == 1
    assert f"0 better, {CASES // 2} worse of {CASES} cases" in capsys.readouterr().out
    assert cli.main(["eval", "compare", *reversed(pair), "--exit-code"]) == 0
