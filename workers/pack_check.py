"""Families of the installed packs checked for real, as training would use them.

For a sample of each family's tasks: the known-good solution must pass, judged by the hidden verifier
too; saying nothing and every known-bad solution must not. Each goes through the task's environment,
the collectors and the verifier. What cannot be judged here (no sandbox, no judge) is an error with
its reason, never a pass.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime

from domain.contracts import FamilyCheck, PackCheckResult, RunPackCheck, TaskSpec, Trajectory
from packs.records import record_check
from packs.registry import Pack, PackFamily, Solution, packs
from workers.context import Context, UnitRefused
from workers.evidence import Collector, worker_collectors
from workers.scripted import play_solution

CANARY = "canary"
_PROBLEMS = 10
_PROBLEM_LENGTH = 300

OnDone = Callable[[FamilyCheck, int, int], None]  # the family's record, how many are done, of how many


class UnknownFamily(LookupError):
    """No installed pack brings this family."""

    def __init__(self, family: str) -> None:
        super().__init__(f"No installed pack brings the family {family!r}.")
        self.family = family


def run_pack_check(message: RunPackCheck, ctx: Context) -> PackCheckResult:
    """Check the families and record each in the unit's store as soon as it is done."""

    def done(check: FamilyCheck, count: int, total: int) -> None:
        record_check(ctx.store, check)
        ctx.progress({"done": count, "total": total, "family": check.name})

    try:
        families = select_families(message.families)
    except UnknownFamily as unknown:
        raise UnitRefused(str(unknown)) from unknown
    checks = asyncio.run(
        check_families(
            families,
            sample=message.sample,
            seed=message.seed,
            collectors=worker_collectors(),
            on_done=done,
        )
    )
    return PackCheckResult(families=tuple(checks))


def select_families(names: Sequence[str]) -> list[tuple[Pack, PackFamily]]:
    """The named families in the order of their packs; no names: all. Raises ``UnknownFamily``."""
    found = {family.name: (pack, family) for pack in packs().values() for family in pack.families}
    for name in names:
        if name not in found:
            raise UnknownFamily(name)
    return [pair for name, pair in found.items() if not names or name in names]


async def check_families(
    families: Sequence[tuple[Pack, PackFamily]],
    *,
    sample: int,
    seed: int,
    collectors: Mapping[str, Collector],
    on_done: OnDone | None = None,
    in_flight: int = 0,
) -> list[FamilyCheck]:
    """Check ``sample`` tasks of each family, drawn with ``seed``; records in the order given.

    ``in_flight`` bounds how many solutions are judged at once (0: four for each core). Tasks are
    made one family at a time, in a thread, because generators are ordinary code that takes time.
    """
    slots = asyncio.Semaphore(in_flight or 4 * (os.cpu_count() or 1))
    finished = 0

    async def one(pack: Pack, family: PackFamily) -> FamilyCheck:
        nonlocal finished
        check = await _check_family(pack, family, sample, seed, collectors, slots, maker)
        finished += 1
        if on_done is not None:
            on_done(check, finished, len(families))
        return check

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="pack-tasks") as maker:
        return list(await asyncio.gather(*(one(pack, family) for pack, family in families)))


@dataclass
class _Tally:
    """Answers of one kind: how many were judged, how many of them passed."""

    judged: int = 0
    passed: int = 0

    def rate(self) -> float | None:
        return self.passed / self.judged if self.judged else None


@dataclass
class _Found:
    good: _Tally = field(default_factory=_Tally)
    nothing: _Tally = field(default_factory=_Tally)
    bad: _Tally = field(default_factory=_Tally)
    errors: int = 0
    problems: list[str] = field(default_factory=list)

    def problem(self, text: str) -> None:
        self.problems.append(text if len(text) <= _PROBLEM_LENGTH else text[: _PROBLEM_LENGTH - 1] + "…")


@dataclass(frozen=True)
class _Made:
    """A task with the solutions that its pack knows. ``good`` is None for an impossible task."""

    task: TaskSpec
    good: Solution | None
    bad: Mapping[str, Solution]


