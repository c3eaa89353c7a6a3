"""``bug_traps``: code that works today and bites tomorrow: defaults that change, errors swallowed whole."""

import random
from collections.abc import Callable

from packs.code_standards.standard import Piece, drafted
from packs.coding.calls import Args
from packs.coding.draft import Draft

_NAMES = ("gather", "parse_all", "load", "convert", "read_values", "extend_with", "safe_total")
Trap = tuple[str, str, str, tuple[str, ...], Callable[[random.Random], Args]]


def draft(rng: random.Random) -> Draft:
    layout = rng.choice(tuple(_TRAPS))
    name = rng.choice(_NAMES)
    dirty, clean, wrong, rules, draw = _TRAPS[layout](rng, name)
    piece = Piece(
        layout=layout, name=name, dirty=dirty, clean=clean, rules=rules, draw=draw, wrong={"changed": wrong}
    )
    return drafted(piece, rng)


def _default(rng: random.Random, name: str) -> Trap:
    k, kind = rng.randint(2, 20), rng.choice(("[]", "list()"))
    body = f"    return [x * {k} for x in [*xs, *more]]\n"
    clean = f"def {name}(xs, more=None):\n    if more is None:\n        more = []\n{body}"
    return (
        f"def {name}(xs, more={kind}):\n{body}",
        clean,
        clean.replace("[*xs, *more]", "xs"),
        ("B006", "B008"),
        _two_lists,
    )


def _bare_except(rng: random.Random, name: str) -> Trap:
    k, add = rng.randint(-9, 9), rng.randint(1, 20)
    head = f"def {name}(texts):\n    total = 0\n    for text in texts:\n        try:\n"
    tail = f"            total += {k}\n    return total\n"
    clean = f"{head}            total += int(text) + {add}\n        except ValueError:\n{tail}"
    return (
        clean.replace("except ValueError:", "except:"),
        clean,
        clean.replace(f"+ {add}", f"- {add}"),
        ("BLE001", "E722"),
        _texts,
    )


def _unused_error(rng: random.Random, name: str) -> Trap:
    k = rng.randint(-9, 9)
    clean = (
        f"def {name}(texts):\n    found = []\n    for text in texts:\n        try:\n"
        f"            found.append(int(text))\n        except ValueError:\n            found.append({k})\n"
        "    return found\n"
    )
    dirty = clean.replace("except ValueError:", "except ValueError as error:").replace(
        "    found = []\n", f"    found = []\n    count = len(texts) * {k + 12}\n"
    )
    return dirty, clean, clean.replace(f"append({k})", f"append({k + 1})"), ("F841",), _texts


def _swallowed(rng: random.Random, name: str) -> Trap:
    k = rng.randint(2, 30)
    clean = (
        f"from contextlib import suppress\n\n\ndef {name}(texts):\n    total = {k}\n    for text in texts:\n"
        "        with suppress(ValueError):\n            total += int(text)\n    return total\n"
    )
    dirty = (
        f"def {name}(texts):\n    total = {k}\n    for text in texts:\n        try:\n"
        "            total += int(text)\n        except ValueError:\n            pass\n    return total\n"
    )
    return dirty, clean, clean.replace(f"total = {k}", f"total = {k + 1}"), ("S110", "SIM105"), _texts


def _zip(rng: random.Random, name: str) -> Trap:
    k, op = rng.randint(2, 20), rng.choice("+-*")
    clean = f"def {name}(xs, ys):\n    return [(x {op} y) * {k} for x, y in zip(xs, ys, strict=False)]\n"
    return (
        clean.replace(", strict=False", ""),
        clean,
        clean.replace("strict=False", "strict=True").replace("zip(xs", "zip(xs[1:]"),
        ("B905",),
        _two_lists,
    )


def _loop_name(rng: random.Random, name: str) -> Trap:
    k = rng.randint(2, 20)
    clean = (
        f"def {name}(xs):\n    makers = []\n    for x in xs:\n"
        f"        makers.append(lambda y, x=x: x * {k} + y)\n    return [make(1) for make in makers]\n"
    )
    dirty = (
        f"def {name}(xs):\n    makers = []\n    for x in xs:\n"
        f"        makers.append(lambda y: x * {k} + y)\n    return [make(1) for make in makers]\n"
    )
    return dirty, clean, dirty, ("B023",), lambda r: ([r.randint(1, 30) for _ in range(r.randint(2, 5))],)


def _two_lists(rng: random.Random) -> Args:
    return tuple([rng.randint(-9, 30) for _ in range(rng.randint(1, 4))] for _ in range(2))


def _texts(rng: random.Random) -> Args:
    return ([rng.choice((str(rng.randint(-9, 99)), "x", "", "7a")) for _ in range(rng.randint(2, 5))],)


_TRAPS: dict[str, Callable[[random.Random, str], Trap]] = {
    "default": _default,
    "bare_except": _bare_except,
    "unused_error": _unused_error,
    "swallowed": _swallowed,
    "zip": _zip,
    "loop_name": _loop_name,
}
