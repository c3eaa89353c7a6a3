"""What a pack is, and where installed packs are found.

A pack is any distribution that declares an object in the entry point group
``flywheel.packs``. Nothing else is scanned: a folder without the entry point is not a pack.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from domain.contracts.tasks import TaskSpec

GROUP = "flywheel.packs"

# One answer, or what the model says turn by turn in the task's environment.
Solution = str | tuple[str, ...]


@dataclass(frozen=True)
class PackFamily:
    """One task family of a pack. ``verifier_kinds`` name modules of ``domain/verifiers``,
    ``environment`` one of ``workers/environments``. ``parts`` are the atomic families that a
    composite one is made of, in the order they build on each other. ``canary``: all its tasks are
    impossible, so there is no good answer and any pass is a cheat."""

    name: str
    title: str
    description: str
    verifier_kinds: tuple[str, ...]
    environment: str = "single_turn"
    parts: tuple[str, ...] = ()
    canary: bool = False


@dataclass(frozen=True)
class Pack:
    """``generate(family, seed=…, count=…, reserved=…)`` makes tasks, the same ones for the same
    arguments; ``reserved`` True asks for the held-out ones, False for the others, None for both.
    The two answer functions make, for a task of this pack, a solution that passes and named
    solutions that must fail. A task's id is enough to make its answers again. ``folder`` holds the
    pack's README. ``starter`` packs come with every new project."""

    name: str
    title: str
    families: tuple[PackFamily, ...]
    generate: Callable[..., list[TaskSpec]]
    gold_answer: Callable[[TaskSpec], Solution]
    bad_answers: Callable[[TaskSpec], Mapping[str, Solution]]
    description: str = ""
    folder: str = ""
    starter: bool = False


class UnknownPack(LookupError):
    """No installed distribution declares a pack of this name."""


def packs() -> dict[str, Pack]:
    """All installed packs that can be loaded, by name in order of name; ``broken_packs`` has the others."""
    return {name: pack for name, pack in _loaded().items() if isinstance(pack, Pack)}


def broken_packs() -> dict[str, str]:
    """Why installed packs cannot be loaded, by name. One broken pack never keeps the others away."""
    return {name: why for name, why in _loaded().items() if isinstance(why, str)}


def pack_named(name: str) -> Pack:
    """The pack called ``name``. Raises UnknownPack, also for one that cannot be loaded."""
    for point in entry_points(group=GROUP, name=name):
        found = _load(point)
        if isinstance(found, Pack):
            return found
        raise UnknownPack(f"the pack {name!r} cannot be loaded: {found}")
    raise UnknownPack(f"no pack named {name!r} is installed")


def _loaded() -> dict[str, Pack | str]:
    found = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return {point.name: _load(point) for point in found}


def _load(point: EntryPoint) -> Pack | str:
    try:
        found = point.load()
    except Exception as error:  # the code of a pack may fail in any way; its name and reason are kept
        return f"{type(error).__name__}: {str(error)[:300]}"
    return found if isinstance(found, Pack) else f"{point.value} is no Pack"


def pack_of_family(family: str) -> Pack:
    """The pack that brings ``family``. Raises UnknownPack."""
    for pack in packs().values():
        if any(entry.name == family for entry in pack.families):
            return pack
    raise UnknownPack(f"no installed pack brings the family {family!r}")
