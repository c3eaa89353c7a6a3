"""Scripts made into meshes in one sandbox, and meshes measured in another.

The process that runs an answer hands over vertices and faces and nothing else; it never holds the
target, and what it claims about its part is not heard. The target's script runs in a sandbox of its
own. What a mesh is worth is measured by our code in a third, which no answer's code ever enters.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from workers.collect.frames import Forged, Gone, Line
from workers.sandbox.protocol import MIB, Backend, ExecResult, Limits, SandboxSpec, SandboxUnavailable

PREIMPORT = ("numpy", "manifold3d", "trimesh", "scipy.optimize", "networkx", "PIL.Image")
SPEC = SandboxSpec(
    image="modelling",
    limits=Limits(wall_s=20.0, cpu_s=15, memory_bytes=1536 * MIB),
    env=(("OMP_NUM_THREADS", "1"), ("OPENBLAS_NUM_THREADS", "1")),
    preimport=PREIMPORT,
)
MAX_FACES = 20_000
MAX_PARTS = 20
FAR = 1e5  # millimetres from the origin
_DETAIL = 300


@dataclass(frozen=True)
class Mesh:
    """Little-endian float64 vertices [n, 3], then uint32 faces [m, 3]: finite and in range."""

    name: str
    vertices: int
    faces: int
    data: bytes


@dataclass(frozen=True)
class Built:
    """``status`` "ok": the script's solids. "error": the script is wrong, ``detail`` says how and in
    which line. Else an ``ExecResult`` status or "unavailable". ``result`` holds what was printed."""

    status: str
    meshes: tuple[Mesh, ...] = ()
    detail: str = ""
    result: ExecResult | None = None


@dataclass(frozen=True)
class Measured:
    """``found`` is what ``inside/measuring.py`` says; None with the status that kept it from doing so."""

    status: str
    found: Mapping[str, Any] | None = None
    detail: str = ""


async def build(backend: Backend, script: str, name: str = "part") -> Built:
    """Run ``script`` and take over what it assigns to ``name``: one solid, or for ``scene`` a
    dictionary of solids. Whatever the script does, this returns."""
    talk = _Handover(name)
    try:
        result = await backend.run(
            SPEC,
            [*backend.interpreter, "/workspace/build.py"],
            files={**_inside("build.py", "shapes.py"), "script.py": script.encode("utf-8", "replace")},
            talk=talk,
        )
    except SandboxUnavailable as unavailable:
        return Built("unavailable", detail=str(unavailable)[:_DETAIL])
    if talk.error:
        return Built("error", detail=talk.error, result=result)
    if talk.meshes:
        return Built("ok", tuple(talk.meshes), result=result)
    status = "nonzero" if result.status == "ok" else result.status
    return Built(status, detail=(talk.trouble or _last_words(result))[:_DETAIL], result=result)


async def measure(
    backend: Backend, what: str, answer: Sequence[Mesh], reference: Sequence[Mesh] = ()
) -> Measured:
    """Measure a "part" (one mesh each) or a "scene" in a sandbox that runs our code alone."""
    talk = _Question(what, answer, reference)
    try:
        result = await backend.run(
            SPEC,
            [*backend.interpreter, "/workspace/measure.py"],
            files={
                **_inside("measure.py", "measuring.py", "raster.py"),
                "answer.mesh": b"".join(mesh.data for mesh in answer),
                "reference.mesh": b"".join(mesh.data for mesh in reference),
            },
            talk=talk,
        )
    except SandboxUnavailable as unavailable:
        return Measured("unavailable", detail=str(unavailable)[:_DETAIL])
    if talk.found is not None:
        return Measured("ok", talk.found)
    status = "nonzero" if result.status == "ok" else result.status
    return Measured(status, detail=(talk.trouble or _last_words(result))[:_DETAIL])


class _Handover:
    """The host's side of ``build.py``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.meshes: list[Mesh] = []
        self.error = ""
        self.trouble = ""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await Line(reader, writer).ask({"name": self._name})
            if head.get("status") == "error":
                self.error = str(head.get("error", ""))[:_DETAIL] or "the script failed"
                return
            meshes = []
            for name, vertices, faces in _sizes(head.get("meshes"), self._name):
                data = await reader.readexactly(24 * vertices + 12 * faces)
                meshes.append(_checked(Mesh(name, vertices, faces, data)))
            self.meshes = meshes
        except (Forged, Gone) as error:
            self.trouble = str(error)
            await asyncio.sleep(0.2)  # it is ending: let its own end say how
        except (ConnectionError, asyncio.IncompleteReadError):
            self.trouble = "the program left before it had handed over its part"


class _Question:
    """The host's side of ``measure.py``."""

    def __init__(self, what: str, answer: Sequence[Mesh], reference: Sequence[Mesh]) -> None:
        self._asked = {"what": what, "answer": _listed(answer), "reference": _listed(reference)}
        self.found: Mapping[str, Any] | None = None
        self.trouble = ""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            frame = await Line(reader, writer).ask(self._asked)
        except (Forged, Gone) as error:
            self.trouble = str(error)
            return
        if isinstance(frame.get("found"), dict):
            self.found = frame["found"]


def _sizes(stated: object, name: str) -> list[tuple[str, int, int]]:
    """Names, vertices and faces as the program states them. Raises ``Forged``."""
    most = MAX_PARTS if name == "scene" else 1
    if not isinstance(stated, list) or not 1 <= len(stated) <= most:
        raise Forged(f"between 1 and {most} solids are expected")
    found = []
    for entry in stated:
        if not (isinstance(entry, list) and len(entry) == 3 and isinstance(entry[0], str)):
            raise Forged("the list of solids is malformed")
        if not all(isinstance(size, int) and not isinstance(size, bool) and size > 0 for size in entry[1:]):
            raise Forged("the list of solids is malformed")
        found.append((entry[0][:40], entry[1], entry[2]))
    if sum(faces for _, _, faces in found) > MAX_FACES or sum(n for _, n, _ in found) > MAX_FACES:
        raise Forged(f"the mesh is too large: at most {MAX_FACES:,} vertices and {MAX_FACES:,} faces")
    if len({entry[0] for entry in found}) != len(found):
        raise Forged("two solids have the same name")
    return found


def _checked(mesh: Mesh) -> Mesh:
    """``mesh``, once its numbers are sure to be usable. Raises ``Forged``."""
    points = np.frombuffer(mesh.data, "<f8", 3 * mesh.vertices)
    faces = np.frombuffer(mesh.data, "<u4", 3 * mesh.faces, 24 * mesh.vertices)
    if not np.isfinite(points).all() or np.abs(points).max() > FAR:
        raise Forged(f"a vertex is not a number, or farther out than {FAR:g} mm")
    if faces.max() >= mesh.vertices:
        raise Forged("a face names a vertex that does not exist")
    return mesh


def _listed(meshes: Sequence[Mesh]) -> list[list[Any]]:
    return [[mesh.name, mesh.vertices, mesh.faces] for mesh in meshes]


def _last_words(result: ExecResult) -> str:
    last = result.stderr.text.strip().splitlines()[-1:]
    return result.detail or "".join(last)


@lru_cache(maxsize=8)
def _inside(*names: str) -> dict[str, bytes]:
    folder = Path(__file__).with_name("inside")
    return {name: (folder / name).read_bytes() for name in names}
