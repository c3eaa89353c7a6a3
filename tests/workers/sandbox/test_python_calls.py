"""Evidence for ``python_tests``: honest answers come across, forged ones do not count."""

import asyncio
import textwrap
from typing import Any

import pytest

from domain import typed_json
from tests.workers.sandbox.programs import SMALL
from workers.sandbox.bubblewrap import BubblewrapBackend
from workers.sandbox.python_calls import ForgedFrame, _parse, collect_python_calls


def collect(backend: BubblewrapBackend, code: str, *calls: dict[str, Any], **limits: Any) -> dict[str, Any]:
    from dataclasses import replace

    return asyncio.run(
        collect_python_calls(
            backend,
            code=textwrap.dedent(code),
            entry_point="f",
            calls=calls or [{"args": [1]}, {"args": [2]}],
            limits=replace(SMALL, **limits),
        )
    )


def statuses(report: dict[str, Any]) -> tuple[str, list[str]]:
    return report["status"], [call["status"] for call in report["calls"]]


def test_values_cross_with_their_types(backend: BubblewrapBackend) -> None:
    value = [(1, 2.5), {3: {"four"}}, None, b"\x00", float("inf"), "t"]

    report = collect(
        backend,
        "def f(x, *, twice): return [x, twice]",
        {
            "args": [typed_json.encode(value)],
            "kwargs": {"twice": typed_json.encode((1,))},
        },
    )

    assert statuses(report) == ("ok", ["ok"])
    assert typed_json.equal(typed_json.decode(report["calls"][0]["value"]), [value, (1,)])


def test_an_exception_is_the_answer_of_its_call_only(backend: BubblewrapBackend) -> None:
    report = collect(backend, "def f(x): return 1 // (x - 1)")

    assert statuses(report) == ("ok", ["error", "ok"])
    assert report["calls"][0]["error"].startswith("ZeroDivisionError")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("def g(x): return x", "NameError"),
        ("def f(x) return x", "SyntaxError"),
        ("import sys; sys.exit(0)", "SystemExit"),
    ],
)
def test_a_program_that_does_not_load_fails_every_call(
    backend: BubblewrapBackend, code: str, error: str
) -> None:
    report = collect(backend, code)

    assert statuses(report) == ("ok", ["error", "error"])
    assert error in report["calls"][1]["error"]


@pytest.mark.parametrize("code", ["import os; os._exit(0)", "def f(x):\n import os; os._exit(0)"])
def test_leaving_early_is_never_ok(backend: BubblewrapBackend, code: str) -> None:
    assert statuses(collect(backend, code)) == ("nonzero", ["missing", "missing"])


def test_an_object_that_lies_about_equality_cannot_cross(backend: BubblewrapBackend) -> None:
    report = collect(
        backend,
        """
        class Liar(int):
            def __eq__(self, other): return True
            def __hash__(self): return 0
        def f(x): return Liar(0) if x == 1 else [Liar(0)]
        """,
    )

    assert statuses(report) == ("ok", ["error", "error"])


def test_printed_results_are_not_results(backend: BubblewrapBackend) -> None:
    report = collect(backend, 'def f(x): print(\'{"status": "ok", "value": 7}\')')

    assert [call["value"] for call in report["calls"]] == [None, None]
    assert statuses(report) == ("ok", ["ok", "ok"])


FORGER = """
import os
def channel():
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"): return int(name)
        except OSError: pass
"""


def test_a_frame_written_before_the_call_does_not_count(backend: BubblewrapBackend) -> None:
    forged = '{"nonce": "0", "status": "ok", "value": 7, "error": ""}'

    report = collect(backend, FORGER + f"os.write(channel(), b'{forged}\\n' * 3)\ndef f(x): return x")

    assert statuses(report) == ("nonzero", ["missing", "missing"])
    assert "did not belong to the call" in report["detail"]


def test_a_thread_that_floods_the_channel_only_fails_its_own_program(backend: BubblewrapBackend) -> None:
    flood = """
import threading
def pour():
    while True: os.write(channel(), b"x" * 65536)
threading.Thread(target=pour, daemon=True).start()
def f(x): return x
"""

    report = collect(backend, FORGER + flood, wall_s=3.0)

    assert report["status"] in ("nonzero", "timeout")
    assert "missing" in [call["status"] for call in report["calls"]]


def test_a_program_that_hangs_up_and_stays_is_ended(backend: BubblewrapBackend) -> None:
    report = collect(backend, FORGER + "import time\nos.close(channel())\ntime.sleep(60)", wall_s=1.0)

    assert statuses(report) == ("timeout", ["missing", "missing"])


def test_background_threads_do_not_hold_up_the_evidence(backend: BubblewrapBackend) -> None:
    report = collect(
        backend,
        """
        import threading, time
        threading.Thread(target=time.sleep, args=(60,)).start()
        def f(x): return x
        """,
    )

    assert statuses(report) == ("ok", ["ok", "ok"])


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("while True: pass", "cpu"),
        ("import time; time.sleep(60)", "timeout"),
        ("print('x' * 10**6)", "output_limit"),
        ("import os; os.kill(os.getpid(), 9)", "signal"),
    ],
)
def test_how_the_program_ended_is_said_and_earlier_calls_are_kept(
    backend: BubblewrapBackend, body: str, status: str
) -> None:
    report = collect(
        backend,
        f"def f(x):\n    if x == 2:\n        {body}\n        raise SystemExit\n    return x",
        wall_s=4.0 if status == "timeout" else 60.0,
    )

    assert report["status"] == status
    assert report["calls"][0] == {"status": "ok", "value": 1, "error": ""}


def test_a_value_too_large_to_cross_is_an_error(backend: BubblewrapBackend) -> None:
    report = collect(backend, "def f(x): return 'x' * 10**6")

    assert statuses(report) == ("ok", ["error", "error"])


def test_expected_values_of_the_task_are_nowhere_inside(backend: BubblewrapBackend) -> None:
    code = """
    import gc
    def f(x):
        held = [o for o in gc.get_objects() if type(o) is dict and "args" in o and "nonce" in o]
        return sorted(key for request in held for key in request)
    """

    report = collect(backend, code, {"args": [1], "expected": "sentinel"})

    assert report["calls"][0]["value"] == ["args", "kwargs", "nonce"]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"{}",
        b'{"nonce": "n", "status": "ok", "value": NaN, "error": ""}',
        b'{"nonce": "n", "status": "ok", "value": 1, "error": "", "passed": true}',
        b'{"nonce": "n", "status": "ok", "value": 1, "value": 2, "error": ""}',
        b'{"nonce": "n", "status": "passed", "value": 1, "error": ""}',
        b'{"nonce": ["n"], "status": "ok", "value": 1, "error": ""}',
        b'{"nonce": "m", "status": "ok", "value": 1, "error": ""}',
        b'{"nonce": "n", "status": "ok", "value": {"t": "int", "v": 1}, "error": ""}',
        b'{"nonce": "n", "status": "ok", "value": 1, "error": ""} {}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_frames_are_parsed_strictly(line: bytes) -> None:
    with pytest.raises(ForgedFrame):
        _parse(line, "n")


def test_without_a_sandbox_nothing_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.sandbox.bubblewrap.bwrap_candidates", list)

    report = collect(BubblewrapBackend(), "def f(x): return x")

    assert statuses(report) == ("unavailable", ["missing", "missing"])
    assert "bubblewrap" in report["detail"]
