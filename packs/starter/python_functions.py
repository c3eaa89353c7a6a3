"""Small Python functions, judged by calls that are drawn anew for every task."""

import random
from collections.abc import Callable
from typing import Any

from packs.starter.draft import Draft

NAMES = ("f", "g", "solve", "apply", "run", "work", "step", "calc")


def draft(rng: random.Random) -> Draft:
    layout = rng.choice(tuple(SHAPES))
    name = rng.choice(NAMES)
    a, b = rng.randint(2, 19), rng.randint(1, 19)
    text, params, body, wrong, function, inputs = SHAPES[layout](a, b, rng)
    calls = [{"args": list(args), "kwargs": {}, "expected": function(*args)} for args in inputs]
    head = f"def {name}({params}):\n    return "
    return Draft(
        prompt=f"Write {name}({params}): {text}",
        verifier="python_tests",
        params={"entry_point": name},
        reference={"calls": calls},
        gold=head + body,
        bad={
            "wrong_body": head + wrong,
            "no_return": f"def {name}({params}):\n    {body}",
            "no_colon": f"def {name}({params})\n    return {body}",
        },
        layout=layout,
        origin=name,
    )


Shape = tuple[str, str, str, str, Callable[..., Any], list[tuple[Any, ...]]]


def _ints(rng: random.Random, count: int = 5) -> list[tuple[Any, ...]]:
    return [(value,) for value in rng.sample(range(-50, 51), count)]


def _pairs(rng: random.Random) -> list[tuple[Any, ...]]:
    return [tuple(rng.sample(range(-50, 51), 2)) for _ in range(6)]


def _lists(rng: random.Random) -> list[tuple[Any, ...]]:
    return [([rng.randint(-30, 30) for _ in range(rng.randint(2, 6))],) for _ in range(5)] + [
        ([7, 2, 10, 3],)
    ]


def _words(rng: random.Random) -> list[tuple[Any, ...]]:
    return [("".join(rng.choices("abcdefghXYZ", k=rng.randint(2, 7))),) for _ in range(4)] + [("abC",)]


def _linear(a: int, b: int, rng: random.Random) -> Shape:
    return (
        f"{a} times x plus {b}",
        "x",
        f"{a} * x + {b}",
        f"{a} + x * {b + 1}",
        lambda x: a * x + b,
        _ints(rng),
    )


def _minus(a: int, b: int, rng: random.Random) -> Shape:
    return f"{a} times x minus {b}", "x", f"{a} * x - {b}", f"{a} * x + {b}", lambda x: a * x - b, _ints(rng)


def _bigger(a: int, b: int, rng: random.Random) -> Shape:
    return (
        f"the larger of x and y, plus {b}",
        "x, y",
        f"max(x, y) + {b}",
        f"min(x, y) + {b}",
        (lambda x, y: max(x, y) + b),
        _pairs(rng),
    )


def _smaller(a: int, b: int, rng: random.Random) -> Shape:
    return (
        f"the smaller of x and y, times {a}",
        "x, y",
        f"min(x, y) * {a}",
        f"max(x, y) * {a}",
        (lambda x, y: min(x, y) * a),
        _pairs(rng),
    )


def _total(a: int, b: int, rng: random.Random) -> Shape:
    return (
        f"sum of xs plus {b}",
        "xs",
        f"sum(xs) + {b}",
        f"len(xs) + {b}",
        lambda xs: sum(xs) + b,
        _lists(rng),
    )


def _above(a: int, b: int, rng: random.Random) -> Shape:
    return (
        f"count items of xs above {b}",
        "xs",
        f"sum(x > {b} for x in xs)",
        f"sum(xs > {b})",
        (lambda xs: sum(x > b for x in xs)),
        _lists(rng),
    )


def _scaled(a: int, b: int, rng: random.Random) -> Shape:
    return (
        f"each item of xs times {a}",
        "xs",
        f"[x * {a} for x in xs]",
        f"xs * {a}",
        (lambda xs: [x * a for x in xs]),
        _lists(rng),
    )


def _reverse(a: int, b: int, rng: random.Random) -> Shape:
    mark = rng.choice("abcdxyz")
    return (
        f"reverse s and add '{mark}'",
        "s",
        f"s[::-1] + '{mark}'",
        f"s + '{mark}'",
        (lambda s: s[::-1] + mark),
        _words(rng),
    )


def _upper(a: int, b: int, rng: random.Random) -> Shape:
    times = min(a, 9)
    return (
        f"upper case s, {times} times",
        "s",
        f"s.upper() * {times}",
        f"s.upper({times})",
        (lambda s: s.upper() * times),
        _words(rng),
    )


def _divisible(a: int, b: int, rng: random.Random) -> Shape:
    values = [(a * k,) for k in rng.sample(range(-9, 10), 3)] + [(a * 3 + 1,), (a * 5 + 1,)]
    return f"is x divisible by {a}", "x", f"x % {a} == 0", f"x / {a} == 0", lambda x: x % a == 0, values


SHAPES: dict[str, Callable[[int, int, random.Random], Shape]] = {
    "linear": _linear,
    "minus": _minus,
    "bigger": _bigger,
    "smaller": _smaller,
    "total": _total,
    "above": _above,
    "scaled": _scaled,
    "reverse": _reverse,
    "upper": _upper,
    "divisible": _divisible,
}
