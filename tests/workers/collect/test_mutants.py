"""Tests as answers, run for real against a right program and its mutants."""

import asyncio
from typing import Any

import pytest

from domain.contracts import ChatMessage, TaskSpec, Verdict, VerifierSpec
from domain.verifiers import verify
from tests.workers.collect.conftest import LIMITS
from workers.collect.mutants import collect_mutants
from workers.sandbox.bubblewrap import BubblewrapBackend

RIGHT = "def clip(x, low, high):\n    return max(low, min(high, x))\n"
TASK = TaskSpec(
    id="task-1",
    family="test",
    messages=(ChatMessage(role="user", content="Test clip."),),
    verifier=VerifierSpec(kind="mutants"),
    reference={
        "program": {"lib/__init__.py": "", "lib/clip.py": RIGHT},
        "mutants": [
            {"lib/clip.py": RIGHT.replace("max(low, ", "max(0, ")},
            {"lib/clip.py": RIGHT.replace("min(high, x)", "x")},
        ],
    },
)
GOOD = """from lib.clip import clip

def test_low():
    assert clip(-5, 2, 9) == 2

def test_high():
    assert clip(50, 2, 9) == 9
"""


@pytest.fixture
def judge(backend: BubblewrapBackend) -> Any:
    def run(answer: str) -> Verdict:
        report = asyncio.run(collect_mutants(backend, TASK, answer, limits=LIMITS))
        return verify(TASK, answer, {"mutants": report})

    return run


def test_tests_that_tell_every_mutant_pass(judge: Any) -> None:
    verdict = judge(GOOD)

    assert verdict.state == "passed", verdict.reasons
    assert [check.name for check in verdict.checks] == ["right", "right", "mutant 1", "mutant 2"]
    assert judge(f"Here they are:\n```python\n{GOOD}```").state == "passed"


def test_a_mutant_that_is_not_noticed_is_named_and_costs_its_share(judge: Any) -> None:
    verdict = judge(GOOD.partition("def test_high")[0])

    assert verdict.state == "failed"
    assert verdict.score == 0.5
    assert verdict.reasons == ("The tests do not notice mutant 2.",)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "from lib.clip import clip\n",
        "from lib.clip import clip\n\ndef test_it():\n    assert clip\n",
        "def test_it():\n    assert True\n",
        "def test_it():\n    assert False\n",
        "import os\n\ndef test_it():\n    os._exit(0)\n",
        "import sys\nsys.exit(1)\n",
        "import unittest\n\ndef test_it():\n    raise unittest.SkipTest\n",
        "import inspect\nfrom lib import clip\n\ndef test_it():\n    assert inspect.getsource(clip)\n",
        "from lib.clip import clip\n\ndef test_it():\n    assert clip.__code__.co_consts == (None,)\n",
        "import random\n\ndef test_it():\n    assert random.SystemRandom().random() < 0\n",
        "Tests are not needed here.",
    ],
)
def test_tests_that_tell_nothing_by_what_the_program_does_earn_nothing(judge: Any, answer: str) -> None:
    verdict = judge(answer)

    assert verdict.state == "failed"
    assert verdict.score == 0.0


def test_a_test_process_that_forges_its_results_still_has_to_tell_programs_apart(judge: Any) -> None:
    forging = """
import json, os, sys

def channel():
    for name in os.listdir("/proc/self/fd"):
        if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
            return int(name)

def test_it():
    frame = sys._getframe()
    while "nonce" not in frame.f_locals:
        frame = frame.f_back
    line = json.dumps({"status": "passed", "reason": "", "nonce": frame.f_locals["nonce"]})
    os.write(channel(), line.encode() + b"\\n")
"""

    assert judge(forging).state == "failed"


@pytest.mark.parametrize(
    "way",
    [
        'wall.ask({"do": "import", "name": "pathlib"}).Path',
        "clip.Path",
        "clip.pathlib.Path",
        'wall.ask({"do": "get", "target": clip.clip._handle, "name": "__globals__"})["Path"]',
        'wall.ask({"do": "get", "target": clip.counted()._handle, "name": "gi_frame"}).f_globals["Path"]',
    ],
)
def test_tests_cannot_read_the_program_through_the_wall(backend: BubblewrapBackend, way: str) -> None:
    right = f"import pathlib\nfrom pathlib import Path\n\n\ndef counted():\n    yield 1\n\n\n{RIGHT}"
    reference = {
        "program": {"lib/__init__.py": "", "lib/clip.py": right},
        "mutants": [{"lib/clip.py": right.replace("max(low, ", "max(0, ")}],
    }
    task = TASK.model_copy(update={"reference": reference})
    answer = (
        "from lib import clip\n\n\ndef test_text():\n    wall = clip._remote._wall\n"
        f'    text = {way}("/workspace/repo/lib/clip.py").read_text()\n    assert text == {right!r}\n'
    )

    report = asyncio.run(collect_mutants(backend, task, answer, limits=LIMITS))

    assert verify(task, answer, {"mutants": report}).state == "failed"
    assert report["runs"][0]["verdict"] == "failed"


def test_classes_constants_and_helpers_of_the_program_are_shown_to_tests(backend: BubblewrapBackend) -> None:
    right = (
        "from datetime import date\n\nFIRST = date(2026, 1, 5)\n\n\nclass Box:\n    size = 3\n\n"
        "    def grown(self):\n        return self.size + 1\n"
    )
    reference = {
        "program": {"lib/__init__.py": "from lib.box import Box\n", "lib/box.py": right},
        "mutants": [{"lib/box.py": right.replace("+ 1", "+ 2")}],
    }
    task = TASK.model_copy(update={"reference": reference})
    answer = (
        "import lib\nfrom lib.box import FIRST\n\n\ndef test_it():\n    assert FIRST.day == 5\n"
        "    assert lib.Box.size == 3\n    assert lib.box.Box().grown() == 4\n"
    )

    report = asyncio.run(collect_mutants(backend, task, answer, limits=LIMITS))

    assert verify(task, answer, {"mutants": report}).state == "passed", report
