"""What is measured of a part and of a scene; runs inside a sandbox.

A part is a pair of vertices [n, 3] and faces [m, 3]. Lengths in millimetres.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import manifold3d as kernel  # type: ignore[import-not-found]
import numpy as np
import raster  # type: ignore[import-not-found]
import trimesh

Array = Any  # a numpy array
Mesh = tuple[Array, Array]
Named = Sequence[tuple[str, Array, Array]]

RESOLUTION = 64  # pixels of a view's longest edge
TOUCH = 0.02  # millimetres: closer is contact


def part(answer: Mesh, target: Mesh | None) -> dict[str, Any]:
    """Metrics of the answer and, where there is a target, of it and of what tells them apart."""
    found = {"metrics": metrics(answer), "picture": raster.picture([answer])}
    if target is None:
        return found
    found["target"] = metrics(target)
    found["against"] = against(answer, target, found["metrics"]["solid"])
    return found


def metrics(mesh: Mesh) -> dict[str, Any]:
    """Plain numbers. ``solid``: closed, consistently oriented, inside nowhere twice."""
    points, faces = mesh
    body = trimesh.Trimesh(points, faces, process=True)
    closed = bool(body.is_watertight and body.is_winding_consistent)
    low, high = points[faces].min(axis=(0, 1)), points[faces].max(axis=(0, 1))
    _, overlap = raster.views(points, faces, low, high, RESOLUTION)
    overlap = max(overlap, _overlap_from_anywhere(points, faces))
    bodies = int(body.body_count) if closed else 0
    volume = float(body.volume) if closed else 0.0
    found: dict[str, Any] = {
        "watertight": closed,
        "overlap": round(float(overlap), 6),
        "solid": closed and overlap < 0.002 and volume > 0,
        "volume": volume,
        "area": float(body.area),
        "low": low.tolist(),
        "high": high.tolist(),
        "bodies": bodies,
        "genus": int(bodies - round(body.euler_number / 2)) if closed else -1,
        "vertices": len(points),
        "faces": len(faces),
    }
    if found["solid"]:
        found["center"] = body.center_mass.tolist()
        found["inertia"] = sorted(float(value) for value in body.principal_inertia_components)
        used = points[np.unique(faces)]
        found["hull"] = float(body.convex_hull.volume)
        found["reach"] = float(np.linalg.norm(used - body.center_mass, axis=1).max())
    return found


def _overlap_from_anywhere(points: Array, faces: Array) -> float:
    """As ``raster.views`` says it, looked at from a side that nobody can foresee: a surface can be laid
    so that it runs through itself between the rays along the axes."""
    turn, _ = np.linalg.qr(np.random.default_rng().normal(size=(3, 3)))
    turn[0] *= np.sign(np.linalg.det(turn))  # no mirror image: that would be inside out
    turned = points @ turn.T
    corners = turned[faces]
    low, high = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
    _, overlap = raster.views(turned, faces, low, high, RESOLUTION // 2)
    return float(overlap)


def against(answer: Mesh, target: Mesh, sound: bool) -> dict[str, Any]:
    """Shares: of the target's volume that differs, and of each view's pixels that agree."""
    low = np.minimum(answer[0][answer[1]].min(axis=(0, 1)), target[0][target[1]].min(axis=(0, 1)))
    high = np.maximum(answer[0][answer[1]].max(axis=(0, 1)), target[0][target[1]].max(axis=(0, 1)))
    seen, _ = raster.views(*answer, low, high, RESOLUTION)
    wanted, _ = raster.views(*target, low, high, RESOLUTION)
    found: dict[str, Any] = {
        "views": {side: agreement(seen[side], wanted[side]) for side in wanted},
        "difference": None,
    }
    a, b = _solid(answer), _solid(target)
    if sound and a is not None and b is not None:
        differing = (a - b).volume() + (b - a).volume()
        found["difference"] = float(differing / b.volume())
    return found


def agreement(seen: Array, wanted: Array, deep: float = 0.02) -> float:
    """Pixels where both show a surface at the same depth, of those where either shows one."""
    either = ~(np.isnan(seen) & np.isnan(wanted))
    same = np.abs(seen - wanted) <= deep
    return float((same & either).sum() / max(1, either.sum()))


def scene(parts: Named, wanted: Named) -> dict[str, Any]:
    """Which parts collide, what each rests on, and whether the whole stands.

    Gravity pulls along -z, the floor is z = 0, contacts push straight up without friction. The
    whole stands when forces at the contacts exist that hold every part, with contact areas drawn
    in a little, so that a part on the very edge does not count as held.
    """
    made = {name: _solid((points, faces)) for name, points, faces in parts}
    solids = {name: solid for name, solid in made.items() if solid is not None}
    found: dict[str, Any] = {
        "parts": {name: metrics((points, faces)) for name, points, faces in parts},
        "wanted": {name: metrics((points, faces)) for name, points, faces in wanted},
        "collisions": [],
        "contacts": [],
        "stands": False,
        "picture": raster.picture([(points, faces) for _, points, faces in parts]),
    }
    if len(solids) < len(parts):
        return found
    for (one, a), (two, b) in itertools.combinations(solids.items(), 2):
        shared = (a ^ b).volume()
        if shared > 1e-4 * min(a.volume(), b.volume()):
            found["collisions"].append([one, two, float(shared)])
    below = [float(found["parts"][name]["low"][2]) for name in solids]
    if min(below) < -TOUCH:
        sunk = list(solids)[int(np.argmin(below))]
        found["collisions"].append([sunk, "floor", float(-min(below))])
    contacts = _contacts(solids)
    found["contacts"] = [[upper, lower] for upper, lower, _ in contacts]
    sound = all(found["parts"][name]["solid"] for name in solids)
    if sound and not found["collisions"]:
        centres = {name: found["parts"][name]["center"] for name in solids}
        weights = {name: found["parts"][name]["volume"] for name in solids}
        found["stands"] = _stands(contacts, centres, weights)
    return found


def _contacts(solids: dict[str, kernel.Manifold]) -> list[tuple[str, str, Array]]:
    """Triples (upper, lower or "floor", corners [k, 2] of the area where they touch)."""
    found = []
    for upper, a in solids.items():
        sunk = a.translate((0.0, 0.0, -TOUCH))
        below = [("floor", None), *((name, b) for name, b in solids.items() if name != upper)]
        for lower, b in below:
            shared = sunk.trim_by_plane((0.0, 0.0, -1.0), 0.0) if b is None else sunk ^ b
            if shared.is_empty() or shared.volume() < 1e-6:
                continue
            outline = shared.project().hull().to_polygons()
            corners = np.concatenate(outline)[:, :2] if outline else np.zeros((0, 2))
            if len(corners) >= 3 and shared.volume() > 0.2 * TOUCH * shared.project().area():
                middle = corners.mean(axis=0)
                found.append((upper, lower, middle + 0.98 * (corners - middle)))
    return found


def _stands(
    contacts: Sequence[tuple[str, str, Array]],
    centres: dict[str, list[float]],
    weights: dict[str, float],
) -> bool:
    """Whether pushes >= 0 at the contacts' corners balance every part's weight and tilting."""
    from scipy.optimize import linprog

    names = list(centres)
    count = sum(len(corners) for _, _, corners in contacts)
    if not count:
        return False
    rows = np.zeros((3 * len(names), count))
    column = 0
    for upper, lower, corners in contacts:
        for x, y in corners:
            for name, sign in ((upper, 1.0), (lower, -1.0)):
                if name != "floor":
                    place = 3 * names.index(name)
                    rows[place : place + 3, column] += sign * np.array([1.0, x, y])
            column += 1
    wanted = np.concatenate([weights[n] * np.array([1.0, centres[n][0], centres[n][1]]) for n in names])
    scale = max(weights.values())
    solved = linprog(np.zeros(count), A_eq=rows, b_eq=wanted / scale, bounds=(0, None), method="highs")
    return bool(solved.status == 0)


def _solid(mesh: Mesh) -> kernel.Manifold | None:
    """The kernel's solid of a mesh; None where it is none."""
    points, faces = mesh
    body = trimesh.Trimesh(points, faces, process=True)
    made = kernel.Manifold(
        kernel.Mesh64(
            np.ascontiguousarray(body.vertices, dtype=np.float64),
            np.ascontiguousarray(body.faces, dtype=np.uint64),
        )
    )
    return made if made.status() == kernel.Error.NoError and not made.is_empty() else None
