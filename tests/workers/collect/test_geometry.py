"""Parts and scenes for real: scripts in one sandbox, meshes measured in another, cheats in between."""

import asyncio
import base64
import dataclasses
import re
import struct
from collections.abc import Mapping
from typing import Any

import pytest

from domain.contracts import ChatMessage, TaskSpec, Verdict, VerifierSpec
from domain.verifiers import verify
from workers.collect import meshes
from workers.collect.geometry import collect_geometry, inspect_part
from workers.collect.meshes import MAX_FACES, Mesh, build, measure
from workers.collect.scene import collect_scene
from workers.sandbox.bubblewrap import BubblewrapBackend

PLATE = "part = difference(box(40, 30, 10), cylinder(r=5, h=10))"
BOXES = {"low": "part = box(20, 20, 10)", "top": "part = box(10, 10, 5)"}
# Sends a mesh of its own making in place of what the host's agent would send.
RAW = """
import json, os, struct, sys
frame = sys._getframe()
while "asked" not in frame.f_locals:
    frame = frame.f_back
channel, nonce = frame.f_locals["channel"], frame.f_locals["asked"]["nonce"]
def hand_over(vertices, faces, stated=None):
    n, m = stated or (len(vertices), len(faces))
    head = {"nonce": nonce, "status": "ok", "meshes": [["part", n, m]], "error": ""}
    data = b"".join(struct.pack("<3d", *v) for v in vertices)
    data += b"".join(struct.pack("<3I", *f) for f in faces)
    os.write(channel, json.dumps(head).encode() + b"\\n" + data)
    while os.read(channel, 1000):
        pass
"""
CORNERS = "[(x, y, z) for x in (-20, 20) for y in (-15, 15) for z in (0, 10)]"
CUBE = "[(0,1,3),(0,3,2),(4,6,7),(4,7,5),(0,4,5),(0,5,1),(2,3,7),(2,7,6),(0,2,6),(0,6,4),(1,5,7),(1,7,3)]"


def task(kind: str, reference: Any, **params: Any) -> TaskSpec:
    return TaskSpec(
        id="t",
        family="f",
        messages=(ChatMessage(role="user", content="?"),),
        verifier=VerifierSpec(kind=kind, params=params),
        reference=reference,
    )


def judged(backend: BubblewrapBackend, script: str, **params: Any) -> tuple[Verdict, Mapping[str, Any]]:
    asked = task("geometry", {"script": PLATE}, **params)
    report = asyncio.run(collect_geometry(backend, asked, script))
    return verify(asked, script, {"geometry": report}), report


def staged(backend: BubblewrapBackend, script: str, **goals: Any) -> tuple[Verdict, Mapping[str, Any]]:
    asked = task("scene", {"parts": BOXES}, goals=goals)
    report = asyncio.run(collect_scene(backend, asked, script))
    return verify(asked, script, {"scene": report}), report


def test_the_same_part_made_another_way_passes_and_is_measured(backend: BubblewrapBackend) -> None:
    verdict, report = judged(backend, "part = box(40, 30, 10) - translate(cylinder(r=5, h=30), z=-5)")

    assert verdict.state == "passed"
    metrics = report["metrics"]
    assert metrics["watertight"]
    assert metrics["genus"] == 1
    assert metrics["bodies"] == 1
    assert metrics["low"] == [-20, -15, 0]
    assert metrics["high"] == [20, 15, 10]
    assert report["against"]["difference"] == pytest.approx(0, abs=1e-9)
    assert set(report["against"]["views"].values()) == {1.0}


def test_a_part_has_a_picture(backend: BubblewrapBackend) -> None:
    built, report = asyncio.run(inspect_part(backend, f"```python\n{PLATE}\n```"))

    assert built.status == "ok"
    address, _, data = report["picture"].partition(",")
    assert address == "data:image/png;base64"
    assert len(data) < 30_000
    width, height = struct.unpack(">2I", base64.b64decode(data)[16:24])
    assert (width, height) == (200, 150)


def test_a_part_of_the_same_volume_and_size_but_another_shape_fails(backend: BubblewrapBackend) -> None:
    verdict, report = judged(backend, "part = box(40, 30, 10) - translate(cylinder(r=5, h=10), x=8)")

    assert report["metrics"]["volume"] == pytest.approx(report["target"]["volume"])
    assert verdict.state == "failed"
    assert "differs from the target" in verdict.reasons[0]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("part = 3", "part must be a solid, not int"),
        ("x = box(1, 1, 1)", "assigns no 'part'"),
        ("part = box(1, 1", "SyntaxError"),
        ("\npart = box(0, 1, 1)", r"x must be more than 0 .*\(line 2\)"),
        ("part = box(1, 1, 1) - box(2, 2, 2)", "nothing is left"),
        ("part = pattern(box(1, 1, 1), 10**9, dx=1)", "n must be a whole number"),
    ],
)
def test_a_wrong_script_is_told_why(backend: BubblewrapBackend, script: str, said: str) -> None:
    built = asyncio.run(build(backend, script))

    assert built.status == "error"
    assert re.search(said, built.detail)


