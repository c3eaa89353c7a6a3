"""``style_fix``: a function of a few steps, each written in a way that a rule forbids."""

import random
from collections.abc import Callable

from packs.code_standards.standard import Piece, drafted, indented
from packs.coding.calls import Args
from packs.coding.draft import Draft

NAMES = ("score", "tally", "measure", "rate", "weigh", "collect", "evaluate", "total_up")
Step = tuple[str, list[str], list[str]]  # rule, lines that break it, lines that do not


def draft(rng: random.Random) -> Draft:
    """Two to four steps over ``xs``, ``limit`` and a running ``total``."""
    chosen = rng.sample(tuple(_STEPS), rng.randint(2, 4))
    steps = [_STEPS[key](rng) for key in chosen]
    name = rng.choice(NAMES)

    def source(dirty: list[bool]) -> str:
        lines = ["total = 0"]
        for (_, broken, right), use in zip(steps, dirty, strict=True):
            lines += broken if use else right
        return f"def {name}(xs, limit=None):\n{indented([*lines, 'return total'])}"

    everything, nothing = [True] * len(steps), [False] * len(steps)
    clean = source(nothing)
    return drafted(
        Piece(
            layout="-".join(sorted(chosen)[:2]),
            name=name,
            dirty=source(everything),
            clean=clean,
            rules=tuple(sorted({rule for rule, _, _ in steps})),
            draw=_draw,
            planted=len(steps),
            partial={"half_done": source([True, *nothing[1:]])},
            wrong={"other_start": clean.replace("total = 0", "total = 1", 1)},
        ),
        rng,
    )


def _draw(rng: random.Random) -> Args:
    return ([rng.randint(-6, 12) for _ in range(rng.randint(3, 7))], rng.choice((None, rng.randint(0, 9))))


def _none(rng: random.Random) -> Step:
    k, op = rng.randint(2, 9), rng.choice(("==", "!="))
    word = {"==": "is", "!=": "is not"}[op]
    return (
        "E711",
        [f"if limit {op} None:", f"    total += {k}"],
        [f"if limit {word} None:", f"    total += {k}"],
    )


def _not_in(rng: random.Random) -> Step:
    k, a = rng.randint(-3, 9), rng.randint(2, 9)
    return "E713", [f"if not {k} in xs:", f"    total += {a}"], [f"if {k} not in xs:", f"    total += {a}"]


def _not_is(rng: random.Random) -> Step:
    a = rng.randint(2, 9)
    return (
        "E714",
        ["if not limit is None:", f"    total += limit * {a}"],
        ["if limit is not None:", f"    total += limit * {a}"],
    )


def _literal_is(rng: random.Random) -> Step:
    k = rng.randint(2, 8)
    return "F632", [f"if len(xs) is {k}:", f"    total -= {k}"], [f"if len(xs) == {k}:", f"    total -= {k}"]


def _copy(rng: random.Random) -> Step:
    k = rng.randint(2, 6)
    return (
        "C416",
        ["copied = [x for x in xs]", f"total += sum(copied[:{k}])"],
        ["copied = list(xs)", f"total += sum(copied[:{k}])"],
    )


def _generator_list(rng: random.Random) -> Step:
    a = rng.randint(2, 9)
    return (
        "C400",
        [f"scaled = list(x * {a} for x in xs)", "total += max(scaled)"],
        [f"scaled = [x * {a} for x in xs]", "total += max(scaled)"],
    )


def _generator_set(rng: random.Random) -> Step:
    m = rng.randint(2, 6)
    return (
        "C401",
        [f"kinds = set(x % {m} for x in xs)", "total += len(kinds)"],
        [f"kinds = {{x % {m} for x in xs}}", "total += len(kinds)"],
    )


def _any_list(rng: random.Random) -> Step:
    k, a = rng.randint(3, 10), rng.randint(2, 9)
    word = rng.choice(("any", "all"))
    return (
        "C419",
        [f"if {word}([x > {k} for x in xs]):", f"    total += {a}"],
        [f"if {word}(x > {k} for x in xs):", f"    total += {a}"],
    )


def _lambda(rng: random.Random) -> Step:
    a, b = rng.randint(2, 9), rng.randint(1, 9)
    return (
        "E731",
        [f"change = lambda x: x * {a} - {b}", "total += change(xs[0])"],
        ["", "def change(x):", f"    return x * {a} - {b}", "", "total += change(xs[0])"],
    )


def _one_line(rng: random.Random) -> Step:
    k = rng.randint(1, 9)
    return (
        "E701",
        ["for x in xs:", f"    if x > {k}: total += x"],
        ["for x in xs:", f"    if x > {k}:", "        total += x"],
    )


def _semicolon(rng: random.Random) -> Step:
    a, b = rng.randint(2, 9), rng.randint(1, 9)
    return "E702", [f"total *= {a}; total -= {b}"], [f"total *= {a}", f"total -= {b}"]


def _nested_if(rng: random.Random) -> Step:
    k, a = rng.randint(2, 5), rng.randint(2, 9)
    return (
        "SIM102",
        [f"if len(xs) > {k}:", f"    if xs[-1] > {a}:", f"        total += {a}"],
        [f"if len(xs) > {k} and xs[-1] > {a}:", f"    total += {a}"],
    )


def _keys(rng: random.Random) -> Step:
    m = rng.randint(2, 6)
    head = f"places = {{x % {m}: x for x in xs}}"
    return (
        "SIM118",
        [head, "for place in places.keys():", "    total += place * places[place]"],
        [head, "for place in places:", "    total += place * places[place]"],
    )


def _unused_index(rng: random.Random) -> Step:
    a = rng.randint(2, 9)
    return (
        "B007",
        ["for index, value in enumerate(xs):", f"    total += value * {a}"],
        ["for value in xs:", f"    total += value * {a}"],
    )


def _unused_name(rng: random.Random) -> Step:
    a = rng.randint(2, 9)
    return (
        "F841",
        [f"unused = len(xs) * {a}", f"total += xs[0] * {a}"],
        [f"total += xs[0] * {a}"],
    )


def _ambiguous(rng: random.Random) -> Step:
    a = rng.randint(2, 9)
    return "E741", [f"l = len(xs) * {a}", "total += l"], [f"length = len(xs) * {a}", "total += length"]


def _either(rng: random.Random) -> Step:
    a, b = rng.sample(range(3, 8), 2)
    return (
        "PLR1714",
        ["count = len(xs)", f"if count == {a} or count == {b}:", f"    total += {a + b}"],
        ["count = len(xs)", f"if count in ({a}, {b}):", f"    total += {a + b}"],
    )


def _join_list(rng: random.Random) -> Step:
    k = rng.randint(1, 9)
    return (
        "RUF005",
        [f"longer = xs + [{k}]", "total += min(longer)"],
        [f"longer = [*xs, {k}]", "total += min(longer)"],
    )


_STEPS: dict[str, Callable[[random.Random], Step]] = {
    "none": _none,
    "not_in": _not_in,
    "not_is": _not_is,
    "literal_is": _literal_is,
    "copy": _copy,
    "generator_list": _generator_list,
    "generator_set": _generator_set,
    "any_list": _any_list,
    "lambda": _lambda,
    "one_line": _one_line,
    "semicolon": _semicolon,
    "nested_if": _nested_if,
    "keys": _keys,
    "unused_index": _unused_index,
    "unused_name": _unused_name,
    "ambiguous": _ambiguous,
    "either": _either,
    "join_list": _join_list,
}
