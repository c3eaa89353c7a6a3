"""Scenes of parts: a stable stack, a bridge, parts side by side on a small floor."""

import random
from itertools import pairwise
from typing import Any

from packs.modelling.language import SCENE
from packs.seeded import Draft

_NAMES = ("red", "blue", "green", "grey", "black", "white")


def stack(rng: random.Random) -> Draft:
    """Boxes on top of each other, in the order told, so that nothing tips over."""
    count = rng.randint(2, 4)
    names = rng.sample(_NAMES, count)
    sizes = {name: (rng.randint(10, 40), rng.randint(10, 40), rng.randint(5, 25)) for name in names}
    order = " on ".join(reversed(names))
    text = (
        f"{_boxes(sizes)} Stack them: {order}, {names[0]} on the floor z = 0. Each rests flat on the one "
        f"below, none collides, and the stack stands by itself."
    )
    goals = {"on": [[upper, lower] for lower, upper in pairwise(names)]}
    goals["on"].append([names[0], "floor"])

    def script(*, gap: float = 0.0, aside: float = 0.0, skip: int = 0) -> str:
        z, entries = 0.0, []
        for place, name in enumerate(names[: count - skip]):
            at = {"x": aside if place == count - 1 else 0.0, "z": z}
            entries.append(_entry(name, sizes[name], at))
            z += sizes[name][2] + gap
        return _scene(entries)

    below, top = sizes[names[-2]], sizes[names[-1]]
    bad = {
        "floating": script(gap=2),
        "sunk": script(gap=-2),
        "tips_over": script(aside=below[0] / 2 + min(3, top[0] / 4)),
        "one_missing": script(skip=1),
        "side_by_side": _scene(
            [_entry(name, sizes[name], {"x": 50.0 * place}) for place, name in enumerate(names)]
        ),
    }
    return _draft(text, sizes, {**goals}, script(), bad, f"{count} boxes", "stack")


def bridge(rng: random.Random) -> Draft:
    """A beam across two pillars, at a height that both must have."""
    height, thick, width = rng.randint(20, 50), rng.randint(4, 9), rng.randint(10, 20)
    pillar, span = rng.randint(8, 15), rng.randint(30, 70)
    sizes = {
        "left": (pillar, width, height),
        "right": (pillar, width, height),
        "beam": (span + 2 * pillar, width, thick),
    }
    text = (
        f"{_boxes(sizes)} Build a bridge along x: the beam lies across both pillars, which stand on the "
        f"floor z = 0 at least {span} mm apart (between their facing sides)."
    )
    goals = {
        "on": [["beam", "left"], ["beam", "right"], ["left", "floor"], ["right", "floor"]],
        "apart": [["left", "right", span]],
    }
    x = (span + pillar) / 2

    def script(x: float, z: float, beam: float = 0.0) -> str:
        return _scene(
            [
                _entry("left", sizes["left"], {"x": -x}),
                _entry("right", sizes["right"], {"x": x}),
                _entry("beam", sizes["beam"], {"x": beam, "z": z}),
            ]
        )

    bad = {
        "beam_on_floor": _scene(
            [
                _entry("left", sizes["left"], {"x": -x}),
                _entry("right", sizes["right"], {"x": x}),
                _entry("beam", sizes["beam"], {"y": 2.0 * width}),
            ]
        ),
        "floating": script(x, height + 1),
        "narrow": script(x - 4, height),
        "one_pillar": script(x, height, beam=span + pillar),
    }
    return _draft(text, sizes, goals, script(x, height), bad, "beam", "bridge")


def floor(rng: random.Random) -> Draft:
    """Parts side by side on a floor that is just large enough, none over its edge."""
    count = rng.randint(3, 5)
    names = rng.sample(_NAMES, count)
    sizes = {name: (rng.randint(8, 30), rng.randint(8, 30), rng.randint(4, 20)) for name in names}
    gap = rng.randint(1, 3)
    wide = sum(size[0] for size in sizes.values()) + gap * (count - 1)
    deep = max(size[1] for size in sizes.values())
    text = (
        f"{_boxes(sizes)} Place them on the floor z = 0 so that none collides with another and all lie "
        f"within x from 0 to {wide} and y from 0 to {deep}."
    )
    goals = {"within": [wide, deep], "on": [[name, "floor"] for name in names]}

    def script(start: float, step: float) -> str:
        x, entries = start, []
        for name in names:
            w, d, _ = sizes[name]
            entries.append(_entry(name, sizes[name], {"x": x + w / 2, "y": d / 2}))
            x += w + step
        return _scene(entries)

    bad = {
        "over_the_edge": script(0.0, gap + 2),
        "colliding": script(0.0, -2.0),
        "centred": script(-wide / 2, gap),
        "one_missing": _scene([_entry(names[0], sizes[names[0]], {"x": sizes[names[0]][0] / 2})]),
    }
    return _draft(text, sizes, goals, script(0.0, gap), bad, f"{count} boxes", "floor")


def _draft(
    text: str,
    sizes: dict[str, tuple[int, int, int]],
    goals: dict[str, Any],
    gold: str,
    bad: dict[str, str],
    layout: str,
    origin: str,
) -> Draft:
    w, d, h = next(iter(sizes.values()))
    first = next(iter(sizes))
    changed = gold.replace(f"box({w}, {d}, {h})", f"box({w}, {d}, {h + 1})", 1)
    return Draft(
        prompt=text,
        system=SCENE,
        verifier="scene",
        params={"goals": goals},
        reference={"parts": {name: f"part = {_box(size)}" for name, size in sizes.items()}},
        gold=gold,
        bad={**bad, "another_part": changed, "renamed": gold.replace(f'"{first}"', '"box"')},
        layout=layout,
        origin=origin,
    )


def _boxes(sizes: dict[str, tuple[int, int, int]]) -> str:
    listed = ", ".join(f"{name} {w} × {d} × {h}" for name, (w, d, h) in sizes.items())
    return f"Boxes (x × y × z in mm, not to be changed): {listed}."


def _box(size: tuple[int, int, int]) -> str:
    return f"box({size[0]}, {size[1]}, {size[2]})"


def _entry(name: str, size: tuple[int, int, int], at: dict[str, float]) -> str:
    moved = ", ".join(f"{axis}={value:g}" for axis, value in at.items() if value)
    return f'    "{name}": ' + (f"translate({_box(size)}, {moved})" if moved else _box(size)) + ","


def _scene(entries: list[str]) -> str:
    return "scene = {\n" + "\n".join(entries) + "\n}"
