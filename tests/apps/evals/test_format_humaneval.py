"""HumanEval's shape: tests as a program, kept apart from the answer."""

import json

from tests.apps.evals.reading import read, reasons

PROBLEM = {
    "task_id": "HumanEval/38",
    "prompt": 'def encode(s):\n    return s[::-1]\n\n\ndef decode(s):\n    """Undo encode."""\n',
    "canonical_solution": "    return s[::-1]\n",
    "test": "def check(candidate):\n    assert candidate(encode('ab')) == 'ab'\n",
    "entry_point": "decode",
}


def test_a_problem_becomes_a_file_to_write_and_tests_that_never_share_its_process():
    (task,) = read(("HumanEval.jsonl", json.dumps(PROBLEM))).tasks

    assert task.verifier.kind == "repo_tests"
    assert task.verifier.params == {"sources": ["solution.py"], "path": "solution.py"}
    program = task.reference["tests"]["tests/test_solution.py"]
    assert program.startswith("from solution import decode, encode\n")
    assert "check(decode)" in program
    assert "encode('ab')" not in task.messages[0].content
    assert PROBLEM["canonical_solution"] not in task.reference["files"]["solution.py"].partition('"""Undo')[2]


def test_a_problem_without_runnable_tests_is_left_out():
    rows = [
        {**PROBLEM, "test": "def other(x):\n    pass\n"},
        {**PROBLEM, "task_id": "b", "prompt": "def f(:\n"},
        {**PROBLEM, "task_id": "c", "entry_point": ""},
    ]

    found = read(("HumanEval.jsonl", "\n".join(json.dumps(row) for row in rows)))

    assert not found.tasks
    assert reasons(found) == {
        "HumanEval/38": "its tests define no check(candidate)",
        "b": "its prompt or its tests are not Python",
        "c": "it needs entry_point, prompt, task_id, test as text",
    }
