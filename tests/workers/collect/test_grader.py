"""Grading functions run for real in a sandbox."""

import asyncio
from typing import Any

import pytest

from domain.contracts import ChatMessage, TaskSpec, Verdict, VerifierSpec
from domain.verifiers import verify
from workers.collect.grader import collect_grade
from workers.evidence import collect_evidence, sandbox_collectors
from workers.sandbox import Limits
from workers.sandbox.bubblewrap import BubblewrapBackend

LIMITS = Limits(cpu_s=2, wall_s=60.0)  # of time far more than they take: the machine may be busy
OVERLAP = """
import re

def words(text):
    return set(re.findall(r"\\w+", text.lower()))

def grade(sample, item):
    wanted = words(item["reference"])
    return len(wanted & words(sample["output_text"])) / len(wanted)
"""


def task_of(source: str, reference: Any = None, **params: Any) -> TaskSpec:
    return TaskSpec(
        id="task-1",
        family="test",
        messages=(ChatMessage(role="user", content="?"),),
        verifier=VerifierSpec(kind="grader_python", params={"source": source, **params}),
        reference=reference,
    )


def judged(backend: BubblewrapBackend, task: TaskSpec, answer: str) -> Verdict:
    report = asyncio.run(collect_grade(backend, task, answer, limits=LIMITS))
    return verify(task, answer, {"grader_python": report})


def test_a_function_grades_answers_against_the_reference(backend: BubblewrapBackend) -> None:
    task = task_of(OVERLAP, "two blue cars")

    assert judged(backend, task, "I see two blue cars.").score == 1.0
    assert judged(backend, task, "Two bikes").state == "failed"


def test_the_function_gets_item_and_parsed_answer(backend: BubblewrapBackend) -> None:
    source = "def grade(sample, item):\n    return sample['output_json']['total'] == item['total']\n"

    assert judged(backend, task_of(source, item={"total": 42}), '{"total": 42}').state == "passed"
    assert judged(backend, task_of(source, item={"total": 42}), '{"total": 43}').state == "failed"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return sample['nothing']", "KeyError: 'nothing' (line 2)"),
        ("return float('nan')", "no grade"),
        ("return 2", "outside 0 to 1"),
        ("return object()", "it returned a object, no number"),
        ("return [1] * 10 ** 9", "no number|memory|MemoryError"),
        ("raise SystemExit(0)", "SystemExit"),
        ("import os; os._exit(0)", "ended before it gave a result"),
        ("import os; os.kill(os.getpid(), 9)", "ended by a signal"),
        ("while True: pass", "time"),
        ("return grade(sample, item)", "RecursionError"),
        ("import socket; socket.create_connection(('192.0.2.1', 80), 1)", "OSError|Error"),
    ],
)
def test_a_grader_that_gives_no_grade_leaves_the_answer_unscored(
    backend: BubblewrapBackend, body: str, words: str
) -> None:
    verdict = judged(backend, task_of(f"def grade(sample, item):\n    {body}\n"), "x")

    assert verdict.state == "unscored"
    assert any(word in verdict.reasons[0] for word in words.split("|")), verdict.reasons


def test_what_a_grader_prints_is_no_result(backend: BubblewrapBackend) -> None:
    source = "def grade(sample, item):\n    print('{\"result\": 1.0}')\n    return 0.25\n"

    assert judged(backend, task_of(source), "x").score == 0.25


@pytest.mark.parametrize("answer", ["", "__import__('os')._exit(0)", "\ud800 lone", "\0", "é" * 900_000])
def test_an_answer_of_any_form_arrives_as_data(backend: BubblewrapBackend, answer: str) -> None:
    source = "def grade(sample, item):\n    return len(sample['output_text']) == item['length']\n"

    assert judged(backend, task_of(source, item={"length": len(answer)}), answer).state == "passed"


def test_a_source_that_does_not_load_says_so(backend: BubblewrapBackend) -> None:
    source = "import numpy_of_mine\ndef grade(sample, item):\n    return 1.0\n"

    assert "ModuleNotFoundError" in judged(backend, task_of(source), "x").reasons[0]


def test_the_worker_grades_a_part_of_a_composed_verifier(backend: BubblewrapBackend) -> None:
    part = {"kind": "grader_python", "params": {"source": OVERLAP}}
    task = task_of("").model_copy(
        update={"verifier": VerifierSpec(kind="not", params={"part": part}), "reference": "two blue cars"}
    )
    collectors = sandbox_collectors(backend, limits=LIMITS)

    evidence = asyncio.run(collect_evidence(task, "nothing of it", collectors))

    assert verify(task, "nothing of it", evidence).state == "passed"
