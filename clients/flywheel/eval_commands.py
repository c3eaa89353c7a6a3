"""``flywheel eval run | gate | compare``: measure, judge, and say it with an exit code.

Exit codes: 0 passed (or done, where no gate was asked), 1 the gate failed, 2 the gate is undecided,
3 it could not be run or was called wrongly, 130 interrupted. An undecided gate is not a pass.
"""

import argparse
import json
import math
import sys
from typing import Any, NoReturn

from clients.flywheel import evals
from clients.flywheel.client import ApiError, Client
from clients.flywheel.evals import Gate, Run, StillRunning
from clients.flywheel.junit import clean, junit_write

PASSED, FAILED, UNDECIDED, BROKEN, INTERRUPTED = 0, 1, 2, 3, 130
CODES = {"passed": PASSED, "failed": FAILED, "undecided": UNDECIDED}
IN_SERVICE = "in-service"


def eval_run(client: Client, options: argparse.Namespace) -> int:
    suite = evals.suite_version(client, options.suite, options.suite_version)
    if options.gate:
        evals.check_gate(client, suite["suite_id"], suite["slug"])
    wanted = options.target or f"{options.version}:{options.edition}"
    run = evals.run_start(
        client,
        suite_version_id=suite["id"],
        target=evals.target(client, wanted),
        samples=options.samples,
        temperature=options.temperature,
        seed=options.seed,
    )
    _say(options, f"Run {run['id']}: {run['total']} samples.")
    if not (options.wait or options.gate or options.junit):
        return _answer(options, {"run": run}, PASSED)
    return _follow(client, options, run["id"], suite=suite["slug"], target=wanted, gate=options.gate)


def eval_gate(client: Client, options: argparse.Namespace) -> int:
    run = client.get(f"/runs/{options.run_id}")
    if run["state"] not in evals.ENDED and not options.wait:
        raise LookupError(f"Run {options.run_id} has not ended. Add --wait to wait for it.")
    return _follow(client, options, options.run_id, suite="", target="", gate=True)


def eval_compare(client: Client, options: argparse.Namespace) -> int:
    """Run B against run A: B minus A."""
    found = evals.compare(client, options.new, options.base)
    n = f"{found['n']:,} cases, {found['clusters']:,} sources"
    left = found["left_out"]
    gone = left["changed"] + left["only_base"] + left["only_new"] + found["dropped"]
    _say(options, found["sentence"])
    _say(options, f"Run {options.new}: {found['new']['coverage_text']}.")
    _say(options, f"Run {options.base}: {found['base']['coverage_text']}.")
    _say(options, f"{found['flips_up']} better, {found['flips_down']} worse of {n}; {gone} left out.")
    code = {"worse": FAILED, "cannot_tell": UNDECIDED}.get(found["verdict"], PASSED)
    return _answer(options, found, code if options.exit_code else PASSED)


def _follow(
    client: Client, options: argparse.Namespace, run_id: int, *, suite: str, target: str, gate: bool
) -> int:
    """Wait for the run, judge it, write the report; an interrupt leaves the run as it is."""
    try:
        run = evals.run_wait(client, run_id, timeout_s=options.timeout, tell=_progress(options))
    except KeyboardInterrupt:
        _progress_end()
        _complain(f"Run {run_id} goes on. {_how_to_go_on(options, run_id)}")
        return INTERRUPTED
    except StillRunning as late:
        _progress_end()
        _complain(f"{late} {_how_to_go_on(options, run_id)}")
        return BROKEN
    _progress_end()
    score = run.get("score") or {}
    words = ", ".join(word for word in (score.get("text", ""), score.get("coverage_text", "")) if word)
    _say(options, f"{run['state']}: {words} {run['error']}".rstrip())
    decision = _judged(client, options, run) if gate else None
    if options.junit:
        junit_write(
            options.junit,
            suite=suite or f"run-{run_id}",
            run=run,
            target=target or f"run {run_id}",
            results=evals.results(client, run_id),
            gate=decision,
        )
        _say(options, f"Wrote {options.junit}.")
    if decision is not None:
        return _answer(options, {"run": run, "gate": decision}, CODES.get(decision["decision"], UNDECIDED))
    return _answer(options, {"run": run}, PASSED if run["state"] == "done" else BROKEN)


def _judged(client: Client, options: argparse.Namespace, run: Run) -> Gate:
    baseline = None if options.baseline == IN_SERVICE else int(options.baseline)
    found = evals.judge(client, run["id"], baseline)
    _say(options, f"Gate {found['decision']}: {found['sentence']}")
    for rule in found["rules"]:
        _say(options, f"  {rule['state']:<10} {rule['words']}. {rule['sentence']}")
    _say(options, f"  {client.base_url}{found['url']}")
    return found


