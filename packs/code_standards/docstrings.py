"""``docstring``: a public function gets a docstring in Google's style."""

import random

from packs.code_standards.bank import Plain, plain
from packs.code_standards.standard import Piece, drafted, indented
from packs.coding.draft import Draft

_RULES = ("D100", "D103", "D205", "D400", "D401", "D417")
_MODULE = '"""Helpers."""'


def draft(rng: random.Random) -> Draft:
    base = plain(rng)
    clean = _written(base, _google(base), module=True)
    flaw, lines, planted = _flawed(base, rng)
    dirty = _written(base, lines, module=False)
    return drafted(
        Piece(
            layout=f"{flaw}-{base.name}",
            name=base.name,
            dirty=dirty,
            clean=clean,
            rules=_RULES,
            draw=base.draw,
            planted=planted,
            settings={"lint.pydocstyle.convention": "google"},
            asks=f"{base.name} says what it does, and what its arguments are. Keep what it does.",
            partial={"no_module_docstring": _written(base, _google(base), module=False)},
            wrong={"body_gone": _written(base, [*_google(base), "return None"], module=True)},
        ),
        rng,
    )


def _written(base: Plain, docstring: list[str], *, module: bool) -> str:
    head = f"{_MODULE}\n\n\n" if module else ""
    return f"{head}def {base.name}({base.typed}) -> {base.returns}:\n{indented([*docstring, *base.body])}"


def _google(base: Plain) -> list[str]:
    arguments = [f"    {name}: {meaning}" for name, _, meaning in base.params]
    return [f'"""{base.summary}', "", "Args:", *arguments, "", "Returns:", f"    {base.result}", '"""']


def _flawed(base: Plain, rng: random.Random) -> tuple[str, list[str], int]:
    """What is wrong, the lines, and how many findings it makes beside the missing module docstring."""
    summary = base.summary.rstrip(".")
    verb, _, rest = summary.partition(" ")
    first = f"    {base.params[0][0]}: {base.params[0][2]}"
    flaws: dict[str, tuple[list[str], int]] = {
        "missing": ([], 2),
        "no_period": ([f'"""{summary}"""'], 2),
        "no_blank": ([f'"""{base.summary}', f"{base.result}", '"""'], 2),
        "descriptive": ([f'"""Returns what to {verb.lower()} gives: {rest}."""'], 2),
        "argument_missing": ([f'"""{base.summary}', "", "Args:", first, '"""'], 2),
    }
    flaw = rng.choice(tuple(flaws))
    return flaw, *flaws[flaw]
