"""The command line: what it prints, what it returns."""

from typing import Any

import pytest

from clients.flywheel import cli
from clients.flywheel import turn as turns
from tests.clients.conftest import Server

VERSIONS = [
    {"id": 2, "number": "1.1", "state": "candidate", "base": "pocket", "adapter_name": "turn-1"},
    {"id": 1, "number": "1.0", "state": "in_service", "base": "pocket", "adapter_name": ""},
]
RELEASE = {
    "id": 3, "number": 3, "candidate": "1.1", "state": "running", "paused": False, "warming": False,
    "weight": 0.1, "reasons": ["No units yet."],
}  # fmt: skip


@pytest.fixture(autouse=True)
def surroundings(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYWHEEL_URL", server.url)
    monkeypatch.setenv("FLYWHEEL_API_KEY", "fw_secret")
    monkeypatch.setattr(turns, "POLL_S", 0.01)
    server.says("GET", "/versions", (200, VERSIONS))


def _turn(status: str, *lines: str, **more: Any) -> dict[str, Any]:
    rows = [{"phase": "train", "text": text, "seconds": 1.0} for text in lines]
    base = {"id": 4, "seed": 7, "status": status, "lines": rows, "error": "", "sentence": "", "report": None}
    return {**base, **more}


def test_without_a_key_it_says_where_to_get_one(monkeypatch, capsys):
    monkeypatch.delenv("FLYWHEEL_API_KEY")

    assert cli.main(["versions"]) == 2
    assert "Set FLYWHEEL_API_KEY" in capsys.readouterr().err


def test_versions_are_listed(capsys):
    assert cli.main(["versions"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "1.1      candidate    pocket       turn-1", "1.0      in_service   pocket",
    ]  # fmt: skip


def test_a_refusal_is_printed_as_its_sentence(server: Server, capsys):
    error = {"code": "unauthenticated", "message": "This API key is unknown or revoked."}
    server.says("GET", "/versions", (401, {"error": error}))

    assert cli.main(["versions"]) == 3
    assert capsys.readouterr().err == "flywheel: This API key is unknown or revoked.\n"


def test_nobody_there_is_told_in_one_line(monkeypatch, capsys):
    monkeypatch.setenv("FLYWHEEL_URL", "http://127.0.0.1:9")

    assert cli.main(["versions"]) == 3
    assert capsys.readouterr().err.startswith("flywheel: http://127.0.0.1:9 does not answer")


@pytest.mark.parametrize("arguments", [[], ["release"], ["turn", "--seed", "x"]])
def test_wrong_usage_is_exit_code_2(arguments: list[str]):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)

    assert ended.value.code == 2


def test_a_turn_is_followed_line_by_line(server: Server, capsys):
    server.says("POST", "/loop/turns", (201, _turn("running")))
    server.says(
        "GET", "/loop/turns/4",
        (200, _turn("running", "Step 4 of 40.")),
        (503, {"error": {"code": "not_ready", "message": "Starting."}}),
        (200, _turn("done", "Step 4 of 40.", "Registered.", sentence="1.1 replaced 1.0.", report={"a": 1})),
    )  # fmt: skip

    assert cli.main(["turn", "--seed", "7"]) == 0

    assert server.seen[0][2] == {"seed": 7}
    out = capsys.readouterr().out
    assert out.count("Step 4 of 40.") == 1
    assert out.endswith("1.1 replaced 1.0.\n")


@pytest.mark.parametrize(
    ("ended", "sentence"),
    [
        (_turn("failed", error="Training ended as failed."), "Training ended as failed."),
        (_turn("cancelled"), "The turn was stopped by a person."),
    ],
)
def test_a_turn_that_ended_badly_is_exit_code_1(server: Server, capsys, ended: dict, sentence: str):
    server.says("POST", "/loop/turns", (201, _turn("running")))
    server.says("GET", "/loop/turns/4", (200, ended))

    assert cli.main(["turn"]) == 1
    assert capsys.readouterr().out.endswith(sentence + "\n")


def test_a_turn_whose_server_is_gone_is_not_followed_for_ever(server: Server, capsys, monkeypatch):
    monkeypatch.setattr(turns, "UNREACHABLE_S", 0.03)
    server.says("POST", "/loop/turns", (201, _turn("running")))
    server.says("GET", "/loop/turns/4", (503, {"error": {"code": "not_ready", "message": "Starting."}}))

    assert cli.main(["turn"]) == 3
    assert capsys.readouterr().err == "flywheel: Starting.\n"


def test_a_release_is_started_by_number(server: Server, capsys):
    server.says("POST", "/releases", (201, RELEASE))

    assert cli.main(["release", "start", "1.1", "--reason", "It is better."]) == 0

    assert server.seen[-1][2] == {"version_id": 2, "reason": "It is better."}
    assert capsys.readouterr().out == "Release 3 of 1.1: running at 10 %. No units yet.\n"


def test_a_release_in_spite_of_a_gate_carries_its_reason(server: Server):
    server.says("POST", "/releases", (201, RELEASE))

    cli.main(["release", "start", "1.1", "--reason", "Better.", "--override-gates", "Legal asked"])

    assert server.seen[-1][2]["override_gates"] == "Legal asked"


def test_an_unknown_version_is_named_with_those_there_are(capsys):
    assert cli.main(["release", "start", "9.9", "--reason", "x"]) == 3
    assert capsys.readouterr().err == "flywheel: There is no version “9.9”. There are: 1.1, 1.0.\n"


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"warming": True}, 0, "warming up."),
        ({"paused": True}, 0, "paused at 10 %."),
        ({"state": "promoted"}, 0, "promoted."),
        ({"state": "rolled_back"}, 1, "rolled back."),
        ({"state": "aborted"}, 1, "aborted."),
    ],
)
def test_the_status_of_a_release_is_words_and_exit_code(
    server: Server, capsys, change: dict, code: int, words: str
):
    server.says("GET", "/releases", (200, [{**RELEASE, **change}]))

    assert cli.main(["release", "status"]) == code
    assert f"Release 3 of 1.1: {words}" in capsys.readouterr().out


def test_no_release_yet_is_said(server: Server, capsys):
    server.says("GET", "/releases", (200, []))

    assert cli.main(["release", "status"]) == 0
    assert capsys.readouterr().out == "No release yet.\n"
