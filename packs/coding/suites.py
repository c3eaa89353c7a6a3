"""Test files over a repository: what its own code gives, written down.

Visible tests are ordinary ``unittest`` cases that a solver runs; hidden tests are functions over the
module ``checks`` that the grader brings. Both hold calls drawn for the task, never the same ones.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from domain import typed_json
from packs.coding.repositories import Check, Repository
from packs.coding.repositories.repository import Loaded


@dataclass(frozen=True)
class Case:
    """One call and what the right repository gives for it."""

    check: Check
    expression: str
    expected: Any

    @property
    def error(self) -> str:
        """The name of the error that the call raises, or ""."""
        raised = isinstance(self.expected, tuple) and self.expected[:1] == ("raised",)
        return str(self.expected[1]) if raised else ""


def cases(repository: Repository, rng: random.Random, each: int) -> list[Case]:
    """``each`` different calls of every check."""
    right, found = Loaded(repository.files), []
    for check in repository.checks:
        drawn: list[str] = []
        for _ in range(each * 20):
            if (expression := check.draw(rng)) not in drawn:
                drawn.append(expression)
                found.append(Case(check, expression, right.value(check.imports, expression)))
            if len(drawn) == each:
                break
    return found


def noticed(case: Case, broken: Loaded, *, plainly: bool = False) -> bool:
    """Whether the call gives something else in a broken repository, as the graders compare it; or
    ``plainly``, as ``==`` does."""
    got = broken.value(case.check.imports, case.expression)
    if plainly:
        return bool(got != case.expected)
    return not typed_json.equal(got, case.expected, 1e-9, strict=True)


def visible_suite(picked: Sequence[Case]) -> str:
    """A ``unittest`` file."""
    lines = [*_imports(picked), "", "", "class Tests(unittest.TestCase):"]
    for name, case in _named(picked):
        lines.append(f"    def {name}(self):")
        if case.error:
            lines += [f"        with self.assertRaises({case.error}):", f"            {case.expression}", ""]
        else:
            lines += [
                f"        got = {case.expression}",
                f"        self.assertEqual(got, {case.expected!r})",
                "",
            ]
    return "\n".join(
        ["import unittest", "", *lines, "", 'if __name__ == "__main__":', "    unittest.main()", ""]
    )


def hidden_suite(picked: Sequence[Case]) -> tuple[str, list[str]]:
    """A file of test functions, and their names."""
    lines = ["from checks import raises, same", *_imports(picked)]
    names = []
    for name, case in _named(picked):
        names.append(name)
        lines += ["", "", f"def {name}():"]
        if case.error:
            lines += [f"    with raises({case.error}):", f"        {case.expression}"]
        else:
            lines.append(f"    same({case.expression}, {case.expected!r})")
    return "\n".join([*lines, ""]), names


def _imports(picked: Sequence[Case]) -> list[str]:
    return sorted({case.check.imports for case in picked})


def _named(picked: Sequence[Case]) -> list[tuple[str, Case]]:
    counts: dict[str, int] = {}
    named = []
    for case in picked:
        counts[case.check.name] = counts.get(case.check.name, 0) + 1
        named.append((f"test_{case.check.name}_{counts[case.check.name]}", case))
    return named
