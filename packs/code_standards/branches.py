"""``complexity``: long chains and deep nests of conditions become tables and short rules."""

import random
from collections.abc import Callable

from packs.code_standards.standard import Piece, drafted, indented
from packs.coding.draft import Draft

_NAMES = ("label", "classify", "describe", "choose", "rank", "price_of", "decide")
_WORDS = (
    "red", "blue", "green", "amber", "north", "south", "east", "west", "small", "large", "slow", "fast",
)  # fmt: skip


def draft(rng: random.Random) -> Draft:
    layout = rng.choice(tuple(_SHAPES))
    return drafted(_SHAPES[layout](rng, rng.choice(_NAMES)), rng)


def _lookup(rng: random.Random, name: str) -> Piece:
    """One return for each code."""
    codes, words = rng.sample(range(1, 40), rng.randint(6, 8)), rng.sample(_WORDS, 9)
    pairs, other = list(zip(codes, words, strict=False)), words[-1]
    lines = []
    for code, word in pairs:
        lines += [f"if code == {code}:", f'    return "{word}"']
    table = "\n".join(f'    {code}: "{word}",' for code, word in pairs)
    clean = f'TABLE = {{\n{table}\n}}\n\n\ndef {name}(code):\n    return TABLE.get(code, "{other}")\n'
    chain = indented([*lines, f'return "{other}"'])
    return Piece(
        layout="lookup",
        name=name,
        dirty=f"def {name}(code):\n{chain}",
        clean=clean,
        rules=("C901", "PLR0911"),
        draw=lambda r: (r.choice((*codes, 99)),),
        planted=2,
        settings={"lint.mccabe.max-complexity": 4, "lint.pylint.max-returns": 3},
        partial={"as_elif": f"def {name}(code):\n{_as_elif(pairs, other)}"},
        wrong={"default_lost": clean.replace(f'.get(code, "{other}")', '.get(code, "")')},
    )


def _as_elif(pairs: list[tuple[int, str]], other: str) -> str:
    """One return, but as many branches."""
    lines = [f'found = "{other}"']
    for number, (code, word) in enumerate(pairs):
        lines += [f"{'el' if number else ''}if code == {code}:", f'    found = "{word}"']
    return indented([*lines, "return found"])


def _thresholds(rng: random.Random, name: str) -> Piece:
    borders = sorted(rng.sample(range(5, 95, 5), rng.randint(5, 6)), reverse=True)
    words, other = rng.sample(_WORDS, len(borders)), "none"
    lines = []
    for number, (border, word) in enumerate(zip(borders, words, strict=True)):
        lines += [f"{'el' if number else ''}if value >= {border}:", f'    return "{word}"']
    lines += ["else:", f'    return "{other}"']
    table = ", ".join(f'({border}, "{word}")' for border, word in zip(borders, words, strict=True))
    clean = (
        f"BORDERS = ({table})\n\n\ndef {name}(value):\n    for border, word in BORDERS:\n"
        f'        if value >= border:\n            return word\n    return "{other}"\n'
    )
    return Piece(
        layout="thresholds",
        name=name,
        dirty=f"def {name}(value):\n{indented(lines)}",
        clean=clean,
        rules=("C901", "PLR0911", "RET505"),
        draw=lambda r: (r.choice((*borders, *(b - 1 for b in borders), r.randint(0, 100))),),
        planted=3,
        settings={"lint.mccabe.max-complexity": 4, "lint.pylint.max-returns": 3},
        wrong={"border_moved": clean.replace("value >= border", "value > border")},
    )


def _nested(rng: random.Random, name: str) -> Piece:
    a, b, c, word = rng.randint(5, 40), rng.randint(2, 9), rng.randint(41, 90), rng.choice(_WORDS)
    dirty = indented(
        [
            "if active:",
            f"    if amount > {a}:",
            f"        if amount < {c}:",
            f"            if amount % {b} == 0:",
            f'                return "{word}"',
            "            else:",
            '                return "no"',
            "        else:",
            '            return "no"',
            "    else:",
            '        return "no"',
            "else:",
            '    return "no"',
        ]
    )
    clean = (
        f"def {name}(active, amount):\n    fits = active and {a} < amount < {c} and amount % {b} == 0\n"
        f'    return "{word}" if fits else "no"\n'
    )
    return Piece(
        layout="nested",
        name=name,
        dirty=f"def {name}(active, amount):\n{dirty}",
        clean=clean,
        rules=("C901", "PLR0911", "PLR5501", "RET505", "SIM102"),
        draw=lambda r: (
            r.random() < 0.85,
            r.choice((a, c, r.randint(a, c), r.randint(a // b + 1, c // b) * b)),
        ),
        planted=3,
        settings={"lint.mccabe.max-complexity": 3, "lint.pylint.max-returns": 2},
        wrong={"other_rule": clean.replace("== 0", "!= 0")},
    )


def _flags(rng: random.Random, name: str) -> Piece:
    """The same condition for many names."""
    names, k = rng.sample(_WORDS, 5), rng.randint(2, 9)
    lines = ["found = 0"]
    for number, word in enumerate(names, start=1):
        lines += [f'if "{word}" in words:', f"    found += {k * number}"]
    weights = ", ".join(f'"{word}": {k * number}' for number, word in enumerate(names, start=1))
    clean = (
        f"WEIGHTS = {{{weights}}}\n\n\ndef {name}(words):\n"
        "    return sum(weight for word, weight in WEIGHTS.items() if word in words)\n"
    )
    return Piece(
        layout="flags",
        name=name,
        dirty=f"def {name}(words):\n{indented([*lines, 'return found'])}",
        clean=clean,
        rules=("C901", "PLR0912"),
        draw=lambda r: (r.sample(_WORDS, r.randint(2, 7)),),
        planted=2,
        settings={"lint.mccabe.max-complexity": 3, "lint.pylint.max-branches": 3},
        wrong={"counts_only": clean.replace("sum(weight for", "sum(1 for")},
    )


_SHAPES: dict[str, Callable[[random.Random, str], Piece]] = {
    "lookup": _lookup,
    "thresholds": _thresholds,
    "nested": _nested,
    "flags": _flags,
}