@pytest.mark.parametrize(
    "cheat",
    [
        "print('{\"metrics\": {\"volume\": 11215.86, \"genus\": 1}}')\npart = box(1, 1, 1)",
        "open('/workspace/answer.mesh', 'wb').write(b'0' * 999)\nopen('result.json', 'w').write('{}')\n"
        "part = box(1, 1, 1)",
        "import trimesh, manifold3d\ntrimesh.Trimesh.volume = property(lambda s: 11215.86)\n"
        "manifold3d.Manifold.volume = lambda s: 11215.86\npart = box(1, 1, 1)",
        "import shapes\nclass Fake(shapes.Solid):\n    volume = 11215.86\n    genus = 1\n"
        "part = Fake(box(1, 1, 1).body)",
        "import os\nos._exit(0)",
        f"{RAW}os.write(channel, b'{{\"nonce\": \"x\", \"status\": \"ok\", \"found\": {{}}}}\\n')\n"
        "part = box(1, 1, 1)",
    ],
    ids=[
        "prints_metrics",
        "writes_result_files",
        "patches_the_libraries",
        "object_with_a_fake_volume",
        "leaves_early",
        "forges_a_frame",
    ],
)  # fmt: skip
def test_what_the_script_claims_counts_for_nothing(backend: BubblewrapBackend, cheat: str) -> None:
    verdict, _ = judged(backend, cheat)

    assert verdict.state == "failed"
    assert (verdict.score or 0) < 0.5


@pytest.mark.parametrize(
    ("cheat", "said"),
    [
        (f"v = {CORNERS}; v[0] = (float('nan'), 0, 0)\nhand_over(v, {CUBE})", "not a number"),
        (f"v = {CORNERS}; v[0] = (1e9, 0, 0)\nhand_over(v, {CUBE})", "farther out"),
        (f"hand_over({CORNERS}, [(0, 1, 99)])", "does not exist"),
        (f"hand_over([], [], stated=({MAX_FACES + 1}, {MAX_FACES + 1}))", "too large"),
        (f"hand_over([], [], stated=({10**15}, {10**15}))", "too large"),
        (f"hand_over({CORNERS}, {CUBE}[:-1])", "not closed"),
        (f"hand_over({CORNERS}, [f[::-1] for f in {CUBE}])", "inside out"),
        (
            f"v, f = {CORNERS}, {CUBE}\nhand_over(v + v, f + [[i + 8 for i in t] for t in f])",
            "not closed",
        ),
    ],
    ids=["nan", "far_out", "bad_index", "huge", "absurd", "open", "inside_out", "twice_in_one_place"],
)
def test_a_mesh_that_is_no_solid_fails(backend: BubblewrapBackend, cheat: str, said: str) -> None:
    verdict, _ = judged(backend, RAW + cheat)

    assert verdict.state == "failed"
    assert said in verdict.reasons[0]


def test_a_script_without_end_is_the_scripts_own_failure(
    backend: BubblewrapBackend, monkeypatch: pytest.MonkeyPatch
) -> None:

    short = dataclasses.replace(meshes.SPEC.limits, cpu_s=1, wall_s=60.0)
    monkeypatch.setattr(meshes, "SPEC", dataclasses.replace(meshes.SPEC, limits=short))

    verdict, report = judged(backend, "while True: pass")

    assert report["status"] in ("cpu", "timeout")
    assert verdict.state == "failed"


def test_the_answer_cannot_see_the_target(backend: BubblewrapBackend) -> None:
    looks = (
        "import os\nfound = [f for f in os.listdir('/workspace') if f.endswith('.mesh')]\nassert not found\n"
    )
    verdict, _ = judged(backend, looks + PLATE)

    assert verdict.state == "passed"


def test_a_target_that_cannot_be_built_is_no_word_about_the_answer(backend: BubblewrapBackend) -> None:
    asked = task("geometry", {"script": "part = nothing"})

    report = asyncio.run(collect_geometry(backend, asked, PLATE))

    assert report["status"] == "infra_error"
    assert verify(asked, PLATE, {"geometry": report}).state == "unscored"


def test_a_surface_through_itself_is_found_from_the_side_that_shows_it(backend: BubblewrapBackend) -> None:
    low = [(x, y, z) for x in (0, 4) for y in (0, 4) for z in (0, 4)]
    points = low + [(x + 2, y + 2, z + 2) for x, y, z in low]
    faces = [*eval(CUBE), *(tuple(i + 8 for i in face) for face in eval(CUBE))]
    data = b"".join(struct.pack("<3d", *p) for p in points) + b"".join(struct.pack("<3I", *f) for f in faces)

    found = asyncio.run(measure(backend, "part", [Mesh("part", len(points), len(faces), data)])).found

    assert found is not None
    assert found["metrics"]["watertight"]
    assert found["metrics"]["overlap"] > 0.05
    assert not found["metrics"]["solid"]


