"""``code_complete``: one function of a small package is missing; the answer is its module, whole.

Judged by hidden tests over the package, with every other file as it was.
"""

import ast
import random
from collections.abc import Mapping, Sequence

from domain.contracts.tasks import HiddenCheck, VerifierSpec
from domain.python_source import syntax_tree
from packs.coding.draft import Draft, NoTask
from packs.coding.repositories import REPOSITORIES, Repository
from packs.coding.repositories.repository import Loaded
from packs.coding.suites import Case, cases, hidden_suite, noticed

HIDDEN = "tests/test_hidden.py"
_ROUNDS = 20


def draft(rng: random.Random) -> Draft:
    for _ in range(_ROUNDS):
        name = rng.choice(tuple(REPOSITORIES))
        repository = REPOSITORIES[name](rng)
        path, wanted = rng.choice(_functions(repository.files))
        files = {**repository.files, path: without(repository.files[path], wanted)}
        pool, stub = cases(repository, rng, 8), Loaded(files)
        telling = [case for case in pool if not case.error and noticed(case, stub)]
        rest = [case for case in pool if case not in telling]
        if len(telling) >= 8:
            break
    else:
        raise NoTask("no function is needed by enough calls")
    rng.shuffle(telling)
    shown, judged, more = telling[:2], [*telling[2:6], *rest[::6]], [*telling[6:], *rest[3::8]]
    verifier = VerifierSpec(kind="repo_tests", params={"sources": [path], "path": path})
    return Draft(
        prompt=_prompt(repository, files, path, wanted, shown),
        verifier=verifier,
        reference=_reference(files, judged),
        gold=repository.files[path],
        bad=_bad(repository, files, path, wanted, judged),
        origin=f"{name}-{wanted}",
        hidden=HiddenCheck(verifier=verifier, reference=_reference(files, more)),
        max_tokens=900,
    )


def without(source: str, name: str) -> str:
    """``source`` with the body of one function gone, its docstring kept."""
    function = next(
        node for node in syntax_tree(source).body if isinstance(node, ast.FunctionDef) and node.name == name
    )
    lines = source.splitlines()
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return "\n".join(
        [*lines[: body[0].lineno - 1], "    raise NotImplementedError", *lines[function.end_lineno :], ""]
    )


def package_text(files: Mapping[str, str]) -> str:
    """All modules that say something, each under its path."""
    parts = [f"# {path}\n{text}" for path, text in files.items() if not path.endswith("__init__.py")]
    return "\n".join(parts)


def _prompt(
    repository: Repository, files: Mapping[str, str], path: str, wanted: str, shown: Sequence[Case]
) -> str:
    examples = "\n".join(f"{case.expression} == {case.expected!r}" for case in shown)
    return (
        f"The package {repository.package}: {repository.about}.\n\n{package_text(files)}\n"
        f"Write the function {wanted} in {path}. For example:\n\n{examples}\n\n"
        f"Answer with the whole file {path} and nothing else."
    )


def _functions(files: Mapping[str, str]) -> list[tuple[str, str]]:
    """Functions of more than one statement, or with a docstring that says the rule."""
    return [
        (path, node.name)
        for path, source in files.items()
        for node in syntax_tree(source).body
        if isinstance(node, ast.FunctionDef) and len(node.body) > 1
    ]


def _reference(files: Mapping[str, str], picked: Sequence[Case]) -> dict[str, object]:
    text, names = hidden_suite(picked)
    broken = Loaded(files)
    failing = [name for name, case in zip(names, picked, strict=True) if noticed(case, broken)]
    return {
        "files": dict(files),
        "tests": {HIDDEN: text},
        "ids": [f"{HIDDEN}::{name}" for name in names],
        "failing": [f"{HIDDEN}::{name}" for name in failing],
    }


def _bad(
    repository: Repository, files: Mapping[str, str], path: str, wanted: str, judged: Sequence[Case]
) -> dict[str, str]:
    right = repository.files[path]
    bad = {
        "unchanged": files[path],
        "prose": f"The function {wanted} is written as its docstring says.",
        "nothing_returned": files[path].replace("    raise NotImplementedError", "    return None"),
        "exits": f"import sys\n\nsys.exit(0)\n{right}",
    }
    for bug in repository.bugs:
        if bug.path != path:
            continue
        source = right.replace(bug.old, bug.new, 1)
        loaded = Loaded({**files, path: source})
        if any(noticed(case, loaded) for case in judged):
            bad["a_bug"] = source
    return bad
