"""``style_simple``: one line, one rule; made for very small models."""

import random
from collections.abc import Callable

from packs.code_standards.standard import Piece, drafted
from packs.coding.calls import Args
from packs.coding.draft import Draft

_NAMES = ("f", "g", "h", "ok", "test", "pick", "calc", "find", "scan", "run")
Line = tuple[str, str, str, Callable[[random.Random], Args]]  # parameters, body that breaks it, body, draw


def draft(rng: random.Random) -> Draft:
    rule = rng.choice(tuple(_LINES))
    params, broken, right, draw = _LINES[rule](rng)
    name = rng.choice(_NAMES)
    head = f"def {name}({params}): return "
    code = rule.partition("-")[0]
    piece = Piece(
        layout=rule,
        name=name,
        dirty=head + broken,
        clean=head + right,
        rules=(code,),
        draw=draw,
        wrong={"no_return": f"def {name}({params}): {right}"},
    )
    return drafted(piece, rng, prompt=f"Ruff {code}: {head}{broken}", max_tokens=48)


def _maybe(rng: random.Random) -> Args:
    return (rng.choice((None, None, rng.randint(-5, 60))),)


def _number(rng: random.Random) -> Args:
    return (rng.randint(-2, 40),)


def _numbers(rng: random.Random) -> Args:
    return ([rng.randint(-5, 40) for _ in range(rng.randint(1, 6))],)


def _k(rng: random.Random) -> int:
    return rng.randint(2, 30)


def _near(k: int) -> Callable[[random.Random], Args]:
    return lambda rng: (rng.choice((k, k, rng.randint(-2, 60))),)


def _holding(k: int) -> Callable[[random.Random], Args]:
    return lambda rng: (rng.choice(([k], [])) + [rng.randint(-5, 40) for _ in range(rng.randint(1, 5))],)


def _table(k: int) -> Callable[[random.Random], Args]:
    return lambda rng: ({rng.choice((k, k, 61)): 1, rng.randint(-9, 60): 2},)


def _with(make: Callable[[int], Line]) -> Callable[[random.Random], Line]:
    return lambda rng: make(_k(rng))


_LINES: dict[str, Callable[[random.Random], Line]] = {
    "E711-is": lambda r: (v := r.choice("xyab"), f"{v} == None", f"{v} is None", _maybe),
    "E711-not": lambda r: (v := r.choice("xyab"), f"{v} != None", f"{v} is not None", _maybe),
    "E711-or": _with(lambda k: ("x", f"{k} if x == None else x", f"{k} if x is None else x", _maybe)),
    "E714": _with(lambda k: ("x", f"not x is None and x > {k}", f"x is not None and x > {k}", _maybe)),
    "E713": _with(lambda k: ("xs", f"not {k} in xs", f"{k} not in xs", _holding(k))),
    "F632": _with(lambda k: ("x", f"x is {k}", f"x == {k}", _near(k))),
    "SIM201": _with(lambda k: ("x", f"not x == {k}", f"x != {k}", _near(k))),
    "SIM300": _with(lambda k: ("x", f"{k} == x", f"x == {k}", _near(k))),
    "SIM118": _with(lambda k: ("d", f"{k} in d.keys()", f"{k} in d", _table(k))),
    "C400": _with(lambda k: ("xs", f"list(x * {k} for x in xs)", f"[x * {k} for x in xs]", _numbers)),
    "C401": _with(lambda k: ("xs", f"set(x % {k} for x in xs)", f"{{x % {k} for x in xs}}", _numbers)),
    "C416": lambda r: ("xs", f"[{(v := r.choice('abxyz'))} for {v} in xs]", "list(xs)", _numbers),
    "C419-any": _with(lambda k: ("xs", f"any([x > {k} for x in xs])", f"any(x > {k} for x in xs)", _numbers)),
    "C419-all": _with(lambda k: ("xs", f"all([x < {k} for x in xs])", f"all(x < {k} for x in xs)", _numbers)),
    "RUF005": _with(lambda k: ("xs", f"xs + [{k}]", f"[*xs, {k}]", _numbers)),
    "PLR1714": _with(lambda k: ("x", f"x == {k} or x == {k + 1}", f"x in ({k}, {k + 1})", _near(k))),
}
