"""HumanEval and sets in its shape: a function to complete, and tests as ``check(candidate)``.

The tests run any Python around their calls, so they stay a program: ``repo_tests`` runs it in one
sandbox and the answer in another, and each call crosses as typed JSON. The answer never shares a
process with its tests, and what the tests expect never enters the answer's sandbox.
"""

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from apps.evals.formats.base import Imported, Options, Upload, family_of, unused
from apps.evals.formats.rows import rows_of

COLUMNS = frozenset({"task_id", "prompt", "test", "entry_point"})
_FILE, _TESTS = "solution.py", "tests/test_solution.py"
_ASK = (
    "Complete this Python function. Answer with the whole file, imports and helper functions included, in "
    "one code block.\n\n```python\n{prompt}```"
)


def read(uploads: Sequence[Upload], options: Options) -> Imported:
    (upload, *others) = uploads
    found, taken = Imported(), set[str]()
    for other in others:
        found.leave_out(other.name, "file", "this format is one file; send it on its own")
    for line, value in rows_of(upload):
        _case(found, line, value, family_of(upload.name, options), taken)
    found.note("Each answer is a whole file. Its tests run apart from it, in a sandbox of their own.")
    return found


def _case(found: Imported, line: int, value: Mapping[str, Any], family: str, taken: set[str]) -> None:
    where, name = f"line {line}", str(value.get("task_id", "case"))
    texts = {key: value.get(key) for key in COLUMNS}
    if not all(isinstance(text, str) and text.strip() for text in texts.values()):
        found.leave_out(where, name, f"it needs {', '.join(sorted(COLUMNS))} as text")
        return
    prompt, test, entry = value["prompt"], value["test"], value["entry_point"]
    try:
        helpers = _defined(prompt)
        asked = _names(test)
        checks = "check" in _defined(test)
    except SyntaxError:
        found.leave_out(where, name, "its prompt or its tests are not Python")
        return
    if not checks or not entry.isidentifier():
        found.leave_out(where, name, "its tests define no check(candidate)")
        return
    imported = sorted({entry} | (helpers & asked))
    program = (
        f"from solution import {', '.join(imported)}\n\n{test}\n\n\ndef test_check():\n    check({entry})\n"
    )
    found.add(
        where,
        line,
        id=unused(name, taken),
        family=family,
        messages=[
            {
                "role": "user",
                "content": _ASK.format(prompt=prompt if prompt.endswith("\n") else f"{prompt}\n"),
            }
        ],
        verifier={"kind": "repo_tests", "params": {"sources": [_FILE], "path": _FILE}},
        reference={
            "files": {_FILE: prompt + "    raise NotImplementedError\n"},
            "tests": {_TESTS: program},
            "ids": [f"{_TESTS}::test_check"],
        },
        source=name,
        max_tokens=1024,
        tags={"entry_point": entry},
    )


def _defined(source: str) -> set[str]:
    """Functions and classes at the top of ``source``."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.parse(source).body if isinstance(node, kinds)}


def _names(source: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
