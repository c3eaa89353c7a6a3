"""``imports``: the head of a module, sorted, one a line, nothing twice and nothing unused."""

import random
from collections.abc import Callable

from packs.code_standards.standard import Piece, drafted, indented
from packs.coding.calls import Args
from packs.coding.draft import Draft

_NAMES = ("describe", "digest", "inspect_all", "arrange", "prepare", "report", "compress")
Use = tuple[tuple[str, ...], str, str]  # what it imports, the statement, what it adds to the result
_SPARE = (
    "import os",
    "import sys",
    "import copy",
    "from collections import deque",
    "from functools import partial",
    "import random",
    "from operator import attrgetter",
    "import uuid",
    "from time import sleep",
)


def draft(rng: random.Random) -> Draft:
    name, uses = rng.choice(_NAMES), rng.sample(_USES, rng.randint(2, 4))
    made = [use(rng, f"part{number}") for number, use in enumerate(uses, start=1)]
    needed = sorted({line for lines, _, _ in made for line in lines}, key=_place)
    spare = rng.sample(_SPARE, rng.randint(1, 2))
    statements = [statement for _, statement, _ in made]
    body = [*statements, f"return [{', '.join(part for _, _, part in made)}]"]
    function = f"def {name}(xs):\n{indented(body)}"
    head = [*needed, *spare, *([rng.choice(needed)] if rng.random() < 0.4 else [])]
    while head == sorted(head, key=_place):
        rng.shuffle(head)
    dirty, clean = _head(_joined(head, rng)), _head(needed)
    sorted_only = _head(sorted({*needed, *spare}, key=_place))
    return drafted(
        Piece(
            layout=f"{len(needed)}-{len(head)}",
            name=name,
            dirty=f"{dirty}\n\n\n{function}",
            clean=f"{clean}\n\n\n{function}",
            rules=("E401", "F401", "F811", "I001"),
            draw=_draw,
            planted=len(spare),
            partial={"unused_left": f"{sorted_only}\n\n\n{function}"},
            wrong={
                "too_much_removed": f"{_head(needed[1:])}\n\n\n{function}",
                "reversed": f"{clean}\n\n\n{function.replace('return [', 'return [*')}",
            },
        ),
        rng,
    )


def _place(line: str) -> tuple[bool, str]:
    """Plain imports first, each kind by the module's name."""
    return line.startswith("from"), line.split()[1]


def _head(lines: list[str]) -> str:
    """One ``from`` import for each module."""
    merged: dict[str, list[str]] = {}
    for line in lines:
        start, _, what = line.partition(" import ")
        merged.setdefault(start if what else line, []).extend([what] if what else [])
    return "\n".join(
        f"{start} import {', '.join(sorted(set(n)))}" if n else start for start, n in merged.items()
    )


def _joined(lines: list[str], rng: random.Random) -> list[str]:
    """Now and then two plain imports on one line."""
    plain = [line for line in lines if line.startswith("import ")]
    if len(plain) < 2 or rng.random() < 0.5:
        return lines
    first, second = plain[:2]
    kept = [line for line in lines if line != second]
    return [f"{first}, {second.removeprefix('import ')}" if line == first else line for line in kept]


def _draw(rng: random.Random) -> Args:
    return ([rng.randint(1, 40) for _ in range(rng.randint(3, 6))],)


_USES: tuple[Callable[[random.Random, str], Use], ...] = (
    lambda r, n: (("import math",), f"{n} = sum(math.isqrt(x + {r.randint(0, 9)}) for x in xs)", n),
    lambda r, n: (("from math import gcd",), f"{n} = [gcd(x, {r.randint(6, 60)}) for x in xs]", n),
    lambda r, n: (("import json",), f"{n} = json.dumps(xs[:{r.randint(1, 3)}])", n),
    lambda r, n: (
        ("from collections import Counter",),
        f"{n} = max(Counter(x % {r.randint(2, 5)} for x in xs).values())",
        n,
    ),
    lambda r, n: (("import statistics",), f"{n} = statistics.median_low(xs) + {r.randint(1, 9)}", n),
    lambda r, n: (
        ("from itertools import accumulate",),
        f"{n} = list(accumulate(xs))[-{r.randint(1, 3)}:]",
        n,
    ),
    lambda r, n: (("import re",), f"{n} = re.sub('{r.randint(1, 9)}', '-', str(xs))", n),
    lambda r, n: (
        ("import string",),
        f"{n} = ''.join(string.ascii_lowercase[(x + {r.randint(0, 9)}) % 26] for x in xs)",
        n,
    ),
    lambda r, n: (("import heapq",), f"{n} = heapq.nlargest({r.randint(1, 3)}, xs)", n),
    lambda r, n: (
        ("from functools import reduce",),
        f"{n} = reduce(lambda a, b: a * {r.randint(2, 5)} + b, xs)",
        n,
    ),
    lambda r, n: (("import bisect",), f"{n} = bisect.bisect(sorted(xs), {r.randint(5, 30)})", n),
    lambda r, n: (("from fractions import Fraction",), f"{n} = str(Fraction(xs[0], {r.randint(2, 30)}))", n),
)
