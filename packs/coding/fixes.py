"""``fix_simple``: one broken line of Python to write right; made for very small models."""

import random
from collections.abc import Callable
from typing import Any

from domain.contracts.tasks import HiddenCheck, VerifierSpec
from packs.coding.calls import reference
from packs.coding.draft import Draft
from packs.coding.own_code import differs, function

_NAMES = ("f", "g", "h", "add", "calc", "run", "size", "pick", "step", "work")


def draft(rng: random.Random) -> Draft:
    name, (param, body, draw) = rng.choice(_NAMES), rng.choice(_BODIES)(rng)
    gold = f"def {name}({param}): return {body}"
    breaks = _breaks(name, param, body)
    kind = rng.choice(tuple(breaks))
    broken = breaks[kind]
    right = function(gold, name)
    expected: list[Any] = []
    while all(value == expected[0] for value in expected):  # a constant must not do
        judged = _calls(rng, draw, 5)
        expected = [right(*args) for args in judged]
    bad = {
        "unchanged": broken,
        "nothing_returned": f"def {name}({param}): {body}",
        "renamed": gold.replace(f"def {name}(", f"def {name}_(", 1),
        "constant": f"def {name}({param}): return {expected[0]!r}",
    }
    verifier = VerifierSpec(kind="python_tests", params={"entry_point": name})
    return Draft(
        prompt=f"Fix: {broken}",
        verifier=verifier,
        reference=reference(right, judged),
        gold=gold,
        bad={key: source for key, source in bad.items() if differs(source, name, judged, expected)},
        origin=kind,
        hidden=HiddenCheck(verifier=verifier, reference=reference(right, _calls(rng, draw, 5))),
        max_tokens=48,
    )


def _breaks(name: str, param: str, body: str) -> dict[str, str]:
    """Ways to break the line that leave no doubt about what was meant."""
    return {
        "colon": f"def {name}({param}) return {body}",
        "def": f"{name}({param}): return {body}",
        "spelling": f"def {name}({param}): retrun {body}",
        "keyword": f"function {name}({param}): return {body}",
        "bracket": f"def {name}({param}: return {body}",
        "no_return": f"def {name}({param}): {body}",
        "fed": f"fed {name}({param}): return {body}",
    }


Draw = Callable[[random.Random], tuple[Any, ...]]
Parts = tuple[str, str, Draw]


def _calls(rng: random.Random, draw: Draw, count: int) -> list[tuple[Any, ...]]:
    """``count`` different calls."""
    found: list[tuple[Any, ...]] = []
    while len(found) < count:
        if (args := draw(rng)) not in found:
            found.append(args)
    return found


def _number(rng: random.Random) -> tuple[Any, ...]:
    return (rng.randint(-60, 60),)


def _word(rng: random.Random) -> tuple[Any, ...]:
    return ("".join(rng.choices("abcdeXYZ", k=rng.randint(2, 8))),)


def _letter(rng: random.Random) -> str:
    return rng.choice("abxyz")


def _numbers(rng: random.Random) -> tuple[Any, ...]:
    return ([rng.randint(-20, 60) for _ in range(rng.randint(2, 7))],)


_BODIES: tuple[Callable[[random.Random], Parts], ...] = (
    lambda r: ("x", f"x {r.choice('+-*')} {r.randint(2, 40)}", _number),
    lambda r: ("x", f"x * {r.randint(2, 9)} + {r.randint(1, 30)}", _number),
    lambda r: ("x", f"x % {r.randint(2, 12)} == 0", lambda s: (s.randint(0, 48),)),
    lambda r: ("x", f"max(x, {r.randint(-9, 20)})", _number),
    lambda r: ("x", f"abs(x) + {r.randint(1, 30)}", _number),
    lambda r: ("s", f"s + '{_letter(r)}'", _word),
    lambda r: ("s", r.choice(("s.upper()", "s.lower()", "s[::-1]", "s[0]", "s[-1]", "len(s)")), _word),
    lambda r: ("s", f"s * {r.randint(2, 9)}", _word),
    lambda r: ("xs", f"sum(xs) {r.choice('+-')} {r.randint(1, 40)}", _numbers),
    lambda r: ("xs", f"{r.choice(('max', 'min', 'len'))}(xs) + {r.randint(1, 20)}", _numbers),
    lambda r: ("xs", f"[x {r.choice('+*')} {r.randint(2, 20)} for x in xs]", _numbers),
    lambda r: ("xs", f"xs[:{r.randint(1, 4)}]", _numbers),
)
