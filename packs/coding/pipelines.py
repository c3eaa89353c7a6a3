"""Functions that filter, map and fold: a list of integers, the words of a text, a list of records.

Each part is a phrase and an expression, so that thousands of different functions come out of a few
dozen parts.
"""

import random
from typing import Any

from packs.coding.calls import Args, Shape

NAMES = ("solve", "compute", "process", "transform", "evaluate", "derive", "reduce_all", "handle", "work")
PEOPLE = ("ana", "bo", "cy", "dee", "eli", "fay", "gus", "hal")
WORDS = [
    "apple",
    "river",
    "stone",
    "Ember",
    "cloud",
    "paper",
    "Tiger",
    "lamp",
    "ocean",
    "violet",
    "quick",
    "Orange",
    "deep",
    "ink",
    "umbrella",
    "zoo",
    "echo",
    "Night",
    "garden",
    "ivy",
    "axle",
    "Under",
    "yellow",
    "bird",
]


def integers(rng: random.Random) -> Shape:
    k, a, m = rng.randint(-5, 9), rng.randint(2, 9), rng.randint(3, 11)
    keep_text, keep, keep_wrong = rng.choice(
        (
            ("are even", "x % 2 == 0", "x % 2 == 1"),
            ("are odd", "x % 2 == 1", "x % 2 == 0"),
            (f"are greater than {k}", f"x > {k}", f"x < {k}"),
            (f"are at most {k}", f"x <= {k}", f"x > {k}"),
            (f"are divisible by {a}", f"x % {a} == 0", f"x % {a} == 1"),
            (f"differ from {k}", f"x != {k}", f"x == {k}"),
            (f"lie between {k} and {k + 9}, both included", f"{k} <= x <= {k + 9}", f"{k} < x < {k + 8}"),
        )
    )
    change_text, change = rng.choice(
        (
            (f"multiplies each by {a}", f"x * {a}"),
            (f"adds {a} to each", f"x + {a}"),
            ("squares each", "x * x"),
            (f"takes each modulo {m}", f"x % {m}"),
            ("negates each", "-x"),
            (f"takes the distance of each from {k}", f"abs(x - ({k}))"),
        )
    )
    end_text, end = rng.choice(
        (
            ("their sum", "sum(ys)"),
            ("the largest, or 0 if none is left", "max(ys, default=0)"),
            ("the number of distinct values", "len(set(ys))"),
            ("them sorted from largest to smallest", "sorted(ys, reverse=True)"),
            ("them in reverse order", "ys[::-1]"),
            ("the list of running totals", "[sum(ys[: i + 1]) for i in range(len(ys))]"),
            ("them without repeats, keeping the first of each", "list(dict.fromkeys(ys))"),
            ("a dict from each value to how often it occurs", "{y: ys.count(y) for y in ys}"),
            ("the sum of the first, third, fifth, … of them", "sum(ys[::2])"),
            ("a tuple of how many are left and their sum", "(len(ys), sum(ys))"),
            ("the difference of largest and smallest, or None if none is left",
             "max(ys) - min(ys) if ys else None"),
        )
    )  # fmt: skip
    name = rng.choice(NAMES)

    def source(keep: str, change: str) -> str:
        return f"def {name}(xs):\n    ys = [{change} for x in xs if {keep}]\n    return {end}\n"

    return Shape(
        layout="integers",
        name=name,
        params="xs",
        text=(
            f"takes a list of integers xs, keeps those that {keep_text}, {change_text} and returns {end_text}"
        ),
        source=source(keep, change),
        wrong=(source(keep_wrong, change), source(keep, f"({change}) + 1")),
        draw=_integers,
    )


