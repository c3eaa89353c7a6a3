"""``flywheel packs``: what the installed packs bring, and whether they hold what they promise.

Runs on this machine, without a server. Records go where a server on this machine keeps its own: the
store that FLYWHEEL_ARTIFACTS names, or ``artifacts`` in the data folder FLYWHEEL_DATA (default
``var/data``, as `make run` uses it).

Exit codes of ``check``: 0 every known-good answer passed and nothing else did, 1 otherwise, 2 wrong usage, 3
where this machine does not let it run: no sandbox, a data folder that cannot be written, a full disk.
"""

import argparse
import asyncio
import difflib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from artifacts.store import ArtifactStore
from domain.contracts import FamilyCheck
from packs.records import CheckedFamily, checked_families, record_check
from packs.registry import broken_packs, packs

DONE, BAD, USAGE, MACHINE = 0, 1, 2, 3
ROOT = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read has read enough, as in `list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except OSError as error:
        if error.filename is None and error.errno is None:
            raise
        where = f" {error.filename}" if error.filename else ""
        return _complain(f"{error.strerror or error}:{where or ' the data folder'}.", MACHINE)


def installation_store() -> ArtifactStore:
    """The store of the installation on this machine. Sets FLYWHEEL_ARTIFACTS and FLYWHEEL_DATA, so
    that everything in this process uses the same one."""
    data = Path(os.environ.get("FLYWHEEL_DATA") or ROOT / "var" / "data").resolve()
    os.environ["FLYWHEEL_DATA"] = str(data)
    url = os.environ.setdefault("FLYWHEEL_ARTIFACTS", f"file://{data / 'artifacts'}")
    return ArtifactStore(url)


def list_command(options: argparse.Namespace) -> int:
    store = installation_store()
    rows = checked_families(store)
    for name, why in broken_packs().items():
        print(f"flywheel: the pack {name} cannot be loaded: {why}", file=sys.stderr)
    if options.json:
        # Impossible tasks have no good answer whose share could be told, so they stand apart.
        listed = {
            "families": [family_row(row) for row in rows if not row.family.canary],
            "canaries": [family_row(row) for row in rows if row.family.canary],
        }
        print(json.dumps(listed, ensure_ascii=False, indent=1))
        return DONE
    _table(
        ("family", "pack", "good", "nothing", "bad", "errors", "checked"),
        [(row.family.name, row.pack.name, *_figures(row.check), _day(row.check)) for row in rows],
    )
    never = sum(row.check is None for row in rows)
    print(f"\n{len(rows)} families in {len({row.pack.name for row in rows})} packs; {never} never checked.")
    print(f"Records are kept in {store.url}")
    if never:
        print(f"Check them: {_command()} packs check")
    return DONE


def family_row(row: CheckedFamily) -> dict[str, Any]:
    """A family as ``list --json`` shows it: null where it was never checked."""
    pack, family, check = row
    return {
        "name": family.name,
        "pack": pack.name,
        "title": family.title,
        "description": family.description,
        "environment": family.environment,
        "verifier_kinds": list(family.verifier_kinds),
        "parts": list(family.parts),
        "tasks": check.tasks if check else 0,
        "seed": check.seed if check else None,
        "checked_at": check.checked_at if check else None,
        "gold_pass": check.gold_pass if check else None,
        "noop_pass": check.noop_pass if check else None,
        "bad_pass": check.bad_pass if check else None,
        "errors": check.errors if check else 0,
        "problems": list(check.problems) if check else [],
    }


def check_command(options: argparse.Namespace) -> int:
    from workers.evidence import worker_collectors
    from workers.pack_check import UnknownFamily, check_families, select_families
    from workers.sandbox import SandboxUnavailable

    store = installation_store()
    started = time.monotonic()
    try:
        families = select_families(options.families)
    except UnknownFamily as unknown:
        return _complain(f"{unknown} {_nearest(unknown.family)}")
    impossible = {family.name for _, family in families if family.canary}
    try:
        collectors = worker_collectors()
    except SandboxUnavailable as unavailable:
        return _complain(str(unavailable), MACHINE)

    def done(check: FamilyCheck, count: int, total: int) -> None:
        record_check(store, check)
        good, nothing, bad, errors = _figures(check)
        mark = "ok  " if sound(check, canary=check.name in impossible) else "BAD "
        print(
            f"{count:>4}/{total} {mark} {check.name:<32} good {good:>5}  nothing {nothing:>5}  "
            f"bad {bad:>5}  errors {errors}",
            flush=True,
        )
        for problem in check.problems[:3]:
            print(f"          {problem}", flush=True)

    checks = asyncio.run(
        check_families(
            families,
            sample=options.sample,
            seed=options.seed,
            collectors=collectors,
            on_done=done,
        )
    )
    wrong = [check.name for check in checks if not sound(check, canary=check.name in impossible)]
    tasks = sum(check.tasks for check in checks)
    families_said = "1 family" if len(checks) == 1 else f"{len(checks)} families"
    took = time.monotonic() - started
    print(f"\n{families_said}, {tasks} tasks, {took:.0f} s. Recorded in {store.url}")
    if wrong:
        print(f"Not sound: {', '.join(wrong)}.")
        return BAD
    print("Every known-good answer passed; doing nothing and known-bad answers never did.")
    return DONE


def sound(check: FamilyCheck, *, canary: bool = False) -> bool:
    """Good answers all passed, nothing else did, and nothing was left unjudged. A ``canary`` family
    has no good answer."""
    good = check.gold_pass is None and check.tasks > 0 if canary else check.gold_pass == 1.0
    return good and not check.errors and not check.noop_pass and not check.bad_pass


def new_command(options: argparse.Namespace) -> int:
    from packs.template.copying import FolderTaken, UnfitName, copy_template

    folder = Path(options.folder or Path("packs") / options.name)
    try:
        copy_template(options.name, folder)
    except (UnfitName, FolderTaken) as error:
        return _complain(str(error))
    print(f"Made {folder}. Next:")
    print(f"  edit      {folder / options.name / 'tasks.py'}")
    print(f"  install   {sys.executable} -m pip install --no-deps --no-build-isolation -e {folder}")
    print(f"  check     {_command()} packs check {options.name}_sum")
    print("  see it    restart `make run`: a server that runs knows the packs that it started with")
    return DONE


def _command() -> str:
    """This command as it can be typed again from here."""
    here = Path(sys.executable).with_name("flywheel")
    if not here.exists():
        return "flywheel"
    return str(here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here)


def _nearest(name: str) -> str:
    names = [family.name for pack in packs().values() for family in pack.families]
    near = (
        difflib.get_close_matches(name, names, n=5, cutoff=0.6)
        or [other for other in names if name.lower() in other.lower()][:5]
    )
    return f"Did you mean {' or '.join(near)}?" if near else f"See: {_command()} packs list"


def _figures(check: FamilyCheck | None) -> tuple[str, str, str, str]:
    if check is None:
        return "–", "–", "–", "–"
    rates = (check.gold_pass, check.noop_pass, check.bad_pass)
    good, nothing, bad = ("–" if rate is None else f"{100 * rate:.0f} %" for rate in rates)
    return good, nothing, bad, str(check.errors)


def _day(check: FamilyCheck | None) -> str:
    return "never" if check is None else check.checked_at[:16].replace("T", " ")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _complain(sentence: str, code: int = USAGE) -> int:
    print(f"flywheel: {sentence}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="flywheel packs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, metavar="list | check | new")

    one = commands.add_parser("list", help="all families of the installed packs, with their last check")
    one.add_argument("--json", action="store_true", help="as one JSON object")
    one.set_defaults(run=list_command)

    one = commands.add_parser("check", help="check families for real and record the result")
    one.add_argument("families", nargs="*", metavar="FAMILY", help="all if left out")
    one.add_argument("--sample", type=_at_least_one, default=5, metavar="N", help="tasks of each (5)")
    one.add_argument("--seed", type=int, default=0, metavar="S", help="which tasks (0)")
    one.set_defaults(run=check_command)

    one = commands.add_parser("new", help="start a pack of your own from the template")
    one.add_argument("name", metavar="NAME", help="lower case, for example acme_units")
    one.add_argument("--folder", help="where to make it (packs/NAME)")
    one.set_defaults(run=new_command)
    return parser


def _at_least_one(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 1000:
        raise argparse.ArgumentTypeError("must be 1 to 1000")
    return number


if __name__ == "__main__":
    sys.exit(main())