async def _check_family(
    pack: Pack,
    family: PackFamily,
    sample: int,
    seed: int,
    collectors: Mapping[str, Collector],
    slots: asyncio.Semaphore,
    maker: ThreadPoolExecutor,
) -> FamilyCheck:
    found = _Found()
    made: list[_Made] = []
    try:
        made = await asyncio.get_running_loop().run_in_executor(maker, _make, pack, family, sample, seed)
    except Exception as error:
        found.errors += 1
        found.problem(f"No tasks could be made: {type(error).__name__}: {error}")
    await asyncio.gather(*(_check_task(one, collectors, slots, found) for one in made))
    return FamilyCheck(
        name=family.name,
        pack=pack.name,
        tasks=len(made),
        verifier_kinds=family.verifier_kinds,
        checked_at=datetime.now(UTC).isoformat(timespec="seconds"),
        seed=seed,
        gold_pass=found.good.rate(),
        noop_pass=found.nothing.rate(),
        bad_pass=found.bad.rate(),
        errors=found.errors,
        problems=tuple(dict.fromkeys(found.problems))[:_PROBLEMS],
    )


def _make(pack: Pack, family: PackFamily, sample: int, seed: int) -> list[_Made]:
    tasks = pack.generate(family.name, seed=seed, count=sample)
    return [
        _Made(task, None if task.tags.get(CANARY) else pack.gold_answer(task), pack.bad_answers(task))
        for task in tasks
    ]


async def _check_task(
    made: _Made, collectors: Mapping[str, Collector], slots: asyncio.Semaphore, found: _Found
) -> None:
    task = made.task
    wrong: list[tuple[str, Solution, _Tally]] = [("no answer", "", found.nothing)]
    wrong += [(f"the bad answer {name!r}", solution, found.bad) for name, solution in made.bad.items()]
    await asyncio.gather(
        _check_good(made, collectors, slots, found),
        *(
            _must_fail(task, what, solution, tally, collectors, slots, found)
            for what, solution, tally in wrong
        ),
    )


async def _check_good(
    made: _Made, collectors: Mapping[str, Collector], slots: asyncio.Semaphore, found: _Found
) -> None:
    if made.good is None:
        return
    trajectory, broke = await _play(made.task, made.good, collectors, slots)
    verdicts = [("the known-good answer", *_said(trajectory, broke))]
    if trajectory is not None and trajectory.hidden is not None:
        hidden = trajectory.hidden
        verdicts.append(
            ("the known-good answer, by the hidden verifier,", hidden.state, " ".join(hidden.reasons[:2]))
        )
    states = {state for _, state, _ in verdicts}
    for what, state, why in verdicts:
        if state != "passed":
            found.problem(f"{made.task.id}: {what} {_SAID.get(state, state)}. {why}".rstrip())
    if states <= {"passed", "failed"}:
        found.good.judged += 1
        found.good.passed += states == {"passed"}
    else:
        found.errors += 1


async def _must_fail(
    task: TaskSpec,
    what: str,
    solution: Solution,
    tally: _Tally,
    collectors: Mapping[str, Collector],
    slots: asyncio.Semaphore,
    found: _Found,
) -> None:
    state, why = _said(*await _play(task, solution, collectors, slots))
    if state in ("passed", "failed"):
        tally.judged += 1
        tally.passed += state == "passed"
    else:
        found.errors += 1
    if state != "failed":
        found.problem(f"{task.id}: {what} {_SAID.get(state, state)}. {why}".rstrip())


_SAID = {
    "passed": "passes",
    "failed": "fails",
    "unscored": "could not be judged",
    "error": "could not be judged",
}


async def _play(
    task: TaskSpec, solution: Solution, collectors: Mapping[str, Collector], slots: asyncio.Semaphore
) -> tuple[Trajectory | None, str]:
    """The judged trajectory of one solution; None and the reason where playing it broke."""
    async with slots:
        try:
            return await play_solution(task, solution, collectors=collectors), ""
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"


def _said(trajectory: Trajectory | None, broke: str) -> tuple[str, str]:
    """State and first reasons."""
    if trajectory is None:
        return "error", broke
    reasons = trajectory.verdict.reasons if trajectory.verdict else ()
    return trajectory.state, trajectory.error or " ".join(reasons[:2])
