"""Parts described in words: block, bar, tube, drilled block, plate, bracket, flange, shaft."""

import random
from typing import Any

from packs.modelling.language import PART, TOLERANCE, hidden
from packs.seeded import Draft


def block(rng: random.Random) -> Draft:
    """Short enough for a very small model: one call, three numbers."""
    x, y, z = rng.sample(range(2, 80), 3)
    layout = rng.randrange(4)
    text = (
        f"box(x, y, z) script: block {x} by {y} by {z}",
        f"Script with box(x, y, z): a block, {x} x {y} x {z} mm",
        f"part = box(x, y, z), for {x} mm long, {y} mm wide, {z} mm high",
        f"A {x} x {y} x {z} block as a script: part = box(x, y, z)",
    )[layout]
    gold = f"part = box({x}, {y}, {z})"
    bad = {
        "swapped": f"part = box({z}, {y}, {x})",
        "off_by_one": f"part = box({x}, {y + 1}, {z})",
        "unnamed": f"box({x}, {y}, {z})",
        "words": f"{x} x {y} x {z}",
    }
    return _draft(text, gold, bad, f"{layout}", system="")


def bar(rng: random.Random) -> Draft:
    """As short: a round bar, by radius or by diameter."""
    r, h = rng.randint(2, 40), rng.randint(5, 99)
    if r == h:
        h += 1
    layout = rng.randrange(4)
    text = (
        f"cylinder(r, h) script: bar of radius {r}, height {h}",
        f"cylinder(r, h) script: bar of diameter {2 * r}, height {h}",
        f"Script with cylinder(r, h): round bar, {2 * r} mm across, {h} mm high",
        f"part = cylinder(r, h), for r {r} mm and {h} mm high",
    )[layout]
    gold = f"part = cylinder(r={r}, h={h})"
    bad = {
        "diameter": f"part = cylinder(r={2 * r}, h={h})",
        "swapped": f"part = cylinder(r={h}, h={r})",
        "box": f"part = box({2 * r}, {2 * r}, {h})",
        "unnamed": f"cylinder(r={r}, h={h})",
    }
    return _draft(text, gold, bad, f"{layout}", system="")


def tube(rng: random.Random) -> Draft:
    bore, wall, h = rng.randint(3, 30), rng.randint(2, 9), rng.randint(10, 99)
    r = bore + wall
    text = (
        f"A tube {h} mm high with an inner radius of {bore} mm and an outer radius of {r} mm.",
        f"A tube {h} mm high, {2 * r} mm across outside, with a wall of {wall} mm.",
        f"A sleeve: bore {2 * bore} mm in diameter, wall {wall} mm, height {h} mm.",
    )
    layout = rng.randrange(len(text))
    gold = f"part = tube(r={r}, bore={bore}, h={h})"
    bad = {
        "solid": f"part = cylinder(r={r}, h={h})",
        "thin": f"part = tube(r={r}, bore={bore + wall / 2:g}, h={h})",
        "blind": f"part = cylinder(r={r}, h={h}) - translate(cylinder(r={bore}, h={h}), z=1)",
    }
    return _draft(text[layout], gold, bad, f"{layout}")


