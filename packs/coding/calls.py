"""From a function's own source to a task judged by calls: examples shown, other calls judged, more
calls hidden.

Wrong answers are made from the right one: a changed rule, the examples learnt by heart, nothing given
back. The judged calls are drawn until they tell every wrong answer from the right one.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from domain import typed_json
from domain.contracts.tasks import HiddenCheck, VerifierSpec
from packs.coding.draft import Draft, NoTask
from packs.coding.own_code import differs, function

Args = tuple[Any, ...]
_SHOWN, _JUDGED, _HIDDEN = 2, 8, 8
_ROUNDS = 60


@dataclass(frozen=True)
class Shape:
    """``text`` goes on from "Write a Python function f(params) that". ``source`` and each of ``wrong``
    define it under ``name``; ``draw`` gives arguments."""

    layout: str
    name: str
    params: str
    text: str
    source: str
    wrong: tuple[str, ...]
    draw: Callable[[random.Random], Args]


def draft(shape: Shape, rng: random.Random, *, max_tokens: int = 320) -> Draft:
    right = function(shape.source, shape.name)
    shown = _draw(shape, rng, _SHOWN, [])
    sure = {
        "by_heart": _by_heart(shape, [(args, right(*args)) for args in shown]),
        "nothing_returned": _silent(shape),
    }
    rules = {f"other_rule_{number}": source for number, source in enumerate(shape.wrong, start=1)}
    for _ in range(_ROUNDS):
        judged = _draw(shape, rng, _JUDGED, shown)
        expected = [right(*args) for args in judged]
        told = {key: src for key, src in rules.items() if differs(src, shape.name, judged, expected)}
        varied = any(value != expected[0] for value in expected)  # a constant must not do
        if varied and told and all(differs(source, shape.name, judged, expected) for source in sure.values()):
            break
    else:
        raise NoTask(f"{shape.layout}: calls do not tell a wrong answer from the right one")
    examples = "\n".join(f"{shape.name}({_text(args)}) == {right(*args)!r}" for args in shown)
    hidden = _draw(shape, rng, _HIDDEN, shown + judged)
    verifier = VerifierSpec(kind="python_tests", params={"entry_point": shape.name})
    return Draft(
        prompt=(
            f"Write a Python function {shape.name}({shape.params}) that {shape.text}.\n\n"
            f"{examples}\n\nAnswer with the code only."
        ),
        verifier=verifier,
        reference=reference(right, judged),
        gold=shape.source,
        bad={**told, **sure, "prose": f"{shape.name} is left as an exercise."},
        origin=shape.layout,
        hidden=HiddenCheck(verifier=verifier, reference=reference(right, hidden)),
        max_tokens=max_tokens,
    )


def reference(right: Callable[..., Any], calls: list[Args]) -> dict[str, Any]:
    """The reference of ``python_tests`` for these calls."""
    encode = typed_json.encode
    return {
        "calls": [
            {"args": [encode(value) for value in args], "kwargs": {}, "expected": encode(right(*args))}
            for args in calls
        ]
    }


def _draw(shape: Shape, rng: random.Random, count: int, taken: list[Args]) -> list[Args]:
    """``count`` calls that are neither among ``taken`` nor twice among themselves."""
    found: list[Args] = []
    for _ in range(count * 50):
        args = shape.draw(rng)
        if args not in found and args not in taken:
            found.append(args)
        if len(found) == count:
            return found
    raise NoTask(f"{shape.layout} does not have {count} different calls")


def _by_heart(shape: Shape, pairs: list[tuple[Args, Any]]) -> str:
    """The answer of a model that fits the examples it was shown and nothing else."""
    names = [part.strip() for part in shape.params.split(",")]
    lines = [f"def {shape.name}({shape.params}):"]
    for args, result in pairs:
        test = " and ".join(f"{name} == {value!r}" for name, value in zip(names, args, strict=True))
        lines += [f"    if {test}:", f"        return {result!r}"]
    return "\n".join([*lines, "    return None"])


def _silent(shape: Shape) -> str:
    """The right program, its result never given back."""
    return shape.source.replace("    return ", "    result = ")


def _text(args: Args) -> str:
    return ", ".join(map(repr, args))
