"""``flywheel eval``: what it sends, what it prints, what it returns."""

import io
import json
import sys
from typing import Any
from xml.etree import ElementTree

import pytest

from clients.flywheel import cli, evals
from tests.clients.conftest import Server
from tests.clients.test_cli import VERSIONS

SCORE = {"text": "79 % (74–84), n = 40", "coverage_text": "32 of 40 scored answers passed, coverage 100 %"}
RUN = {"id": 6, "state": "done", "score": SCORE, "error": "", "total": 40, "done": 40}
RULE = {
    "kind": "floor",
    "words": "the pass rate's lower limit is at least 70 %",
    "state": "passed",
    "sentence": "79 % (74–84), n = 40: the lower limit reaches 70 %.",
    "figures": {},
}
GATE = {
    "id": 3, "decision": "passed", "sentence": "All 2 rules hold.", "rules": [RULE], "run_id": 6,
    "baseline_id": 4, "revision": 2, "url": "/evals/gates/3/",
}  # fmt: skip


@pytest.fixture(autouse=True)
def surroundings(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYWHEEL_URL", server.url)
    monkeypatch.setenv("FLYWHEEL_API_KEY", "fw_secret")
    monkeypatch.setattr(evals, "POLL_S", 0.01)
    server.says("GET", "/versions", (200, VERSIONS))
    server.says("GET", "/suites", (200, [{"id": 5, "slug": "invoices", "name": "Invoice fields"}]))
    server.says("GET", "/suites/5/versions", (200, [{"id": 8, "number": 1}, {"id": 9, "number": 2}]))
    server.says("GET", "/suites/5/gate", (200, {"number": 2}))
    server.says("GET", "/deployments", (200, [{"id": 7, "kind": "external", "name": "frontier"}]))
    server.says("POST", "/runs", (201, {**RUN, "state": "running"}))
    server.says("GET", "/runs/6", (200, RUN))
    server.says("POST", "/runs/6/gate", (200, GATE))


def sent(server: Server, path: str) -> Any:
    return next(body for method, at, body, _ in server.seen if (method, at) == ("POST", f"/api/v1{path}"))


@pytest.mark.parametrize("name", ["invoices", "Invoice fields"])
def test_a_run_takes_the_newest_version_of_a_suite(server: Server, capsys, name: str):
    assert cli.main(["eval", "run", name, "--target", "1.1"]) == 0

    assert sent(server, "/runs") == {"suite_version_id": 9, "version_id": 2, "edition": "standard"}
    assert capsys.readouterr().out == "Run 6: 40 samples.\n"


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (["--target", "1.1:high-speed"], {"version_id": 2, "edition": "high_speed"}),
        (["--version", "1.1", "--edition", "high_speed"], {"version_id": 2, "edition": "high_speed"}),
        (["--target", "in-service"], {"version_id": 2, "edition": "standard"}),
        (["--target", "endpoint:frontier"], {"deployment_id": 7}),
    ],
)
def test_a_target_is_named(server: Server, words: list[str], body: dict):
    more = ["--suite-version", "1", "--samples", "3", "--temperature", "0.7", "--seed", "5"]

    assert cli.main(["eval", "run", "invoices", *words, *more]) == 0

    assert sent(server, "/runs") == {
        **body, "suite_version_id": 8, "samples": 3, "temperature": 0.7, "seed": 5,
    }  # fmt: skip


@pytest.mark.parametrize(("decision", "code"), [("passed", 0), ("failed", 1), ("undecided", 2), ("new", 2)])
def test_the_gate_is_the_exit_code(server: Server, capsys, decision: str, code: int):
    server.says("POST", "/runs/6/gate", (200, {**GATE, "decision": decision}))

    assert cli.main(["eval", "run", "invoices", "--target", "1.1", "--gate"]) == code

    said = capsys.readouterr().out
    assert f"Gate {decision}: All 2 rules hold." in said
    assert "  passed     the pass rate's lower limit is at least 70 %. 79 %" in said
    assert sent(server, "/runs/6/gate") == {"baseline_id": None}


@pytest.mark.parametrize(("state", "code"), [("done", 0), ("failed", 3), ("cancelled", 3)])
def test_without_a_gate_a_run_that_did_not_finish_could_not_be_run(
    server: Server, capsys, state: str, code: int
):
    server.says("GET", "/runs/6", (200, {**RUN, "state": state}))

    assert cli.main(["eval", "run", "invoices", "--target", "1.1", "--wait"]) == code
    assert f"{state}: 79 % (74–84), n = 40, 32 of 40 scored" in capsys.readouterr().out


