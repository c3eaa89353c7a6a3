"""From a piece of code that breaks rules, and the same piece as it should be, to a task.

The verifier is a gate: first the calls must give what they gave before, then ruff must find nothing.
Wrong answers: nothing changed, the rules silenced, the behaviour changed or gone, a part left undone.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from domain.contracts.tasks import HiddenCheck, VerifierSpec
from packs.coding.calls import Args, reference
from packs.coding.draft import Draft, NoTask
from packs.coding.own_code import differs, function

_JUDGED, _HIDDEN, _ROUNDS = 6, 6, 60


@dataclass(frozen=True)
class Piece:
    """``dirty`` breaks ``rules`` in ``planted`` places, ``clean`` does not; both behave the same.
    ``types`` are the annotations that the function must have; ``partial`` are answers that leave some of it
    undone, ``wrong`` ones that behave differently."""

    layout: str
    name: str
    dirty: str
    clean: str
    rules: tuple[str, ...]
    draw: Callable[[random.Random], Args]
    planted: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    asks: str = ""
    partial: Mapping[str, str] = field(default_factory=dict)
    wrong: Mapping[str, str] = field(default_factory=dict)


def drafted(piece: Piece, rng: random.Random, *, prompt: str = "", max_tokens: int = 420) -> Draft:
    right = function(piece.clean, piece.name)
    wrong = {"nothing_done": _emptied(piece), **piece.wrong}
    for _ in range(_ROUNDS):
        judged = _draw(piece, rng, _JUDGED)
        expected = [right(*args) for args in judged]
        told = {key: source for key, source in wrong.items() if differs(source, piece.name, judged, expected)}
        if len(told) == len(wrong) and any(value != expected[0] for value in expected):
            break
    else:
        raise NoTask(f"{piece.layout}: calls do not tell a wrong answer from the right one")
    verifier = _verifier(piece, reference(right, judged))
    hidden = _verifier(piece, reference(right, _draw(piece, rng, _HIDDEN)))
    rules = ", ".join(piece.rules)
    return Draft(
        prompt=prompt
        or (
            f"Rewrite this Python code so that ruff finds nothing for the rules {rules}"
            f"{_said(piece.settings)}. {piece.asks or 'Keep what it does.'}\n\n{piece.dirty}\n"
            "Comments that silence a rule are not allowed. Answer with the code only."
        ),
        verifier=verifier,
        reference=None,
        gold=piece.clean,
        bad={
            "unchanged": piece.dirty,
            "silenced": f"# ruff: noqa\n{piece.dirty}",
            "noqa": "\n".join(
                f"{line}  # noqa" if line.strip() else line for line in piece.dirty.splitlines()
            ),
            "switched_off": f"# ruff: disable={rules}\n# flake8: noqa\n{piece.dirty}",
            "clean_but_silencing": f"{piece.clean.rstrip()}  # type: ignore\n",
            "no_code": "pass\n",
            **told,
            **piece.partial,
        },
        origin=piece.layout,
        hidden=HiddenCheck(verifier=hidden),
        max_tokens=max_tokens,
    )


def indented(lines: Sequence[str]) -> str:
    return "".join(f"    {line}\n" if line else "\n" for line in lines)


def _verifier(piece: Piece, calls: Mapping[str, Any]) -> VerifierSpec:
    tests = {"kind": "python_tests", "params": {"entry_point": piece.name}, "reference": dict(calls)}
    lint_params: dict[str, Any] = {"select": list(piece.rules), "plain": True}
    if piece.settings:
        lint_params["settings"] = dict(piece.settings)
    if piece.types:
        lint_params["types"] = {"function": piece.name, "annotations": dict(piece.types)}
    lint = {"kind": "lint", "params": lint_params, "reference": {"findings": piece.planted}}
    return VerifierSpec(kind="gate", params={"first": tests, "then": lint})


def _draw(piece: Piece, rng: random.Random, count: int) -> list[Args]:
    found: list[Args] = []
    for _ in range(count * 50):
        if (args := piece.draw(rng)) not in found:
            found.append(args)
        if len(found) == count:
            return found
    raise NoTask(f"{piece.layout} does not have {count} different calls")


def _emptied(piece: Piece) -> str:
    """Code that no rule objects to, because it does nothing."""
    return f'def {piece.name}(*_args: object) -> None:\n    """Do nothing."""\n'


def _said(settings: Mapping[str, Any]) -> str:
    words = {
        "lint.mccabe.max-complexity": "complexity at most {}",
        "lint.pylint.max-returns": "at most {} return statements",
        "lint.pylint.max-branches": "at most {} branches",
        "lint.pylint.max-args": "at most {} arguments",
        "lint.pydocstyle.convention": "{} convention",
        "line-length": "lines of at most {} characters",
    }
    said = [words[name].format(value) for name, value in settings.items()]
    return f" ({', '.join(said)})" if said else ""
