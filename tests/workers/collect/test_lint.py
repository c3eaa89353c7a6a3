"""ruff run for real, in a sandbox with the image ``lint``: no comment and no configuration silences it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from domain.contracts import ChatMessage, TaskSpec, VerifierSpec
from domain.verifiers import verify
from tests.workers.collect.conftest import LIMITS
from workers.collect.lint import _report, collect_lint
from workers.sandbox.bubblewrap import BubblewrapBackend
from workers.sandbox.protocol import Captured, ExecResult

CLEAN = "def f(x):\n    return x is None\n"
DIRTY = "import os\n\n\ndef f(x):\n    return x == None\n"


def lint(
    backend: BubblewrapBackend, source: str, select: Sequence[str] = ("E711", "F401"), **settings: Any
) -> dict[str, Any]:
    return asyncio.run(collect_lint(backend, source=source, select=select, settings=settings, limits=LIMITS))


def codes(report: dict[str, Any]) -> list[str]:
    assert report["status"] == "ok", report
    return sorted(finding["code"] for finding in report["findings"])


def test_findings_are_named_with_their_lines(backend: BubblewrapBackend) -> None:
    report = lint(backend, DIRTY)

    assert [(finding["code"], finding["row"]) for finding in report["findings"]] == [("F401", 1), ("E711", 5)]
    assert lint(backend, CLEAN) == {"status": "ok", "findings": [], "detail": ""}


def test_only_the_chosen_rules_count(backend: BubblewrapBackend) -> None:
    assert codes(lint(backend, DIRTY, ["F401"])) == ["F401"]
    assert codes(lint(backend, DIRTY, ["D103"])) == ["D103"]


def test_settings_of_rules_are_obeyed(backend: BubblewrapBackend) -> None:
    source = "def f(x):\n    if x > 1:\n        return 1\n    if x > 2:\n        return 2\n    return 3\n"

    assert codes(lint(backend, source, ["C901"], **{"lint.mccabe.max-complexity": 2})) == ["C901"]
    assert codes(lint(backend, source, ["C901"], **{"lint.mccabe.max-complexity": 3})) == []


@pytest.mark.parametrize(
    "silence",
    [
        "# ruff: noqa\n",
        "# ruff: noqa: F401, E711\n",
        "# flake8: noqa\n",
        "# ruff: disable[F401, E711]\n",
        "# type: ignore\n",
    ],
)
def test_comments_that_silence_have_no_effect_and_are_refused(
    backend: BubblewrapBackend, silence: str
) -> None:
    source = silence + "\n".join(f"{line}  # noqa" if line else line for line in DIRTY.splitlines()) + "\n"
    report = lint(backend, source)
    clean = lint(backend, silence + CLEAN)

    assert "E711" in codes(report)
    assert codes(clean) == []
    assert verify(_task(), source, {"lint": report}).state == "failed"
    assert verify(_task(), silence + CLEAN, {"lint": clean}).state == "failed"


def test_a_file_that_is_no_python_has_a_finding(backend: BubblewrapBackend) -> None:
    report = lint(backend, "def f(:\n")

    assert report["status"] == "ok"
    assert report["findings"]


def test_an_unknown_rule_is_the_host_s_trouble_and_decides_nothing(backend: BubblewrapBackend) -> None:
    report = lint(backend, CLEAN, ["ZZZ999"])

    assert report["status"] == "infra_error"
    assert verify(_task(), CLEAN, {"lint": report}).state == "unscored"


@pytest.mark.parametrize("printed", [b"", b"[{}]", b"{", b"null"])
def test_a_report_that_cannot_be_read_decides_nothing(printed: bytes) -> None:
    result = ExecResult("ok", 0, stdout=Captured(head=printed, total=len(printed)))

    assert _report(result)["status"] == "infra_error"


def _task() -> TaskSpec:
    return TaskSpec(
        id="task-1",
        family="test",
        messages=(ChatMessage(role="user", content="?"),),
        verifier=VerifierSpec(kind="lint", params={"select": ["E711", "F401"]}),
    )
