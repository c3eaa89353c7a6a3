"""A run and its gate as JUnit XML, as CI systems read it: one test case a case, one a rule.

What was not scored is an error, never a skip: skipped tests pass in most CI systems, and no answer is not
a pass. Text from models may hold characters that XML forbids; they are written as ``\\x1b``.
"""

import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from clients.flywheel.evals import Gate, Run

MESSAGE, TEXT = 300, 4000
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# The worst sample speaks for the case: a failure is a finding, the others are none.
_ORDER = ("failed", "error", "unscored", "cancelled")
_UNSAID = {
    "failed": "The answer failed.",
    "error": "The sample ended in an error.",
    "unscored": "The verifier could not decide.",
    "cancelled": "The sample was not run.",
}


@dataclass
class _Case:
    family: str
    states: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, list[str]] = field(default_factory=dict)
    seconds: float = 0.0


def junit_write(
    path: str | Path,
    *,
    suite: str,
    run: Run,
    target: str,
    results: Iterable[dict[str, Any]],
    gate: Gate | None,
) -> None:
    """Write the whole file at once: a reader never sees half of it."""
    root = ElementTree.Element("testsuites", name="flywheel")
    totals = Counter(_cases(root, suite, run, target, results))
    if gate is not None:
        totals.update(_rules(root, suite, gate))
    root.attrib |= {name: str(totals[name]) for name in ("tests", "failures", "errors")}
    ElementTree.indent(root)
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=".junit-")
    try:
        with os.fdopen(handle, "wb") as file:
            ElementTree.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
        os.chmod(name, 0o644)
        os.replace(name, place)
    except BaseException:
        os.unlink(name)
        raise


def clean(text: Any) -> str:
    """Text without what XML 1.0 forbids, escapes written out."""
    return _FORBIDDEN.sub(lambda found: f"\\x{ord(found[0]):02x}", str(text))


def _cases(
    root: ElementTree.Element, suite: str, run: Run, target: str, results: Iterable[dict[str, Any]]
) -> dict[str, int]:
    cases: dict[str, _Case] = {}
    seen = 0
    for row in results:
        seen += 1
        case = cases.setdefault(row["case"], _Case(row["family"]))
        case.states[row["state"]] += 1
        case.seconds += (row["latency_ms"] or 0.0) / 1000
        if row["state"] != "passed":
            case.reasons.setdefault(row["state"], []).extend(_reasons(row))
    suite_at = ElementTree.SubElement(root, "testsuite", name=clean(f"{suite}, run {run['id']}"))
    properties = ElementTree.SubElement(suite_at, "properties")
    score = run.get("score") or {}
    for name, value in (
        ("run", run["id"]),
        ("target", target),
        ("state", run["state"]),
        ("pass rate", score.get("text", "")),
        ("coverage", score.get("coverage_text", "")),
        ("suite digest", run.get("suite_digest", "")),
    ):
        ElementTree.SubElement(properties, "property", name=name, value=clean(value))
    counts: Counter[str] = Counter(tests=len(cases))
    for key, case in cases.items():
        at = ElementTree.SubElement(
            suite_at,
            "testcase",
            classname=clean(f"{suite}.{case.family}"),
            name=clean(key),
            time=f"{case.seconds:.3f}",
        )
        state = next((state for state in _ORDER if case.states[state]), "")
        if state:
            counts["failures" if state == "failed" else "errors"] += 1
            _finding(at, state, case)
    if seen < run["total"]:
        counts.update(tests=1, errors=1)
        at = ElementTree.SubElement(suite_at, "testcase", classname=clean(suite), name="(samples not run)")
        words = f"{run['total'] - seen:,} of {run['total']:,} samples have no result. {run['error']}".strip()
        ElementTree.SubElement(at, "error", type="cancelled", message=clean(words))
    return _counted(suite_at, counts, sum(case.seconds for case in cases.values()))


def _finding(at: ElementTree.Element, state: str, case: _Case) -> None:
    reasons = list(dict.fromkeys(case.reasons.get(state, []))) or [_UNSAID[state]]
    total = case.states.total()
    several = f"{case.states['passed']} of {total} samples passed. " if total > 1 else ""
    found = ElementTree.SubElement(
        at,
        "failure" if state == "failed" else "error",
        type=state,
        message=clean(f"{several}{reasons[0]}"[:MESSAGE]),
    )
    found.text = clean("\n".join(reasons)[:TEXT])


def _rules(root: ElementTree.Element, suite: str, gate: Gate) -> dict[str, int]:
    at = ElementTree.SubElement(root, "testsuite", name=clean(f"gate of {suite}, rules {gate['revision']}"))
    counts: Counter[str] = Counter(tests=len(gate["rules"]))
    for rule in gate["rules"]:
        case = ElementTree.SubElement(
            at, "testcase", classname=clean(f"{suite}.gate"), name=clean(rule["words"]), time="0"
        )
        if rule["state"] == "passed":
            ElementTree.SubElement(case, "system-out").text = clean(rule["sentence"])
            continue
        failed = rule["state"] == "failed"
        counts["failures" if failed else "errors"] += 1
        ElementTree.SubElement(
            case,
            "failure" if failed else "error",
            type=rule["state"],
            message=clean(rule["sentence"][:MESSAGE]),
        ).text = clean(rule["sentence"])
    return _counted(at, counts, 0.0)


def _counted(at: ElementTree.Element, counts: Counter[str], seconds: float) -> dict[str, int]:
    found = {name: counts[name] for name in ("tests", "failures", "errors")}
    at.attrib |= {name: str(value) for name, value in found.items()}
    at.attrib |= {"skipped": "0", "time": f"{seconds:.3f}"}
    return found


def _reasons(row: dict[str, Any]) -> list[str]:
    if row["error"]:
        return [str(row["error"])]
    return [str(reason) for reason in (row.get("verdict") or {}).get("reasons") or []]
