"""The script language of the modelling tasks; runs inside a sandbox.

Lengths are millimetres, angles degrees. A shape is a solid; every function returns a new one.
Primitives stand on z = 0 and are centred on the z axis, so that ``difference(box(40, 30, 10),
cylinder(r=5, h=10))`` is a plate with a hole in its middle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import manifold3d as kernel  # type: ignore[import-not-found]

SEGMENTS = 64  # of a full circle
LARGEST = 10_000.0
MOST_COPIES = 200


class Solid:
    """A closed solid. ``a + b`` joins, ``a - b`` cuts, ``a & b`` keeps what both have."""

    def __init__(self, body: kernel.Manifold) -> None:
        self.body = body

    def __add__(self, other: Solid) -> Solid:
        return union(self, other)

    def __sub__(self, other: Solid) -> Solid:
        return difference(self, other)

    def __and__(self, other: Solid) -> Solid:
        return intersection(self, other)


def box(x: float, y: float, z: float) -> Solid:
    """A block x by y by z."""
    x, y, z = _lengths(x=x, y=y, z=z)
    return _moved(Solid(kernel.Manifold.cube((x, y, z))), -x / 2, -y / 2, 0.0)


def cylinder(r: float, h: float) -> Solid:
    """A round bar of radius r and height h."""
    r, h = _lengths(r=r, h=h)
    return Solid(kernel.Manifold.cylinder(h, r, r, SEGMENTS))


def cone(r1: float, r2: float, h: float) -> Solid:
    """Radius r1 at the bottom, r2 at the top (0: a point)."""
    r1, h = _lengths(r1=r1, h=h)
    r2 = _number("r2", r2)
    if not 0 <= r2 <= LARGEST:
        raise ValueError(f"r2 must be from 0 to {LARGEST:g}")
    return Solid(kernel.Manifold.cylinder(h, r1, r2, SEGMENTS))


def sphere(r: float) -> Solid:
    """A ball of radius r around the origin."""
    (r,) = _lengths(r=r)
    return Solid(kernel.Manifold.sphere(r, SEGMENTS))


def tube(r: float, bore: float, h: float) -> Solid:
    """A cylinder of outer radius r with a through hole of radius bore."""
    r, bore, h = _lengths(r=r, bore=bore, h=h)
    if bore >= r:
        raise ValueError("the bore must be smaller than r")
    return difference(cylinder(r, h), cylinder(bore, h))


def extrude(points: Iterable[tuple[float, float]], h: float) -> Solid:
    """The polygon ``[(x, y), …]`` pulled up to height h."""
    (h,) = _lengths(h=h)
    corners = [(_number("x", x), _number("y", y)) for x, y in points]
    if len(corners) < 3 or any(abs(value) > LARGEST for corner in corners for value in corner):
        raise ValueError("a polygon has three corners or more, none of them far out")
    outline = kernel.CrossSection([corners])
    if outline.area() <= 0:
        outline = kernel.CrossSection([corners[::-1]])
    return Solid(kernel.Manifold.extrude(outline, h))


def union(*solids: Solid) -> Solid:
    """All of them joined."""
    return _joined(solids, kernel.OpType.Add)


def difference(solid: Solid, *cuts: Solid) -> Solid:
    """The first without all the others."""
    return _joined((solid, *cuts), kernel.OpType.Subtract)


def intersection(*solids: Solid) -> Solid:
    """What all of them share."""
    return _joined(solids, kernel.OpType.Intersect)


def translate(solid: Solid, x: float = 0, y: float = 0, z: float = 0) -> Solid:
    return _moved(_solid(solid), _number("x", x), _number("y", y), _number("z", z))


def rotate(solid: Solid, x: float = 0, y: float = 0, z: float = 0) -> Solid:
    """Turned about the x, then the y, then the z axis."""
    angles = tuple(_number(name, value) for name, value in (("x", x), ("y", y), ("z", z)))
    return Solid(_solid(solid).body.rotate(angles))


def mirror(solid: Solid, axis: str) -> Solid:
    """Reflected at the plane through the origin across ``"x"``, ``"y"`` or ``"z"``."""
    if axis not in ("x", "y", "z"):
        raise ValueError("the axis is one of 'x', 'y', 'z'")
    return Solid(_solid(solid).body.mirror(tuple(float(axis == name) for name in "xyz")))


def pattern(solid: Solid, n: int, dx: float = 0, dy: float = 0, dz: float = 0) -> Solid:
    """n copies in a row, each moved by (dx, dy, dz) from the one before, joined."""
    step = (_number("dx", dx), _number("dy", dy), _number("dz", dz))
    copies = range(_count(n))
    return union(*(translate(solid, *(index * length for length in step)) for index in copies))


def ring(solid: Solid, n: int) -> Solid:
    """n copies turned evenly about the z axis, joined."""
    count = _count(n)
    return union(*(rotate(solid, z=360.0 * index / count) for index in range(count)))


VOCABULARY: dict[str, Callable[..., Solid]] = {
    function.__name__: function
    for function in (
        box, cylinder, cone, sphere, tube, extrude, union, difference, intersection,
        translate, rotate, mirror, pattern, ring,
    )
}  # fmt: skip


def _joined(solids: tuple[Solid, ...], how: kernel.OpType) -> Solid:
    if not solids:
        raise ValueError("at least one solid is needed")
    return Solid(kernel.Manifold.batch_boolean([_solid(solid).body for solid in solids], how))


def _moved(solid: Solid, x: float, y: float, z: float) -> Solid:
    return Solid(solid.body.translate((x, y, z)))


def _solid(value: object) -> Solid:
    if not isinstance(value, Solid):
        raise TypeError(f"a solid is needed here, not {type(value).__name__}")
    return value


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} must be a number")
    return float(value)


def _lengths(**values: object) -> list[float]:
    found = []
    for name, value in values.items():
        length = _number(name, value)
        if not 0 < length <= LARGEST:
            raise ValueError(f"{name} must be more than 0 and at most {LARGEST:g}")
        found.append(length)
    return found


def _count(n: object) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MOST_COPIES:
        raise ValueError(f"n must be a whole number from 1 to {MOST_COPIES}")
    return n
