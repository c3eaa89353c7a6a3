"""Meshes looked at along an axis, pixel by pixel; runs inside a sandbox, on numpy alone."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Mesh = tuple[Array, Array]  # vertices [n, 3] and faces [m, 3]

_CHUNK = 250_000  # candidate pixels at once
LIGHT = np.array([0.35, 0.5, 0.8])
COLOURS = (
    (118, 159, 205),
    (226, 158, 88),
    (122, 184, 122),
    (200, 120, 130),
    (160, 140, 200),
    (150, 150, 150),
)


def hits(
    points: Array, faces: Array, low: Array, step: float, shape: tuple[int, int]
) -> tuple[Array, Array, Array, Array]:
    """Where rays along +z meet the surface: arrays ``(pixel, depth, sign, face)``.

    ``points`` [n, 3]; rays run through ``low + (index + offset) * step`` for each index below
    ``shape`` (columns, rows); the offsets are odd so that no ray runs along an edge of round
    numbers. ``sign`` is +1 where a ray leaves the solid and -1 where it enters.
    """
    offset = np.array([0.5 + 0.0137, 0.5 - 0.0119])
    plane = (points[:, :2] - low) / step - offset
    corners = plane[faces]  # [f, 3, 2]
    depth = points[:, 2][faces]
    first = np.ceil(corners.min(axis=1)).astype(np.int64).clip(0, None)
    last = np.floor(corners.max(axis=1)).astype(np.int64)
    last = np.minimum(last, np.array(shape) - 1)
    size = (last - first + 1).clip(0, None)
    counts = size[:, 0] * size[:, 1]
    twice = _cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    counts[np.abs(twice) < 1e-12] = 0
    found = []
    for part in _chunks(counts):
        found.append(_inside(part, counts, first, size, corners, depth, twice, shape))
    if not found:
        empty = np.zeros(0)
        return empty.astype(np.int64), empty, empty, empty.astype(np.int64)
    pixel, depths, signs, owners = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    return pixel, depths, signs, owners


def _inside(
    part: Array,
    counts: Array,
    first: Array,
    size: Array,
    corners: Array,
    depth: Array,
    twice: Array,
    shape: tuple[int, int],
) -> tuple[Array, Array, Array, Array]:
    face = np.repeat(part, counts[part])
    start = np.repeat(np.cumsum(counts[part]) - counts[part], counts[part])
    order = np.arange(len(face)) - start
    column = first[face, 0] + order % size[face, 0]
    row = first[face, 1] + order // size[face, 0]
    point = np.stack([column, row], axis=1)
    a, b, c = corners[face, 0], corners[face, 1], corners[face, 2]
    area = twice[face]
    weight_a = _cross(b - point, c - point) / area
    weight_b = _cross(c - point, a - point) / area
    weight_c = 1.0 - weight_a - weight_b
    keep = (weight_a >= 0) & (weight_b >= 0) & (weight_c >= 0)
    face = face[keep]
    z = weight_a[keep] * depth[face, 0] + weight_b[keep] * depth[face, 1] + weight_c[keep] * depth[face, 2]
    return row[keep] * shape[0] + column[keep], z, np.sign(twice[face]), face


def _chunks(counts: Array) -> list[Array]:
    live = np.flatnonzero(counts)
    if not len(live):
        return []
    bins = np.cumsum(counts[live]) // _CHUNK
    return np.split(live, np.flatnonzero(np.diff(bins)) + 1)


def _cross(a: Array, b: Array) -> Array:
    product: Array = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return product


def views(
    points: Array, faces: Array, low: Array, high: Array, resolution: int
) -> tuple[dict[str, Array], float]:
    """Depth maps from six sides of the box ``low``–``high``, and how much of the surface overlaps.

    Returns ``({"+x": [rows, columns] …}, overlap)``. A depth is the distance from the box's side in
    its longest edges, NaN where nothing is seen. ``overlap`` is the share of covered rays that are
    inside twice, or in a place that is inside out: 0 for a sound solid.
    """
    maps, bad, covered = {}, 0, 0
    longest = float((high - low).max()) or 1.0
    for axis, name in enumerate("xyz"):
        order = [(axis + 1) % 3, (axis + 2) % 3, axis]
        turned, bottom, top = points[:, order], low[order], high[order]
        step = longest / resolution
        pixel, depth, sign, _ = hits(turned, faces, bottom[:2], step, (resolution, resolution))
        near = np.full(resolution * resolution, np.nan)
        far = near.copy()
        if len(pixel):
            sorted_by = np.lexsort((depth, pixel))
            pixel, depth, sign = pixel[sorted_by], depth[sorted_by], sign[sorted_by]
            starts = np.flatnonzero(np.r_[True, np.diff(pixel) > 0])
            ends = np.r_[starts[1:], len(pixel)] - 1
            near[pixel[starts]] = (depth[starts] - bottom[2]) / longest
            far[pixel[starts]] = (top[2] - depth[ends]) / longest
            covered += len(starts)
            bad += _twice_inside(pixel, depth, sign, starts, longest)
        maps[f"-{name}"] = near.reshape(resolution, resolution)
        maps[f"+{name}"] = far.reshape(resolution, resolution)
    return maps, bad / covered if covered else 1.0


def _twice_inside(pixel: Array, depth: Array, sign: Array, starts: Array, longest: float) -> int:
    inside = -np.cumsum(sign)
    before = np.r_[0.0, inside[:-1]][starts]
    lengths = np.diff(np.r_[starts, len(pixel)])
    level = inside - np.repeat(before, lengths)
    follows = np.r_[pixel[1:] == pixel[:-1], False]
    span = np.r_[np.diff(depth), 0.0]
    wrong = follows & (span > 1e-6 * longest) & ((level > 1.5) | (level < -0.5))
    unclosed = ~follows & (np.abs(level) > 0.5)
    return len(np.unique(pixel[wrong | unclosed]))


def picture(meshes: Sequence[Mesh], *, width: int = 200, height: int = 150) -> str:
    """A PNG of the parts, shaded and seen from above at an angle, as a ``data:`` address (some
    kilobytes). ``meshes`` are pairs of points and faces, each in a colour of its own."""
    from PIL import Image

    points = np.concatenate([mesh[0] for mesh in meshes])
    starts = np.cumsum([0, *(len(mesh[0]) for mesh in meshes)])
    faces = np.concatenate(
        [mesh[1].astype(np.int64) + start for mesh, start in zip(meshes, starts[:-1], strict=True)]
    )
    owner = np.repeat(np.arange(len(meshes)), [len(mesh[1]) for mesh in meshes])
    camera = _camera()
    sides = np.cross(points[faces[:, 1]] - points[faces[:, 0]], points[faces[:, 2]] - points[faces[:, 0]])
    shown = sides @ camera[2] > 0  # what faces the eye
    faces, owner, sides = faces[shown], owner[shown], sides[shown]
    seen = points @ camera.T
    low, high = seen.min(axis=0), seen.max(axis=0)
    columns, rows = 2 * width, 2 * height
    step = max((high[0] - low[0]) / (columns * 0.9), (high[1] - low[1]) / (rows * 0.9), 1e-9)
    middle = (low[:2] + high[:2]) / 2
    corner = middle - np.array([columns, rows]) * step / 2
    pixel, depth, _, face = hits(seen, faces, corner, step, (columns, rows))
    order = np.lexsort((depth, pixel))
    pixel, depth, face = pixel[order], depth[order], face[order]
    last = np.flatnonzero(np.diff(np.r_[pixel, -1]))  # the nearest to the eye
    pixel, depth, face = pixel[last], depth[last], face[last]

    sides /= np.linalg.norm(sides, axis=1, keepdims=True).clip(1e-12)
    light = LIGHT / np.linalg.norm(LIGHT)
    shade = 0.45 + 0.55 * np.abs(sides @ light)
    tint = np.array(COLOURS)[owner % len(COLOURS)]
    image = np.full((rows * columns, 3), 255.0)
    image[pixel] = tint[face] * shade[face][:, None]
    image = _outlined(image.reshape(rows, columns, 3), pixel, depth, sides[face], step)
    image = image.reshape(height, 2, width, 2, 3).mean(axis=(1, 3))[::-1]
    stream = io.BytesIO()
    Image.fromarray(image.clip(0, 255).astype(np.uint8)).quantize(48).save(stream, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()


def _outlined(image: Array, pixel: Array, depth: Array, side: Array, step: float) -> Array:
    """Dark lines where the surface bends sharply or something stands before something else."""
    rows, columns, _ = image.shape
    deep = np.full(rows * columns, -1e18)
    deep[pixel] = depth
    normal = np.zeros((rows * columns, 3))
    normal[pixel] = side
    deep, normal = deep.reshape(rows, columns), normal.reshape(rows, columns, 3)
    for axis in (0, 1):
        jump = np.abs(np.diff(deep, axis=axis)) > 8 * step
        bend = (
            np.take(normal, range(1, normal.shape[axis]), axis)
            * np.take(normal, range(normal.shape[axis] - 1), axis)
        ).sum(axis=2) < 0.85
        line = np.zeros((rows, columns), bool)
        if axis == 0:
            line[:-1] = jump | bend
        else:
            line[:, :-1] = jump | bend
        blank = (deep < -1e17) & ~np.roll(deep > -1e17, -1, axis)
        image[line & ~blank] *= 0.45
    return image


def _camera() -> Array:
    """Rows: right, up, towards the eye."""
    eye = np.array([0.62, -0.86, 0.72])
    eye /= np.linalg.norm(eye)
    right = np.cross([0.0, 0.0, 1.0], eye)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(eye, right), eye])
