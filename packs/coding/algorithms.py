"""Functions with a loop worth thinking about, each with constants that change what is right."""

import random
from collections.abc import Callable

from packs.coding import number_bodies, text_bodies
from packs.coding.body import Body
from packs.coding.calls import Shape
from packs.coding.pipelines import NAMES


def shape(rng: random.Random) -> Shape:
    """One of the bodies below. A wrong answer is the right source with one text changed."""
    layout = rng.choice(tuple(BODIES))
    params, text, body, changes, draw = BODIES[layout](rng)
    name = rng.choice(NAMES)
    head = f"def {name}({params}):\n"
    lines = [line[4:] if line.startswith("    ") else line for line in body.strip("\n").splitlines()]
    source = head + "".join(f"    {line}\n" if line else "\n" for line in lines)
    wrong = tuple(source.replace(old, new, 1) for old, new in changes)
    return Shape(layout, name, params, text, source, wrong, draw)


BODIES: dict[str, Callable[[random.Random], Body]] = {
    "runs": text_bodies.runs,
    "shift": text_bodies.shift,
    "chunks": number_bodies.chunks,
    "windows": number_bodies.windows,
    "brackets": text_bodies.brackets,
    "base": number_bodies.base,
    "merge": number_bodies.merge,
    "clamp": number_bodies.clamp,
    "pairs": number_bodies.pairs,
    "longest": number_bodies.longest,
    "checksum": text_bodies.checksum,
    "zigzag": number_bodies.zigzag,
    "matrix": number_bodies.matrix,
    "group": text_bodies.group,
    "discount": number_bodies.discount,
}