def drilled(rng: random.Random) -> Draft:
    x, y, z = rng.randint(20, 80), rng.randint(20, 60), rng.randint(4, 30)
    r = rng.randint(2, min(x, y) // 2 - 3)
    dx = rng.choice((0, 0, rng.randint(1, max(1, x // 2 - r - 2))))
    where = "in the middle" if not dx else f"whose axis is at x = {dx}, y = 0"
    text = f"A block {x} × {y} × {z} mm with a through hole {2 * r} mm in diameter along z, {where}."
    hole = f"cylinder(r={r}, h={z})" if not dx else f"translate(cylinder(r={r}, h={z}), x={dx})"
    gold = f"part = difference(box({x}, {y}, {z}), {hole})"
    bad = {
        "no_hole": f"part = box({x}, {y}, {z})",
        "blind": f"part = difference(box({x}, {y}, {z}), translate({hole}, z=1))",
        "diameter": f"part = difference(box({x}, {y}, {z}), {hole.replace(f'r={r}', f'r={r + 2}')})",
        "aside": f"part = difference(box({x}, {y}, {z}), translate({hole}, y=2))",
    }
    return _draft(text, gold, bad, "off" if dx else "middle")


def plate(rng: random.Random) -> Draft:
    columns, rows, r = rng.randint(2, 5), rng.randint(1, 4), rng.randint(2, 5)
    pitch = 2 * r + rng.randint(4, 12)
    edge = r + rng.randint(3, 9)
    z = rng.randint(2, 12)
    x, y = (columns - 1) * pitch + 2 * edge, (rows - 1) * pitch + 2 * edge
    text = (
        f"A plate {x} × {y} × {z} mm with {columns * rows} through holes {2 * r} mm in diameter, in "
        f"{columns} columns along x and {rows} row{'s' if rows > 1 else ''} along y, {pitch} mm apart from "
        "centre to centre, the whole pattern in the middle of the plate."
    )

    def script(columns: int, pitch: float, r: int) -> str:
        left, front = -(columns - 1) * pitch / 2, -(rows - 1) * pitch / 2
        return (
            f"hole = translate(cylinder(r={r}, h={z}), x={left:g}, y={front:g})\n"
            f"holes = pattern(pattern(hole, {columns}, dx={pitch:g}), {rows}, dy={pitch:g})\n"
            f"part = difference(box({x}, {y}, {z}), holes)"
        )

    bad = {
        "one_less": script(columns - 1, pitch, r),
        "narrow": script(columns, pitch - 1, r),
        "wide_holes": script(columns, pitch, r + 1),
        "not_centred": script(columns, pitch, r).replace("x=-", "x=1-", 1),
    }
    return _draft(text, script(columns, pitch, r), bad, f"{columns}x{rows}")


def bracket(rng: random.Random) -> Draft:
    length, width, height = rng.randint(30, 80), rng.randint(20, 50), rng.randint(25, 70)
    t, r = rng.randint(3, 8), rng.randint(2, 5)
    text = (
        f"An L-shaped bracket {width} mm wide along y. Its base is {length} mm long along x, {t} mm thick, "
        f"and lies on z = 0 centred on the z axis. A wall {t} mm thick, {height} mm high in all, stands on "
        f"the base's end at the smallest x. The base has a through hole {2 * r} mm in diameter on the z axis."
    )

    def script(t: float, height: float, hole: bool, side: int) -> str:
        wall = f"translate(box({t:g}, {width}, {height:g}), x={side * (length - t) / 2:g})"
        cut = f" - cylinder(r={r}, h={t:g})" if hole else ""
        return f"part = (box({length}, {width}, {t:g}) + {wall}){cut}"

    bad = {
        "no_hole": script(t, height, False, -1),
        "other_end": script(t, height, True, 1),
        "too_high": script(t, height + t, True, -1),
        "thin": script(t - 1, height, True, -1),
    }
    return _draft(text, script(t, height, True, -1), bad, "corner")


def flange(rng: random.Random) -> Draft:
    parameters = flange_parameters(rng)
    bad = {
        "no_bolts": flange_script({**parameters, "bolts": 0}),
        "one_less": flange_script({**parameters, "bolts": parameters["bolts"] - 1}),
        "no_bore": flange_script({**parameters, "bore": 0}),
        "circle": flange_script({**parameters, "circle": parameters["circle"] + 3}),
    }
    text = flange_text(parameters)
    return _draft(text, flange_script(parameters), bad, f"{parameters['bolts']} bolts")


def flange_parameters(rng: random.Random) -> dict[str, Any]:
    bore, wall, bolt = rng.randint(4, 12), rng.randint(3, 6), rng.randint(2, 4)
    hub = bore + wall
    circle = hub + bolt + rng.randint(3, 8)
    return {
        "bore": bore,
        "hub": hub,
        "bolt": bolt,
        "circle": circle,
        "r": circle + bolt + rng.randint(3, 8),
        "t": rng.randint(4, 10),
        "height": rng.randint(15, 40),
        "bolts": rng.randint(3, 8),
    }


def flange_text(p: dict[str, Any]) -> str:
    return (
        f"A flange: a disc of radius {p['r']} mm and thickness {p['t']} mm, on it a hub of radius "
        f"{p['hub']} mm, {p['height']} mm high in all (measured from z = 0). A bore of radius {p['bore']} mm "
        f"goes through both. {p['bolts']} bolt holes of radius {p['bolt']} mm are spread evenly on a "
        f"circle of radius {p['circle']} mm, the first on the x axis."
    )


def flange_script(p: dict[str, Any]) -> str:
    cuts = []
    if p["bore"]:
        cuts.append(f"cylinder(r={p['bore']}, h={p['height']})")
    if p["bolts"]:
        cuts.append(f"ring(translate(cylinder(r={p['bolt']}, h={p['t']}), x={p['circle']}), {p['bolts']})")
    body = f"body = union(cylinder(r={p['r']}, h={p['t']}), cylinder(r={p['hub']}, h={p['height']}))"
    return f"{body}\npart = difference({', '.join(['body', *cuts])})"


def shaft(rng: random.Random) -> Draft:
    count = rng.randint(3, 5)
    steps: list[tuple[int, int]] = []
    for _ in range(count):
        r = rng.choice([value for value in range(4, 25) if not steps or value != steps[-1][0]])
        steps.append((r, rng.randint(5, 30)))
    words = ", ".join(f"{2 * r} × {h}" for r, h in steps)
    text = (
        f"A stepped shaft along z that starts at z = 0. Its sections from the bottom up, each diameter × "
        f"length in mm: {words}."
    )

    def script(steps: list[tuple[int, int]]) -> str:
        z, lines = 0, []
        for r, h in steps:
            lines.append(f"translate(cylinder(r={r}, h={h}), z={z})")
            z += h
        return "part = union(\n    " + ",\n    ".join(lines) + ",\n)"

    first = steps[0]
    bad = {
        "section_missing": script(steps[:-1]),
        "upside_down": script(
            steps[::-1] if steps[::-1] != steps else [(first[0] + 1, first[1]), *steps[1:]]
        ),
        "diameter": script([(2 * r, h) for r, h in steps]),
        "all_at_zero": "part = union(" + ", ".join(f"cylinder(r={r}, h={h})" for r, h in steps) + ")",
    }
    return _draft(text, script(steps), bad, f"{count} sections")


def _draft(text: str, gold: str, bad: dict[str, str], layout: str, *, system: str = PART) -> Draft:
    return Draft(
        prompt=text,
        system=system,
        verifier="geometry",
        params=TOLERANCE,
        reference={"script": gold},
        gold=gold,
        bad=bad,
        layout=layout,
        origin="words",
        hidden=hidden(gold),
    )
