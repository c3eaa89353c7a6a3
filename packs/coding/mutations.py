"""``test_writing``: write tests that pass on a module and fail on its mutants."""

import random
from collections.abc import Sequence

from domain.contracts.tasks import HiddenCheck, VerifierSpec
from packs.coding.completions import package_text
from packs.coding.draft import Draft, NoTask
from packs.coding.repositories import REPOSITORIES, Bug, Repository
from packs.coding.repositories.repository import Loaded, planted
from packs.coding.suites import Case, cases, noticed

_ROUNDS = 40
_MUTANTS = 4


def draft(rng: random.Random) -> Draft:
    name = rng.choice(tuple(REPOSITORIES))
    repository = REPOSITORIES[name](rng)
    path = rng.choice([p for p in repository.files if sum(bug.path == p for bug in repository.bugs) >= 2])
    bugs = [bug for bug in repository.bugs if bug.path == path]
    rng.shuffle(bugs)
    bugs = bugs[:_MUTANTS]
    telling = _telling(repository, bugs, rng)
    verifier = VerifierSpec(kind="mutants")
    module = path.removesuffix(".py").replace("/", ".")
    return Draft(
        prompt=(
            f"The package {name}: {repository.about}.\n\n{package_text(repository.files)}\n"
            f"Write tests for {module}: functions named test_… with plain assert statements, importing what "
            "they need from the package. They must pass on this code and fail when one of its rules is "
            "broken, at borders too. Only values can be compared, not objects of the package. Answer with "
            "the test file only."
        ),
        verifier=verifier,
        reference=_reference(repository, bugs),
        gold=_suite([case for found in telling for case in found[:2]]),
        bad=_bad(repository, bugs, telling, module),
        origin=f"{name}-{module.rpartition('.')[2]}",
        hidden=HiddenCheck(verifier=verifier, reference=_reference(repository, bugs[:2])),
        max_tokens=900,
    )


def _telling(repository: Repository, bugs: Sequence[Bug], rng: random.Random) -> list[list[Case]]:
    """For each bug, calls that notice it."""
    broken = [Loaded(planted(repository.files, (bug,))) for bug in bugs]
    pool: list[Case] = []
    for _ in range(_ROUNDS):
        pool += cases(repository, rng, 4)
        telling = [[case for case in pool if noticed(case, loaded, plainly=True)] for loaded in broken]
        if all(telling):
            return telling
    raise NoTask(f"no calls notice the bugs {[bug.issue for bug in bugs]}")


def _reference(repository: Repository, bugs: Sequence[Bug]) -> dict[str, object]:
    mutants = [{bug.path: planted(repository.files, (bug,))[bug.path]} for bug in bugs]
    return {"program": dict(repository.files), "mutants": mutants}


def _suite(picked: Sequence[Case]) -> str:
    lines = sorted({case.check.imports for case in picked})
    for number, case in enumerate(picked, start=1):
        lines += ["", "", f"def test_{case.check.name}_{number}():"]
        if case.error:
            lines += ["    try:", f"        {case.expression}", f"    except {case.error}:", "        return"]
            lines.append(f'    raise AssertionError("no {case.error}")')
        else:
            lines += [f"    got = {case.expression}", f"    assert got == {case.expected!r}"]
    return "\n".join([*lines, ""])


def _bad(
    repository: Repository, bugs: Sequence[Bug], telling: Sequence[Sequence[Case]], module: str
) -> dict[str, str]:
    good = _suite([case for found in telling for case in found[:1]])
    bad = {
        "always_green": f"import {module}\n\n\ndef test_it():\n    assert {module}\n",
        "always_red": "def test_it():\n    assert False\n",
        "no_tests": f"import {module}\n",
        "skips": f"import unittest\n\n{good}".replace("():\n", "():\n    raise unittest.SkipTest('later')\n"),
        "leaves": f"import os\n\n{good}\n\ndef test_zz():\n    os._exit(1)\n",
        "reads_the_source": (
            f"import inspect\n\nimport {module} as it\n\n\ndef test_source():\n"
            f"    assert {bugs[0].old!r} in inspect.getsource(it)\n"
        ),
    }
    first = Loaded(planted(repository.files, (bugs[0],)))
    blind = [case for found in telling for case in found if not noticed(case, first, plainly=True)]
    if blind:
        bad["misses_one"] = _suite(blind[:6])
    return bad
