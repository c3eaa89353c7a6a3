"""Evidence ``geometry``: what the part of a script measures, and how it differs from the target.

``{"status", "detail", "metrics", "target", "against", "picture"}``: see ``inside/measuring.py``.
``status`` "ok" means that the part was measured; "error" that the script is wrong, with the reason and
the line in ``detail``. ``picture`` is a PNG of the part as a ``data:`` address of some kilobytes.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from domain.contracts import TaskSpec
from domain.verifiers.geometry import script_source
from workers.collect.meshes import Built, Mesh, build, measure
from workers.sandbox.protocol import Backend

_KEPT = 256  # targets' meshes that a worker remembers
_targets: OrderedDict[str, tuple[Mesh, ...]] = OrderedDict()


async def collect_geometry(backend: Backend, task: TaskSpec, answer: str) -> dict[str, Any]:
    """Build the answer's part, build the target's elsewhere, measure both in a third sandbox."""
    built = await build(backend, script_source(answer))
    if built.status != "ok":
        return _report(built)
    reference: Mapping[str, Any] = task.reference if isinstance(task.reference, Mapping) else {}
    target: tuple[Mesh, ...] = ()
    if reference.get("script"):
        made = await build_target(backend, reference["script"])
        if made.status != "ok":
            # The target is ours: whatever keeps it from being built is no word about the answer.
            return {"status": "infra_error", "detail": f"The target was not built: {made.detail}"}
        target = made.meshes
    return await _measured(backend, built, target)


async def inspect_part(backend: Backend, script: str) -> tuple[Built, dict[str, Any]]:
    """A script's part without any target: what a modelling tool may tell the model. The report has
    the evidence's shape, without ``target`` and ``against``."""
    built = await build(backend, script_source(script))
    if built.status != "ok":
        return built, _report(built)
    return built, await _measured(backend, built, ())


async def build_target(backend: Backend, script: str, name: str = "part") -> Built:
    """``build`` for a script of ours; its meshes are remembered."""
    key = hashlib.sha256(f"{name}\n{script}".encode()).hexdigest()
    if key in _targets:
        _targets.move_to_end(key)
        return Built("ok", _targets[key])
    made = await build(backend, script, name)
    if made.status == "ok":
        _targets[key] = made.meshes
        while len(_targets) > _KEPT:
            _targets.popitem(last=False)
    return made


async def _measured(backend: Backend, built: Built, target: tuple[Mesh, ...]) -> dict[str, Any]:
    measured = await measure(backend, "part", built.meshes, target)
    if measured.found is None:
        return {"status": measured.status, "detail": f"Not measured: {measured.detail}"}
    return {"status": "ok", "detail": "", **measured.found}


def _report(built: Built) -> dict[str, Any]:
    return {"status": built.status, "detail": built.detail}
