"""Evidence ``scene``: which parts of a scene collide, what each rests on, whether the whole stands.

``{"status", "detail", "parts", "wanted", "collisions", "contacts", "stands", "picture"}``: see
``inside/measuring.py``. ``wanted`` holds the metrics of the parts that had to be placed.
"""

import dataclasses
from typing import Any

from domain.contracts import TaskSpec
from domain.verifiers.geometry import script_source
from workers.collect.geometry import build_target
from workers.collect.meshes import Mesh, build, measure
from workers.sandbox.protocol import Backend


async def collect_scene(backend: Backend, task: TaskSpec, answer: str) -> dict[str, Any]:
    """Build the answer's scene and the wanted parts, each elsewhere, and measure them together."""
    built = await build(backend, script_source(answer), "scene")
    if built.status != "ok":
        return {"status": built.status, "detail": built.detail}
    wanted: list[Mesh] = []
    for name, script in task.reference["parts"].items():
        made = await build_target(backend, script)
        if made.status != "ok":
            return {"status": "infra_error", "detail": f"The part {name} was not built: {made.detail}"}
        wanted.append(dataclasses.replace(made.meshes[0], name=name))
    measured = await measure(backend, "scene", built.meshes, wanted)
    if measured.found is None:
        return {"status": measured.status, "detail": f"Not measured: {measured.detail}"}
    return {"status": "ok", "detail": "", **measured.found}
