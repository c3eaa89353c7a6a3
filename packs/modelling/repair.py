"""A script with a mistake and what the part should have been: the script must be put right."""

import random

from packs.modelling.language import PART, TOLERANCE, hidden
from packs.modelling.parts import bracket, drilled, plate, shaft
from packs.seeded import Draft

_KINDS = (drilled, plate, bracket, shaft)
_SYNTAX = "does_not_run"


def fix_script(rng: random.Random) -> Draft:
    wanted = rng.choice(_KINDS)(rng)
    assert isinstance(wanted.gold, str)
    mistakes = {name: str(text) for name, text in wanted.bad.items()}
    mistakes[_SYNTAX] = wanted.gold.replace("part = ", "part == ", 1)
    name = rng.choice(sorted(mistakes))
    what = "does not run" if name == _SYNTAX else "makes another part"
    text = f"{wanted.prompt}\n\nThis script {what}. Put it right.\n{mistakes[name]}"
    bad = {"unchanged": mistakes[name], "explained": f"The script {what}: {name.replace('_', ' ')}."}
    other = next(other for other in sorted(mistakes) if other != name)
    bad["another_mistake"] = mistakes[other]
    return Draft(
        prompt=text,
        system=PART,
        verifier="geometry",
        params=TOLERANCE,
        reference={"script": wanted.gold},
        gold=wanted.gold,
        bad=bad,
        layout=name,
        origin=wanted.layout,
        hidden=hidden(wanted.gold),
    )