def test_a_gate_is_judged_against_a_named_run(server: Server):
    assert cli.main(["eval", "gate", "6", "--baseline", "4"]) == 0
    assert sent(server, "/runs/6/gate") == {"baseline_id": 4}


def test_a_suite_without_a_gate_is_said_before_anything_runs(server: Server, capsys):
    server.says("GET", "/suites/5/gate", (404, {"error": {"code": "not_found", "message": "No."}}))

    assert cli.main(["eval", "run", "invoices", "--target", "1.1", "--gate"]) == 3
    assert "The suite “invoices” has no gate" in capsys.readouterr().err
    assert not [row for row in server.seen if row[:2] == ("POST", "/api/v1/runs")]


def test_a_run_that_goes_on_is_judged_only_with_wait(server: Server, capsys):
    server.says("GET", "/runs/6", (200, {**RUN, "state": "running"}))

    assert cli.main(["eval", "gate", "6"]) == 3
    assert "has not ended. Add --wait" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["eval"],
        ["eval", "run", "invoices"],
        ["eval", "run", "invoices", "--target", "1.1", "--version", "1.1"],
        ["eval", "run", "invoices", "--target", "1.1", "--samples", "x"],
        ["eval", "gate"],
        ["eval", "gate", "6", "--baseline", "best"],
        ["eval", "compare", "6"],
    ],
)
def test_wrong_usage_is_exit_code_3_not_undecided(arguments: list[str], capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)

    assert ended.value.code == 3
    assert "usage: flywheel eval" in capsys.readouterr().err


def test_without_a_key_it_could_not_be_run(monkeypatch):
    monkeypatch.delenv("FLYWHEEL_API_KEY")

    assert cli.main(["eval", "gate", "6"]) == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nope", "--target", "1.1"], "There is no suite “nope”. There are: invoices."),
        (["invoices", "--target", "9.9"], "There is no version “9.9”. There are: 1.1, 1.0."),
        (["invoices", "--target", "endpoint:x"], "There is no endpoint “x”. There are: frontier."),
        (["invoices", "--target", "1.1", "--suite-version", "7"], "“invoices” has no version 7."),
    ],
)
def test_what_does_not_exist_is_named_with_what_does(words: list[str], said: str, capsys):
    assert cli.main(["eval", "run", *words]) == 3
    assert said in capsys.readouterr().err


def test_a_refusal_of_the_server_is_its_sentence_and_exit_code_3(server: Server, capsys):
    error = {"code": "forbidden", "message": "This API key lacks the scope “evals”."}
    server.says("POST", "/runs", (403, {"error": error}))

    assert cli.main(["eval", "run", "invoices", "--target", "1.1"]) == 3
    assert "lacks the scope “evals”" in capsys.readouterr().err


def test_a_timeout_leaves_the_run_and_says_how_to_go_on(server: Server, capsys):
    server.says("GET", "/runs/6", (200, {**RUN, "state": "running"}))

    assert cli.main(["eval", "run", "invoices", "--target", "1.1", "--gate", "--timeout", "0.02"]) == 3

    said = capsys.readouterr().err
    assert "Run 6 has not ended after 0 s. It goes on." in said
    assert "Go on with: flywheel eval gate 6 --wait." in said
    assert not [row for row in server.seen if row[1].endswith("/cancel")]


def test_an_interrupt_leaves_the_run_and_says_how_to_go_on(server: Server, capsys, monkeypatch):
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    server.says("GET", "/runs/6", (200, {**RUN, "state": "running"}))
    monkeypatch.setattr(evals.time, "sleep", interrupted)

    assert cli.main(["eval", "run", "invoices", "--target", "1.1", "--gate"]) == 130

    assert "Run 6 goes on. Go on with: flywheel eval gate 6 --wait." in capsys.readouterr().err
    assert not [row for row in server.seen if row[1].endswith("/cancel")]


def test_a_server_that_restarts_is_waited_for(server: Server):
    down = (503, {"error": {"code": "not_ready", "message": "Starting."}})
    server.says("GET", "/runs/6", down, (200, {**RUN, "state": "running"}), down, (200, RUN))

    assert cli.main(["eval", "run", "invoices", "--target", "1.1", "--wait"]) == 0