def _how_to_go_on(options: argparse.Namespace, run_id: int) -> str:
    asked = getattr(options, "gate", True)
    again = f"flywheel eval gate {run_id} --wait" if asked else f"the page {_page(run_id)}"
    return f"Go on with: {again}."


def _page(run_id: int) -> str:
    return f"/evals/runs/{run_id}/"


def _progress(options: argparse.Namespace) -> Any:
    """A line that is written over, on a terminal only: a log does not need a thousand of them."""
    if not sys.stderr.isatty() or options.format == "json":
        return lambda run: None

    def tell(run: Run) -> None:
        line = f"{run.get('done', 0):,} of {run['total']:,} samples"
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)

    return tell


def _progress_end() -> None:
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _say(options: argparse.Namespace, sentence: str) -> None:
    """One line: ids of cases are anybody's text, and a terminal or a CI system obeys what some lines say."""
    if options.format == "text":
        print(" ".join(clean(sentence).split("\n")).replace("\r", " "), flush=True)


def _answer(options: argparse.Namespace, body: Any, code: int) -> int:
    if options.format == "json":
        print(json.dumps({**body, "exit_code": code}, ensure_ascii=False))
    return code


def _complain(sentence: str) -> None:
    print(f"flywheel: {clean(sentence)}", file=sys.stderr)


def add_eval_commands(commands: Any) -> None:
    """``eval`` and what is under it. Wrong usage is exit code 3 here: 2 means undecided."""
    evaluate = commands.add_parser(
        "eval",
        help="measure a version, judge it, compare two runs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = evaluate.add_subparsers(required=True, metavar="run | gate | compare")

    one = actions.add_parser("run", help="run a suite on a target")
    one.add_argument("suite", help="slug or name")
    what = one.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--target", help="1.1, 1.1:high_speed, in-service, in-service:high_speed or endpoint:NAME"
    )
    what.add_argument("--version", help="the same as --target with a version, see --edition")
    one.add_argument("--edition", default="standard", choices=["standard", "high_speed"])
    one.add_argument("--suite-version", type=int, metavar="N", help="the newest if left out")
    one.add_argument("--samples", type=int, help="per case")
    one.add_argument("--temperature", type=float)
    one.add_argument("--seed", type=int)
    one.add_argument("--gate", action="store_true", help="judge the run by the suite's gate; waits")
    one.add_argument("--wait", action="store_true", help="until the run has ended")
    _waiting(one)
    one.set_defaults(run=eval_run)

    two = actions.add_parser("gate", help="judge a run by the gate of its suite")
    two.add_argument("run_id", type=int, metavar="RUN")
    two.add_argument("--wait", action="store_true", help="until the run has ended")
    _waiting(two)
    two.set_defaults(run=eval_gate)

    three = actions.add_parser("compare", help="run B minus run A, on the same cases")
    three.add_argument("base", type=int, metavar="A")
    three.add_argument("new", type=int, metavar="B")
    three.add_argument("--exit-code", action="store_true", help="1 if B is worse, 2 if it cannot be told")
    _format(three)
    three.set_defaults(run=eval_compare)

    for parser in (evaluate, one, two, three):
        parser.set_defaults(refused=BROKEN)
        parser.error = _usage_error(parser)


def _waiting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout", type=_seconds, default=3600.0, metavar="SECONDS", help="3600 if left out"
    )
    parser.add_argument(
        "--baseline",
        type=_baseline,
        default=IN_SERVICE,
        metavar="RUN|in-service",
        help="what the gate compares with; a named run answers, but opens no release",
    )
    parser.add_argument("--junit", metavar="FILE", help="write cases and rules as JUnit XML; waits")
    _format(parser)


def _format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=["text", "json"], default="text")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 <= seconds < math.inf:  # NaN is neither
        raise argparse.ArgumentTypeError(f"seconds from 0 on, not “{text}”")
    return seconds


def _baseline(text: str) -> str:
    if text != IN_SERVICE and not (text.isdecimal() and len(text) < 18):
        raise argparse.ArgumentTypeError(f"a run's number or {IN_SERVICE}, not “{text}”")
    return text


def _usage_error(parser: argparse.ArgumentParser) -> Any:
    def error(message: str) -> NoReturn:
        parser.print_usage(sys.stderr)
        parser.exit(BROKEN, f"{parser.prog}: {message}\n")

    return error


__all__ = ["ApiError", "add_eval_commands", "eval_compare", "eval_gate", "eval_run"]
