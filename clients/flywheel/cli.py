"""``flywheel``: the loop from a shell. Address and key come from FLYWHEEL_URL and FLYWHEEL_API_KEY.

``flywheel packs list | check | new`` works on this machine without either: see ``flywheel packs --help``.

Exit codes: 0 done, 1 it ended badly (a turn that failed, a release rolled back), 2 wrong usage, 3 the server
refused or did not answer. ``flywheel eval`` has its own, for merges: 0 passed, 1 the gate failed, 2 it is
undecided, 3 it could not be run or was called wrongly.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from clients.flywheel.client import ApiError, Client
from clients.flywheel.eval_commands import add_eval_commands
from clients.flywheel.evals import named
from clients.flywheel.junit import clean
from clients.flywheel.turn import follow_turn

DONE, BAD, USAGE, REFUSED = 0, 1, 2, 3
DEFAULT_URL = "http://127.0.0.1:8000"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    url, key = os.environ.get("FLYWHEEL_URL", DEFAULT_URL), os.environ.get("FLYWHEEL_API_KEY", "")
    if not key:
        code = getattr(options, "refused", USAGE)
        return _complain("Set FLYWHEEL_API_KEY to a key of your project (Settings → Keys).", code)
    try:
        with Client(url, key) as client:
            return int(options.run(client, options))
    except ApiError as error:
        return _complain(error.message, REFUSED)
    except (LookupError, TimeoutError) as error:
        return _complain(str(error.args[0]), REFUSED)
    except OSError as error:  # a report that cannot be written
        return _complain(str(error), REFUSED)
    except KeyboardInterrupt:
        return 130


def turn(client: Client, options: argparse.Namespace) -> int:
    outcome = follow_turn(client, seed=options.seed)
    print(outcome.sentence)
    return DONE if outcome.succeeded else BAD


def versions(client: Client, _: argparse.Namespace) -> int:
    for row in client.get("/versions"):
        print(f"{row['number']:<8} {row['state']:<12} {row['base']:<12} {row['adapter_name']}".rstrip())
    return DONE


def release_start(client: Client, options: argparse.Namespace) -> int:
    body = {"version_id": _version(client, options.version)["id"], "reason": options.reason}
    if options.override_gates:
        body["override_gates"] = options.override_gates
    return _release(client.post("/releases", body))


def release_status(client: Client, _: argparse.Namespace) -> int:
    rows = client.get("/releases", limit=1)
    if not rows:
        print("No release yet.")
        return DONE
    return _release(rows[0])


def _release(row: dict[str, Any]) -> int:
    state = "paused" if row["paused"] else "warming up" if row["warming"] else row["state"].replace("_", " ")
    share = f" at {100 * row['weight']:.0f} %" if row["state"] == "running" and not row["warming"] else ""
    print(f"Release {row['number']} of {row['candidate']}: {state}{share}. {' '.join(row['reasons'])}")
    return BAD if row["state"] in ("rolled_back", "aborted") else DONE


def _version(client: Client, number: str) -> dict[str, Any]:
    return named(client.get("/versions", limit=500), number, "version", ("number",))


def _complain(sentence: str, code: int) -> int:
    print(f"flywheel: {clean(sentence)}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="flywheel", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, metavar="command")

    one = commands.add_parser("turn", help="run the demo turn and follow it")
    one.add_argument("--seed", type=int, help="drawn if left out")
    one.set_defaults(run=turn)

    one = commands.add_parser("versions", help="list versions, newest first")
    one.set_defaults(run=versions)

    releases = commands.add_parser("release", help="start a release, or say how the last one stands")
    actions = releases.add_subparsers(required=True, metavar="start | status")
    one = actions.add_parser("start", help="move traffic to a version step by step")
    one.add_argument("version", help="for example 1.1")
    one.add_argument("--reason", required=True, help="goes into the audit trail")
    one.add_argument("--override-gates", metavar="REASON", help="in spite of a gate that did not pass")
    one.set_defaults(run=release_start)
    one = actions.add_parser("status", help="the last release; exit code 1 if it was rolled back")
    one.set_defaults(run=release_status)

    add_eval_commands(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
