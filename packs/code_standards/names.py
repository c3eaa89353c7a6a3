"""``naming``: functions, arguments and variables in snake case, classes in capitalised words."""

import random
import re
from collections.abc import Callable

from packs.code_standards.standard import Piece, drafted
from packs.coding.calls import Args
from packs.coding.draft import Draft

_VERBS = ("count", "find", "make", "merge", "check", "build", "sort", "trim", "scale", "group", "sum", "mark")
_NOUNS = ("words", "items", "lines", "values", "rows", "parts", "marks", "scores", "pages", "tokens", "keys")
_EXTRAS = ("all", "new", "last", "raw", "short", "good", "each", "total", "open", "late")


def draft(rng: random.Random) -> Draft:
    layout = rng.choice(tuple(_SHAPES))
    template, rules, draw = _SHAPES[layout](rng)
    words = [
        (rng.choice(_VERBS), rng.choice(_EXTRAS), rng.choice(_NOUNS)),
        *zip(rng.sample(_EXTRAS, 4), rng.sample(_NOUNS, 4), strict=True),
    ]
    slots = sorted(set(re.findall(r"@(\d|C)", template)))
    clean, dirty, partial = template, template, template
    for number, slot in enumerate(slots):
        right, wrong = _spelt(words[int(slot)] if slot != "C" else words[1], slot, rng)
        clean = clean.replace(f"@{slot}", right)
        dirty = dirty.replace(f"@{slot}", wrong)
        partial = partial.replace(f"@{slot}", right if number == 0 else wrong)
    name = "_".join(words[0])
    return drafted(
        Piece(
            layout=layout,
            name=name,
            dirty=dirty,
            clean=clean,
            rules=rules,
            draw=draw,
            planted=len(slots),
            asks=f"Keep what it does; the function is called {name} afterwards.",
            partial={"only_the_function": partial} if partial != clean else {},
            wrong={"name_not_kept": clean.replace(name, f"{name}_2")},
        ),
        rng,
    )


def _spelt(words: tuple[str, ...], slot: str, rng: random.Random) -> tuple[str, str]:
    """(as it should be, as it is)."""
    capitalised = "".join(word.title() for word in words)
    if slot == "C":
        return capitalised, rng.choice(("_".join(words), words[0] + capitalised[len(words[0]) :]))
    camel = words[0] + "".join(word.title() for word in words[1:])
    return "_".join(words), rng.choice((camel, capitalised)) if slot == "0" else camel


Shape = tuple[str, tuple[str, ...], Callable[[random.Random], Args]]


def _numbers(rng: random.Random) -> Args:
    return ([rng.randint(-9, 30) for _ in range(rng.randint(3, 6))], rng.randint(1, 12))


def _texts(rng: random.Random) -> Args:
    return (" ".join(rng.choices(("ab", "cde", "f", "ghij", "kl"), k=rng.randint(3, 6))), rng.randint(1, 4))


def _loop(rng: random.Random) -> Shape:
    k, test = rng.randint(2, 9), rng.choice((">", "<", ">=", "<="))
    return (
        f"def @0(@1, @2):\n    @3 = 0\n    for x in @1:\n        if x {test} @2:\n            @3 += x * {k}\n"
        "    return @3\n",
        ("N802", "N803", "N806"),
        _numbers,
    )


def _listed(rng: random.Random) -> Shape:
    k, change = rng.randint(2, 9), rng.choice("+-*")
    return (
        f"def @0(@1, @2):\n    @3 = [x {change} {k} for x in @1]\n    @4 = sorted(@3)\n"
        f"    return @4[: @2 + {k}]\n",
        ("N802", "N803", "N806"),
        _numbers,
    )


def _split(rng: random.Random) -> Shape:
    mark = rng.choice("-+/_")
    return (
        "def @0(@1, @2):\n    @3 = @1.split()\n    @4 = [word for word in @3 if len(word) > @2]\n"
        f'    return "{mark}".join(@4)\n',
        ("N802", "N803", "N806"),
        _texts,
    )


def _class(rng: random.Random) -> Shape:
    k = rng.randint(2, 9)
    return (
        f"class @C:\n    def __init__(self, @2):\n        self.step = @2\n\n    def apply(self, x):\n"
        f"        return x * self.step + {k}\n\n\ndef @0(@3, @2):\n    @4 = @C(@2)\n"
        "    return [@4.apply(x) for x in @3]\n",
        ("N801", "N802", "N803", "N806"),
        _numbers,
    )


_SHAPES: dict[str, Callable[[random.Random], Shape]] = {
    "loop": _loop,
    "listed": _listed,
    "split": _split,
    "class": _class,
}
