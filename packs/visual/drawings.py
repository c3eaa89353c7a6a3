"""Drawings: shapes are counted, a neighbour is named, a measure is worked out from others."""

import random

from packs.seeded import Draft
from packs.visual.canvas import Canvas

_COLOURS = {"red": "#c9352b", "blue": "#2f55c9", "green": "#1d8a4a", "orange": "#e08a1e", "black": "#1c1d1f"}
_SHAPES = ("circle", "square", "triangle")
_CELL, _R = 76, 24
_COLUMNS, _ROWS = 6, 4


def count(rng: random.Random) -> Draft:
    """Shapes of one colour and kind on a grid that is not full."""
    placed = _scatter(rng, rng.randint(12, 18))
    colour, shape = rng.choice(list(placed.values()))
    right = sum(found == (colour, shape) for found in placed.values())
    same_colour = sum(found[0] == colour for found in placed.values())
    wrong = dict.fromkeys(
        n for n in (same_colour, right + 1, right + 2, len(placed), right - 1) if n != right
    )
    return Draft(
        prompt=f"How many {colour} {shape}s does the drawing show? Answer with the number only.",
        verifier="numeric",
        params={},
        reference=right,
        gold=str(right),
        bad=dict(zip(("another count", "a second", "a third"), map(str, wrong), strict=False)),
        layout="shapes",
        origin=f"{colour} {shape}",
        image=lambda: _drawn(placed),
        image_key=f"{sorted(placed.items())} {colour} {shape}",
    )


def neighbour(rng: random.Random) -> Draft:
    """What lies directly beside the one shape of its kind and colour."""
    row = rng.randrange(_ROWS)
    placed = _scatter(rng, _COLUMNS * _ROWS)
    at = (rng.randrange(1, _COLUMNS - 1), row)
    side, step = rng.choice((("left", -1), ("right", 1)))
    middle = placed[at]
    for cell, found in placed.items():
        if cell != at and found == middle:  # the shape that is spoken of is the only one
            others = [name for name in _COLOURS if name != middle[0]]
            placed[cell] = (rng.choice(others), found[1])
    colour, shape = placed[at[0] + step, at[1]]
    right = f"{colour} {shape}"
    far = placed[at[0] - step, at[1]]
    candidates = (
        f"{far[0]} {far[1]}",
        f"{middle[0]} {middle[1]}",
        *(f"{c} {s}" for c in _COLOURS for s in _SHAPES),
    )
    wrong = dict.fromkeys(name for name in candidates if name != right)
    return Draft(
        prompt=f"What is directly to the {side} of the {middle[0]} {middle[1]}? Answer with its colour and "
        "shape, for example: blue circle",
        verifier="exact",
        params={"normalize": True},
        reference=right,
        gold=right,
        bad=dict(zip(("other side", "itself", "another"), wrong, strict=False)),
        layout="neighbours",
        origin=f"{middle[0]} {middle[1]}",
        image=lambda: _drawn(placed),
        image_key=f"{sorted(placed.items())} {at} {side}",
    )


def measure(rng: random.Random) -> Draft:
    """A plate with two holes, dimensioned from its left edge; asked is the distance between them, or from the
    second to the right edge."""
    width = rng.randrange(120, 201, 5)
    first = rng.randrange(15, width // 2 - 10)
    second = rng.randrange(first + 20, width - 14)
    between = rng.random() < 0.5
    right = second - first if between else width - second
    asked = (
        "between the centres of the two holes"
        if between
        else "from the centre of the right hole to the right edge"
    )
    other = width - second if between else second - first
    wrong = dict.fromkeys(n for n in (second, other, first, width, right + 5) if n != right)
    return Draft(
        prompt=f"All measures are in millimetres. What is the distance {asked}? Answer with the number only.",
        verifier="numeric",
        params={},
        reference=right,
        gold=str(right),
        bad=dict(
            zip(
                ("a measure as drawn", "the other distance", "another measure"), map(str, wrong), strict=False
            )
        ),
        layout="plate",
        origin="between" if between else "edge",
        image=lambda: _plate(width, first, second),
        image_key=f"{width} {first} {second} {between}",
    )


def _scatter(rng: random.Random, count: int) -> dict[tuple[int, int], tuple[str, str]]:
    cells = [(column, row) for column in range(_COLUMNS) for row in range(_ROWS)]
    return {cell: (rng.choice(list(_COLOURS)), rng.choice(_SHAPES)) for cell in rng.sample(cells, count)}


def _drawn(placed: dict[tuple[int, int], tuple[str, str]]) -> bytes:
    canvas = Canvas(_COLUMNS * _CELL + 20, _ROWS * _CELL + 20)
    for (column, row), (colour, shape) in placed.items():
        x, y, fill = 10 + _CELL * (column + 0.5), 10 + _CELL * (row + 0.5), _COLOURS[colour]
        if shape == "circle":
            canvas.ellipse((x - _R, y - _R, x + _R, y + _R), fill=fill)
        elif shape == "square":
            canvas.box((x - _R, y - _R, x + _R, y + _R), fill=fill)
        else:
            canvas.polygon([(x, y - _R), (x + _R, y + _R), (x - _R, y + _R)], fill)
    return canvas.png()


def _plate(width: int, first: int, second: int) -> bytes:
    scale, left, top, height = 2.4, 40, 110, 90
    canvas = Canvas(560, 300)
    canvas.box((left, top, left + width * scale, top + height), fill="#eceff4", outline="#1c1d1f")
    for x in (first, second):
        middle = left + x * scale
        canvas.ellipse((middle - 12, top + 33, middle + 12, top + 57), fill="white", outline="#1c1d1f")
        canvas.line([(middle, top - 8), (middle, top + height + 8)], "#8a8a85")
    for x, y in ((first, top - 30), (second, top - 62), (width, top + height + 50)):
        end = left + x * scale
        edge = top if y < top else top + height
        for side in (left, end):
            canvas.line([(side, edge), (side, y)], "#8a8a85")
        canvas.line([(left, y), (end, y)], "#1c1d1f")
        for tip, inward in ((left, 6), (end, -6)):
            canvas.polygon([(tip, y), (tip + inward, y - 3), (tip + inward, y + 3)], "#1c1d1f")
        canvas.text(((left + end) / 2, y - 9), str(x), size=13, anchor="mm")
    return canvas.png()