def words(rng: random.Random) -> Shape:
    k, letter = rng.randint(3, 5), rng.choice("aeinor")
    keep_text, keep = rng.choice(
        (
            (f"are longer than {k} letters", f"len(w) > {k}"),
            (f"have at most {k} letters", f"len(w) <= {k}"),
            ("begin with a vowel, in either case", "w[0] in 'aeiouAEIOU'"),
            (f"contain the small letter {letter}", f"'{letter}' in w"),
            (f"do not end in {letter}", f"not w.endswith('{letter}')"),
            ("begin with a capital letter", "w[0].isupper()"),
        )
    )
    change_text, change, change_wrong = rng.choice(
        (
            ("writes each in capitals", "w.upper()", "w.lower()"),
            ("reverses each", "w[::-1]", "w"),
            ("takes the first two letters of each", "w[:2]", "w[-2:]"),
            ("writes each in small letters", "w.lower()", "w.upper()"),
            (f"replaces {letter} by * in each", f"w.replace('{letter}', '*')", f"w.replace('{letter}', '')"),
            ("doubles the last letter of each", "w + w[-1]", "w + w[0]"),
        )
    )
    mark = rng.choice("-+_/")
    end_text, end = rng.choice(
        (
            (f"them joined by {mark!r}", f"'{mark}'.join(ws)"),
            ("the list of them", "ws"),
            ("them sorted by length, then alphabetically", "sorted(ws, key=lambda w: (len(w), w))"),
            ("them in reverse order, joined by spaces", "' '.join(reversed(ws))"),
            ("a dict from each of them to its length", "{w: len(w) for w in ws}"),
            ("a tuple of their number and all of them joined without a gap", "(len(ws), ''.join(ws))"),
            ("the longest of them (the first of equals), or '' if none is left",
             "max(ws, key=len, default='')"),
        )
    )  # fmt: skip
    name = rng.choice(NAMES)

    def source(keep: str, change: str) -> str:
        body = f"    ws = [{change} for w in text.split() if {keep}]\n"
        return f"def {name}(text):\n{body}    return {end}\n"

    return Shape(
        layout="words",
        name=name,
        params="text",
        text=f"takes the words of a text, keeps those that {keep_text}, {change_text} and returns {end_text}",
        source=source(keep, change),
        wrong=(source(f"not ({keep})", change), source(keep, change_wrong)),
        draw=_text,
    )


def records(rng: random.Random) -> Shape:
    limit, factor = rng.randint(5, 40), rng.randint(2, 9)
    keep_text, keep, keep_wrong = rng.choice(
        (
            (f"is at least {limit}", f"total >= {limit}", f"total < {limit}"),
            (f"is below {limit}", f"total < {limit}", f"total >= {limit}"),
            (f"is not divisible by {factor}", f"total % {factor} != 0", f"total % {factor} == 0"),
        )
    )
    end_text, end = rng.choice(
        (
            ("a dict of those names and totals", "kept"),
            ("those names in alphabetical order", "sorted(kept)"),
            ("the sum of those totals", "sum(kept.values())"),
            ("(name, total) pairs of them, largest total first, equals by name",
             "sorted(kept.items(), key=lambda pair: (-pair[1], pair[0]))"),
            ("the name with the largest of those totals (the alphabetically first of equals), or None",
             "min(kept, key=lambda name: (-kept[name], name), default=None)"),
            (f"a dict of those names and their totals times {factor}",
             f"{{name: total * {factor} for name, total in kept.items()}}"),
        )
    )  # fmt: skip
    name = rng.choice(NAMES)

    def source(keep: str, add: str) -> str:
        return (
            f"def {name}(records):\n    totals = {{}}\n    for name, amount in records:\n"
            f"        totals[name] = {add}\n"
            f"    kept = {{name: total for name, total in totals.items() if {keep}}}\n    return {end}\n"
        )

    added = "totals.get(name, 0) + amount"
    return Shape(
        layout="records",
        name=name,
        params="records",
        text=(
            "takes a list of (name, amount) tuples, adds up the amounts of each name, keeps the names "
            f"whose total {keep_text} and returns {end_text}"
        ),
        source=source(keep, added),
        wrong=(source(keep_wrong, added), source(keep, "amount")),
        draw=_records,
    )


def _integers(rng: random.Random) -> Args:
    return ([rng.randint(-12, 24) for _ in range(rng.randint(4, 9))],)


def _text(rng: random.Random) -> Args:
    return (" ".join(rng.choices(WORDS, k=rng.randint(4, 8))),)


def _records(rng: random.Random) -> Args:
    names = rng.sample(PEOPLE, 4)
    rows: list[Any] = [(rng.choice(names), rng.randint(1, 30)) for _ in range(rng.randint(5, 9))]
    return (rows,)