STACK = "scene = {'low': box(20, 20, 10), 'top': translate(box(10, 10, 5), x=%s, z=%s)}"


@pytest.mark.parametrize(("x", "stands"), [(0, True), (9.5, True), (10.5, False), (10, False)])
def test_a_part_stands_while_its_weight_is_over_what_holds_it(
    backend: BubblewrapBackend, x: float, stands: bool
) -> None:
    verdict, report = staged(backend, STACK % (x, 10), on=[["top", "low"]])

    assert ["top", "low"] in report["contacts"]
    assert report["stands"] is stands
    assert (verdict.state == "passed") is stands


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (STACK % (0, 12), "floats or tips"),
        (STACK % (0, 8), "run into each other"),
        ("scene = {'low': translate(box(20, 20, 10), z=-3), 'top': translate(box(10, 10, 5), z=7)}", "floor"),
        ("scene = {'low': box(20, 20, 10)}", "Missing"),
        ("scene = {'low': box(20, 20, 10), 'top': translate(box(10, 10, 6), z=10)}", "was changed"),
        ("scene = {'low': box(20, 20, 10), 'top': box(10, 10, 5), 'more': box(1, 1, 1)}", "Not asked for"),
        ("scene = [box(20, 20, 10)]", "dictionary"),
    ],
)
def test_a_scene_that_does_not_hold_fails(backend: BubblewrapBackend, script: str, said: str) -> None:
    verdict, _ = staged(backend, script)

    assert verdict.state == "failed"
    assert said in " ".join(verdict.reasons)


def test_parts_may_be_turned(backend: BubblewrapBackend) -> None:
    turned = "translate(rotate(box(10, 10, 5), y=90), x=-2.5, z=15)"

    verdict, report = staged(backend, f"scene = {{'low': box(20, 20, 10), 'top': {turned}}}")

    assert verdict.state == "passed", (verdict.reasons, report["contacts"])


def test_a_part_counts_for_the_balance_of_what_it_stands_on(backend: BubblewrapBackend) -> None:
    """A plank over an edge holds with a weight on its inner end, and tips with it on the outer one."""
    asked = task(
        "scene", {"parts": {**BOXES, "plank": "part = box(30, 10, 1)"}}, goals={"on": [["plank", "low"]]}
    )
    script = (
        "scene = {'low': box(20, 20, 10), 'plank': translate(box(30, 10, 1), x=12, z=10), "
        "'top': translate(box(10, 10, 5), x=%s, z=11)}"
    )

    inner = asyncio.run(collect_scene(backend, asked, script % 2))
    outer = asyncio.run(collect_scene(backend, asked, script % 20))

    assert inner["stands"]
    assert not outer["stands"]


COMB = """
import manifold3d as kernel
import numpy as np
import shapes

# Pegs that hang from a plate are drawn down into the body under it, between the rays of the grid along
# the axes: one closed surface, with much of its inside counted twice.
step = 20 / 64
base = box(20, 20, 19.9) + box(0.05, 0.05, 20) + translate(box(20, 20, 0.05), z=19.95)
pegs = []
for column in range(60):
    x = -10 + (column + 0.5137) * step + 0.003
    for row in range(3, 9):
        y = -10 + (row + 0.5137) * step + 0.003
        peg = kernel.Manifold.cube((step - 0.03, step - 0.03, 0.045)).translate((x, y, 19.93))
        pegs.append(peg)
mesh = kernel.Manifold.batch_boolean([base.body, *pegs], kernel.OpType.Add).to_mesh64()
points = np.array(mesh.vert_properties[:, :3])
points[np.isclose(points[:, 2], 19.93), 2] = 0.2

class Mesh:
    vert_properties, tri_verts = points, mesh.tri_verts

class Body:
    def to_mesh64(self):
        return Mesh

part = shapes.Solid(Body())
"""


def test_a_surface_through_itself_between_the_rays_is_found_all_the_same(backend: BubblewrapBackend) -> None:
    volume = 20 * 20 * 20 + 500.0
    asked = task("geometry", {"target": {"volume": volume, "bodies": 1}}, relative=0.2)

    report = asyncio.run(collect_geometry(backend, asked, COMB))

    assert report["metrics"]["watertight"] is True
    assert report["metrics"]["volume"] > 8400  # of a block of 8000 mm³ at most
    assert verify(asked, COMB, {"geometry": report}).state == "failed"


def test_a_needle_on_a_part_makes_no_scene_higher(backend: BubblewrapBackend) -> None:
    honest = '"low": box(20, 20, 10), "top": translate(box(10, 10, 5), z=10)'
    needle = "union(box(20, 20, 10), cylinder(r=1e-5, h=40))"

    assert staged(backend, f"scene = {{{honest}}}", height=15)[0].state == "passed"
    verdict, _ = staged(
        backend, f'scene = {{"low": {needle}, "top": translate(box(10, 10, 5), x=40)}}', height=40
    )

    assert verdict.state == "failed"
    assert "was changed" in verdict.reasons[0]
