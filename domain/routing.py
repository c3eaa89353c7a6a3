"""Which deployments may answer a request, in order, from a project's routing revision.

Arms are fixed intervals of SHA-256(salt ‖ unit): the canary owns [0, weight), the control all the
rest. Raising the weight moves units onto the canary only, never back; weight 0 leaves it empty.
The assigned arm becomes a list of targets: that arm on the edition's deployments, then control, then
control on the other edition when the caller left the edition to us. A version or an endpoint that
was named is never replaced.

A revision is JSON, written by ``versions``: ``{"revision", "arms": {"control", "canary"}, "release":
{"id", "salt", "weight", "segment"} or null, "editions": {kind: [deployment]}, "externals", "task_types",
"default_edition"}``.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Json = Mapping[str, Any]

Arm = Literal["canary", "control"]

_EDITION_NAMES = {"standard": "standard", "high-speed": "high_speed", "high_speed": "high_speed"}


class UnknownModel(LookupError):
    """No edition, version, endpoint or alias has this name. The text is for users."""


class UnknownTaskType(LookupError):
    """The text is for users and names those that exist."""


class NoServer(LookupError):
    """The model exists, but no deployment serves it."""


@dataclass(frozen=True)
class Target:
    """``model`` is what to ask the server for, ``name`` what the caller is told has answered."""

    base_url: str
    deployment_id: int
    model: str
    name: str
    arm: str = ""
    version_id: int | None = None
    version: str = ""
    edition_kind: str = ""
    external: bool = False


@dataclass(frozen=True)
class Plan:
    targets: tuple[Target, ...]
    task_type: str = ""
    assigned_arm: str = ""
    release_id: int | None = None
    segment: int | None = None


def plan_route(routing: Json, *, model: str, task_type: str, unit: str) -> Plan:
    """Raises ``UnknownModel``, ``UnknownTaskType`` or ``NoServer``."""
    if model.startswith("endpoint:"):
        return Plan((endpoint_target(routing, name=model.removeprefix("endpoint:")),), task_type=task_type)
    alias, _, rest = model.partition(":")
    if alias == "auto":
        if rest and rest not in routing["task_types"]:
            raise _unknown_model(model)
        task_type = rest or task_type
        if task_type and task_type not in routing["task_types"]:
            known = ", ".join(sorted(routing["task_types"]))
            raise UnknownTaskType(f"Unknown task type. Choose one of {known}.")
        edition = routing["task_types"].get(task_type, routing["default_edition"])
        return _routed(routing, edition, task_type=task_type, unit=unit, other_edition=True)
    if model in _EDITION_NAMES:
        return _routed(routing, _EDITION_NAMES[model], task_type=task_type, unit=unit, other_edition=False)
    return _pinned(routing, model, task_type=task_type, unit=unit)


def assign(salt: str, unit: str, weight: float) -> Arm:
    """The arm of ``unit`` while the canary has ``weight``."""
    return "canary" if point(salt, unit) < weight else "control"


def point(salt: str, unit: str) -> float:
    """The fixed place of ``unit`` in [0, 1): the first 53 bits of SHA-256(salt ‖ unit)."""
    digest = hashlib.sha256(salt.encode() + unit.encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / (1 << 53)


def endpoint_target(routing: Json, *, name: str = "", deployment_id: int | None = None) -> Target:
    """An external endpoint by its name, or by the deployment that a run-scoped token names."""
    for known, external in routing["externals"].items():
        if known == name or (deployment_id is not None and external["deployment_id"] == deployment_id):
            return Target(
                base_url=_root(external["base_url"]),
                deployment_id=external["deployment_id"],
                model=external["model"],
                name=f"endpoint:{known}",
                external=True,
            )
    if deployment_id is not None:
        raise UnknownModel("The endpoint of this run is not registered any more.")
    raise _unknown_model(f"endpoint:{name}")


def model_names(routing: Json) -> list[str]:
    """Every name that ``model`` may take, for ``GET /v1/models``."""
    arms = [arm for arm in (routing["arms"]["control"], routing["arms"].get("canary")) if arm]
    versions = [f"flywheel:{arm['version']}" for arm in arms]
    editions = [name for name in ("standard", "high-speed") if routing["editions"].get(_EDITION_NAMES[name])]
    task_types = [f"auto:{name}" for name in sorted(routing["task_types"])]
    endpoints = [f"endpoint:{name}" for name in sorted(routing["externals"])]
    return ["auto", *task_types, *editions, *dict.fromkeys(versions), *endpoints]


def order_deployments(deployments: Sequence[Json], unit: str) -> list[Json]:
    """Weighted order that is stable per unit: rendezvous hashing, score −w / ln(h).

    A deployment of weight 0 or marked ``excluded`` is left out, whatever its health and whoever
    is stuck to it. Without a weight it counts 1.
    """
    return sorted(
        (d for d in deployments if d.get("weight", 1) > 0 and not d.get("excluded")),
        key=lambda d: (-_score(unit, d["deployment_id"], float(d.get("weight", 1))), d["deployment_id"]),
    )


def _score(unit: str, deployment_id: int, weight: float) -> float:
    digest = hashlib.sha256(f"deployment\x00{unit}\x00{deployment_id}".encode()).digest()
    share = (int.from_bytes(digest[:8], "big") + 0.5) / 2**64
    return -weight / math.log(share)


def _routed(routing: Json, edition: str, *, task_type: str, unit: str, other_edition: bool) -> Plan:
    control, canary, release = routing["arms"]["control"], routing["arms"].get("canary"), routing["release"]
    assigned, release_id, segment = "control", None, None
    if release is not None:
        release_id, segment = release["id"], release["segment"]
        if canary is not None:
            assigned = assign(salt=release["salt"], unit=unit, weight=release["weight"])
    arms = [("canary", canary)] if assigned == "canary" else []
    targets = [
        _target(arm, name, edition, deployment)
        for name, arm in [*arms, ("control", control)]
        for deployment in order_deployments(routing["editions"].get(edition, ()), unit)
    ]
    if other_edition:
        other = "standard" if edition == "high_speed" else "high_speed"
        targets += [
            _target(control, "control", other, deployment)
            for deployment in order_deployments(routing["editions"].get(other, ()), unit)
        ]
    if not targets:
        raise _no_server()
    return Plan(tuple(targets), task_type, assigned, release_id, segment)


def _pinned(routing: Json, model: str, *, task_type: str, unit: str) -> Plan:
    """``flywheel:1.1``, ``flywheel:1.1:high-speed`` or the name a response carried; outside any release."""
    version, edition = _version_and_edition(model)
    arms = (routing["arms"]["control"], routing["arms"].get("canary"))
    arm = next((arm for arm in arms if arm and version and arm["version"] == version), None)
    if arm is None:
        raise _unknown_model(model)
    edition = edition or routing["task_types"].get(task_type, routing["default_edition"])
    targets = tuple(
        _target(arm, "", edition, deployment)
        for deployment in order_deployments(routing["editions"].get(edition, ()), unit)
    )
    if not targets:
        raise _no_server()
    return Plan(targets, task_type)


def _version_and_edition(model: str) -> tuple[str, str]:
    if model.startswith("flywheel:"):
        version, _, edition = model.removeprefix("flywheel:").partition(":")
    elif model.startswith("flywheel-"):
        version, _, edition = model.removeprefix("flywheel-").partition("-")
    else:
        return "", ""
    if edition and edition not in _EDITION_NAMES:
        return "", ""
    return version, _EDITION_NAMES.get(edition, "")


def _target(arm: Json, name: str, edition: str, deployment: Json) -> Target:
    return Target(
        base_url=_root(deployment["base_url"]),
        deployment_id=deployment["deployment_id"],
        model=arm["model"],
        name=f"flywheel-{arm['version']}-{edition}",
        arm=name,
        version_id=arm["version_id"],
        version=arm["version"],
        edition_kind=edition,
    )


def _root(base_url: str) -> str:
    return base_url.rstrip("/").removesuffix("/v1").rstrip("/")


def _unknown_model(model: str) -> UnknownModel:
    return UnknownModel(f"There is no model “{model[:100]}” here. GET /v1/models lists what there is.")


def _no_server() -> NoServer:
    return NoServer("No server is registered for this edition.")
