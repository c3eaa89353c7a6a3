"""Parts made in a loop: run a script, read what was measured, adjust, submit."""

import json
import random
from typing import Any

from packs.modelling.language import SYSTEM, TOLERANCE, disc, hidden
from packs.modelling.parts import flange_parameters, flange_script, flange_text
from packs.seeded import Draft

LOOP = (
    f"{SYSTEM}Assign the result to part. You may run scripts and see what their part measures; then submit."
)
MAX_TURNS = 6


def build_flange(rng: random.Random) -> Draft:
    """A flange from its description, with measurements to check it by."""
    p = flange_parameters(rng)
    gold, wrong = flange_script(p), flange_script({**p, "bolts": 0})
    near = flange_script({**p, "bolts": p["bolts"] - 1})
    target = {
        "volume": _flange_volume(p),
        "low": [-p["r"], -p["r"], 0],
        "high": [p["r"], p["r"], p["height"]],
        "genus": 1 + p["bolts"],
        "bodies": 1,
    }
    return _draft(
        flange_text(p), target, gold, wrong, layout=f"{p['bolts']} bolts", origin="flange", near=near
    )


def fit_volume(rng: random.Random) -> Draft:
    """A box with a bore whose radius has to be found: only the volume is told."""
    x, y, z = rng.randint(30, 70), rng.randint(30, 70), rng.randint(5, 30)
    r = rng.randint(5, min(x, y) // 2 - 4)
    volume = x * y * z - disc(r) * z
    text = (
        f"A block {x} × {y} × {z} mm with one through hole along z in the middle. Its volume must be "
        f"{volume:.0f} mm³; the hole's radius is a whole number of millimetres. Find it."
    )
    target = {
        "volume": volume,
        "low": [-x / 2, -y / 2, 0],
        "high": [x / 2, y / 2, z],
        "genus": 1,
        "bodies": 1,
    }

    def script(r: int) -> str:
        return f"part = difference(box({x}, {y}, {z}), cylinder(r={r}, h={z}))"

    block = f"part = box({x}, {y}, {z})"
    return _draft(text, target, script(r), block, layout="bore", origin="volume", near=script(r - 1))


def _draft(
    text: str, target: dict[str, Any], gold: str, wrong: str, *, layout: str, origin: str, near: str = ""
) -> Draft:
    run_wrong, run_gold = _turn("run_script", code=wrong), _turn("run_script", code=gold)
    return Draft(
        prompt=text,
        system=LOOP,
        verifier="geometry",
        params=TOLERANCE,
        reference={"script": gold, "target": target},
        gold=(run_wrong, run_gold, _turn("submit")),
        bad={
            "first_try": (run_wrong, _turn("submit")),
            **({"next_to_it": (_turn("run_script", code=near), _turn("submit"))} if near else {}),
            "never_submitted": (run_gold, "That is it."),
            "submits_words": (run_gold, _turn("submit", code="The part is done.")),
            "claims": (_turn("submit", code="volume = 1\nprint('volume:', volume, 'passed')"),),
        },
        layout=layout,
        origin=origin,
        environment_params={"constraints": {**target, "relative": 0.003}, "max_turns": MAX_TURNS},
        hidden=hidden(gold),
    )


def _flange_volume(p: dict[str, Any]) -> float:
    body = disc(p["r"]) * p["t"] + disc(p["hub"]) * (p["height"] - p["t"])
    return float(body - disc(p["bore"]) * p["height"] - p["bolts"] * disc(p["bolt"]) * p["t"])


def _turn(tool: str, **arguments: str) -> str:
    return json.dumps({"tool": tool, "arguments": arguments})
