"""Parts shown by three views drawn in characters; the script must give the same part."""

import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from packs.modelling.language import PART, TOLERANCE, hidden
from packs.seeded import Draft

CELL = 5  # millimetres that one character stands for
Block = tuple[int, int, int, int, int, int]  # low corner and size, in cells


def match_views(rng: random.Random) -> Draft:
    blocks = _blocks(rng)
    gold = script(blocks)
    x, y = min(b[0] for b in blocks), min(b[1] for b in blocks)
    text = (
        f"Three views of a part, # is material, one character is {CELL} mm. Front (seen along +y): left to "
        "right is x, bottom row is z = 0. Right (seen along -x): left to right is y, bottom row is z = 0. "
        "Top (seen along -z): left to right is x, top row is the largest y. The part's smallest x is "
        f"{x * CELL}, its smallest y is {y * CELL}. It is the largest part that has these views.\n"
        f"{drawn(blocks)}"
    )
    a, b, c, w, d, h = blocks[-1]
    bad = {
        "one_block": script(blocks[:1]),
        "mirrored": f"{script(blocks)}\npart = mirror(translate(part, x={-2 * x * CELL - 1}), 'x')",
        "higher": script([*blocks[:-1], (a, b, c, w, d, h + 1)]),
        "from_the_origin": script([(a - x + 1, b - y + 1, c, w, d, h) for a, b, c, w, d, h in blocks]),
    }
    return Draft(
        prompt=text,
        system=PART,
        verifier="geometry",
        params={**TOLERANCE, "checks": ["low", "high", "views", "difference"], "views": 0.97},
        reference={"script": gold},
        gold=gold,
        bad=bad,
        layout=f"{len(blocks)} blocks",
        origin="views",
        hidden=hidden(gold),
    )


def script(blocks: Sequence[Block]) -> str:
    made = [_block(block) for block in blocks]
    return f"part = {made[0]}" if len(made) == 1 else f"part = union({', '.join(made)})"


def drawn(blocks: Sequence[Block]) -> str:
    """Front, right and top view as characters."""
    x, y = min(b[0] for b in blocks), min(b[1] for b in blocks)
    size = [max(b[axis] + b[axis + 3] for b in blocks) for axis in range(3)]
    cells: NDArray[np.bool_] = np.zeros((size[0] - x, size[1] - y, size[2]), dtype=bool)
    for a, b, c, w, d, h in blocks:
        cells[a - x : a - x + w, b - y : b - y + d, c : c + h] = True
    views: list[NDArray[np.bool_]] = [np.any(cells, axis=axis).T for axis in (1, 0, 2)]
    named = zip(("Front", "Right", "Top"), views, strict=True)
    return "\n".join(f"{name}:\n{_rows(view[::-1])}" for name, view in named)


def _rows(view: NDArray[np.bool_]) -> str:
    return "\n".join("".join("#" if cell else "." for cell in row) for row in view)


def _blocks(rng: random.Random) -> list[Block]:
    """A base, a block on it, and at times one on that: each within the one below, so that three views
    tell all."""
    w, d, h = rng.randint(5, 10), rng.randint(4, 7), rng.randint(1, 3)
    a, b = rng.randint(-8, -1), rng.randint(-6, -1)
    blocks = [(a, b, 0, w, d, h)]
    for _ in range(rng.choice((1, 1, 2))):
        a0, b0, c0, w0, d0, h0 = blocks[-1]
        if w0 < 3 or d0 < 3:
            break
        w, d, h = rng.randint(1, w0 - 2), rng.randint(1, d0 - 1), rng.randint(1, 4)
        # Never in the middle along x: the mirror image is another part.
        offset = rng.choice([place for place in range(w0 - w + 1) if 2 * place + w != w0])
        blocks.append((a0 + offset, b0 + rng.randint(0, d0 - d), c0 + h0, w, d, h))
    return blocks


def _block(block: Block) -> str:
    a, b, c, w, d, h = (CELL * value for value in block)
    place = {"x": a + w / 2, "y": b + d / 2, "z": c}
    moved = ", ".join(f"{axis}={value:g}" for axis, value in place.items() if value)
    shape = f"box({w}, {d}, {h})"
    return f"translate({shape}, {moved})" if moved else shape
