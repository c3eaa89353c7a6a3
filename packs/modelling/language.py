"""The script language of parts, as tasks explain it, and the words they share.

The functions themselves run in the sandbox image ``modelling``; lengths are millimetres.
"""

import math

from domain.contracts.tasks import HiddenCheck, VerifierSpec

SYSTEM = (
    "You write Python scripts that make parts. Lengths are in mm, angles in degrees. Functions: "
    "box(x, y, z), cylinder(r, h), cone(r1, r2, h), sphere(r), tube(r, bore, h), extrude([(x, y), …], h), "
    "union(a, b, …), difference(a, b, …), intersection(a, b, …), translate(a, x, y, z), rotate(a, x, y, z), "
    "mirror(a, 'x'), pattern(a, n, dx, dy, dz), ring(a, n). "
    "Shapes stand on z = 0 and are centred on the z axis. "
)
PART = SYSTEM + "Assign the result to part. Answer with the script alone."
SCENE = SYSTEM + "Assign a dictionary of names and solids to scene. Answer with the script alone."

# A fifth of a percent of the volume may differ: a circle of another number of sides is still right.
TOLERANCE = {"relative": 0.003, "difference": 0.002}
# Stricter than what is trained on: a quarter of the tolerance, and how it looks from six sides.
STRICT = {"checks": ["difference", "views", "bodies"], "difference": 0.0005, "views": 0.99}


def hidden(script: str) -> HiddenCheck:
    return HiddenCheck(verifier=VerifierSpec(kind="geometry", params=STRICT), reference={"script": script})


def disc(r: float) -> float:
    """Area of a circle as the language draws it: 64 sides."""
    return 32 * r * r * math.sin(2 * math.pi / 64)


def number(value: float) -> str:
    """As a script writes it: no trailing zeros."""
    return f"{value:g}"