def test_a_server_that_stays_away_is_not_waited_for_for_ever(server: Server, monkeypatch):
    monkeypatch.setattr(evals, "UNREACHABLE_S", 0.02)
    server.says("GET", "/runs/6", (503, {"error": {"code": "not_ready", "message": "Starting."}}))

    assert cli.main(["eval", "run", "invoices", "--target", "1.1", "--wait"]) == 3


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_drawn_on_a_terminal_only(server: Server, capsys, monkeypatch):
    going = {**RUN, "state": "running", "done": 12}
    server.says("GET", "/runs/6", (200, going), (200, RUN))
    cli.main(["eval", "run", "invoices", "--target", "1.1", "--wait"])
    assert "12 of 40" not in capsys.readouterr().err

    server.says("GET", "/runs/6", (200, going), (200, RUN))
    monkeypatch.setattr(sys, "stderr", Terminal())
    cli.main(["eval", "run", "invoices", "--target", "1.1", "--wait"])
    assert "12 of 40 samples" in sys.stderr.getvalue()  # type: ignore[attr-defined]


def test_json_is_all_that_is_printed(server: Server, capsys):
    server.says("POST", "/runs/6/gate", (200, {**GATE, "decision": "undecided"}))

    assert cli.main(["eval", "run", "invoices", "--target", "1.1", "--gate", "--format", "json"]) == 2

    found = json.loads(capsys.readouterr().out)
    assert (found["exit_code"], found["gate"]["decision"], found["run"]["id"]) == (2, "undecided", 6)


def test_the_report_holds_cases_and_rules(server: Server, tmp_path, capsys):
    row = {
        "case": "a", "family": "x", "state": "passed", "latency_ms": 10.0, "error": "", "verdict": None,
    }  # fmt: skip
    server.says("GET", "/runs/6/results", (200, [{**row, "id": 1}]), (200, []))
    server.says("GET", "/runs/6", (200, {**RUN, "total": 1}))
    report = tmp_path / "out" / "report.xml"

    words = ["eval", "run", "invoices", "--target", "1.1", "--gate", "--junit", str(report)]
    assert cli.main(words) == 0

    suites = ElementTree.parse(report).getroot()
    assert [suite.get("name") for suite in suites] == ["invoices, run 6", "gate of invoices, rules 2"]


def test_a_report_that_cannot_be_written_is_exit_code_3(server: Server, tmp_path, capsys):
    server.says("GET", "/runs/6/results", (200, []))
    (tmp_path / "file").write_text("")

    assert cli.main(["eval", "gate", "6", "--junit", str(tmp_path / "file" / "report.xml")]) == 3
    assert "flywheel: " in capsys.readouterr().err


COMPARED = {
    "sentence": "Worse by 4 points (−6 to −2).", "verdict": "worse", "n": 300, "clusters": 40, "dropped": 2,
    "flips_up": 3, "flips_down": 15,
    "left_out": {"changed": 1, "only_base": 0, "only_new": 4, "examples": []},
    "new": {"coverage_text": "200 of 300 scored answers passed, coverage 100 %"},
    "base": {"coverage_text": "212 of 300 scored answers passed, coverage 100 %"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("verdict", "flag", "code"),
    [
        ("worse", [], 0),
        ("worse", ["--exit-code"], 1),
        ("cannot_tell", ["--exit-code"], 2),
        ("better", ["--exit-code"], 0),
    ],
)
def test_two_runs_are_compared(server: Server, capsys, verdict: str, flag: list[str], code: int):
    server.says("GET", "/runs/6/compare/4", (200, {**COMPARED, "verdict": verdict}))

    assert cli.main(["eval", "compare", "4", "6", *flag]) == code
    assert "3 better, 15 worse of 300 cases, 40 sources; 7 left out." in capsys.readouterr().out


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "soon"])
def test_a_timeout_that_is_no_time_is_wrong_usage(capsys, seconds: str):
    with pytest.raises(SystemExit) as ended:
        cli.main(["eval", "run", "invoices", "--target", "1.1", "--gate", f"--timeout={seconds}"])

    assert ended.value.code == 3
    assert "seconds from 0 on" in capsys.readouterr().err


def test_what_a_case_is_called_commands_neither_a_terminal_nor_a_ci_system(server: Server, capsys):
    """Ids come with imports: escapes and a line that a runner would obey stay text of one line."""
    sentence = "case \x1b]0;owned\x07\n::stop-commands::x\r::set-env::y failed."
    server.says("POST", "/runs/6/gate", (200, {**GATE, "decision": "failed", "sentence": sentence}))

    assert cli.main(["eval", "run", "invoices", "--target", "1.1", "--gate"]) == 1

    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "\r" not in said
    assert not any(line.startswith("::") for line in said.splitlines())
