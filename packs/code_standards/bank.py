"""Small plain functions that other families dress up: with docstrings, annotations, old syntax."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from packs.coding.calls import Args


@dataclass(frozen=True)
class Plain:
    """``params`` are (name, type, meaning); ``body`` are lines that end in a return."""

    name: str
    params: tuple[tuple[str, str, str], ...]
    returns: str
    summary: str
    result: str
    body: tuple[str, ...]
    draw: Callable[[random.Random], Args]

    @property
    def bare(self) -> str:
        return ", ".join(name for name, _, _ in self.params)

    @property
    def typed(self) -> str:
        return ", ".join(f"{name}: {kind}" for name, kind, _ in self.params)


def plain(rng: random.Random) -> Plain:
    return rng.choice(_MAKERS)(rng)


def _scale(rng: random.Random) -> Plain:
    k, names = rng.randint(2, 20), rng.choice((("values", "offset"), ("prices", "shift"), ("marks", "bonus")))
    return Plain(
        rng.choice(("scale", "stretch", "adjust")),
        ((names[0], "list[int]", "The numbers to change."), (names[1], "int", "What is added at the end.")),
        "list[int]",
        f"Multiply every number by {k} and add the {names[1]}.",
        "The changed numbers, in their order.",
        (f"return [x * {k} + {names[1]} for x in {names[0]}]",),
        lambda r: ([r.randint(-9, 30) for _ in range(r.randint(2, 5))], r.randint(-9, 9)),
    )


def _join(rng: random.Random) -> Plain:
    mark, least = rng.choice("-_/+"), rng.randint(2, 4)
    return Plain(
        rng.choice(("join_long", "label", "slug")),
        (("text", "str", "The words to look at."), ("upper", "bool", "Whether to write capitals.")),
        "str",
        f"Join the words of a text that have at least {least} letters.",
        f"The words with {mark} between them.",
        (
            f"words = [word for word in text.split() if len(word) >= {least}]",
            f'joined = "{mark}".join(words)',
            "return joined.upper() if upper else joined",
        ),
        lambda r: (
            " ".join(r.choices(("a", "bo", "cat", "door", "eagle"), k=r.randint(3, 6))),
            r.random() < 0.5,
        ),
    )


def _tally(rng: random.Random) -> Plain:
    least, key = rng.randint(1, 2), rng.choice(("word[0]", "word[-1]", "word"))
    return Plain(
        rng.choice(("tally", "count_marks", "histogram")),
        (("words", "list[str]", "The words to count."), ("extra", "int", "What every count starts with.")),
        "dict[str, int]",
        "Count how often each mark occurs.",
        f"The counts above {least}.",
        (
            "counts = {}",
            "for word in words:",
            f"    counts[{key}] = counts.get({key}, extra) + 1",
            f"return {{mark: count for mark, count in counts.items() if count > {least}}}",
        ),
        lambda r: (r.choices(("ant", "bee", "ape", "bat", "cow", "eel"), k=r.randint(4, 8)), r.randint(0, 1)),
    )


def _first(rng: random.Random) -> Plain:
    k, rest = rng.randint(2, 9), rng.randint(0, 1)
    return Plain(
        rng.choice(("first_fit", "pick", "find_first")),
        (
            ("values", "list[int]", "The numbers to search."),
            ("default", "int | None", "What to give otherwise."),
        ),
        "int | None",
        f"Find the first number whose remainder modulo {k} is {rest}.",
        "The number found, or the default.",
        ("for value in values:", f"    if value % {k} == {rest}:", "        return value", "return default"),
        lambda r: ([r.randint(1, 50) for _ in range(r.randint(1, 4))], r.choice((None, r.randint(-9, 0)))),
    )


def _pairs(rng: random.Random) -> Plain:
    k = rng.randint(2, 30)
    return Plain(
        rng.choice(("pair_up", "combine", "lay_side_by_side")),
        (("names", "list[str]", "The names."), ("numbers", "list[int]", "The numbers, one for each name.")),
        "list[tuple[str, int]]",
        f"Pair each name with its number, numbers above {k} only.",
        "The pairs, the largest number first.",
        (
            f"pairs = [(n, x) for n, x in zip(names, numbers, strict=True) if x > {k}]",
            "return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))",
        ),
        lambda r: (r.sample(("ana", "bo", "cy", "dee", "eli"), 4), [r.randint(0, 40) for _ in range(4)]),
    )


def _clip(rng: random.Random) -> Plain:
    low, high = rng.randint(-9, 5), rng.randint(12, 40)
    return Plain(
        rng.choice(("clip", "limit", "keep_inside")),
        (("value", "float", "The number to limit."), ("share", "float", "The part of it that counts.")),
        "float",
        f"Limit a share of a number to the range {low} to {high}.",
        "The limited number.",
        (f"return max({low}.0, min({high}.0, value * share))",),
        lambda r: (r.randint(-40, 160) / 2, r.choice((0.5, 1.0, 0.25))),
    )


_MAKERS = (_scale, _join, _tally, _first, _pairs, _clip)
