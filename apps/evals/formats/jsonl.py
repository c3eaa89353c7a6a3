"""JSONL of our own TaskSpecs, taken whole or not at all, and plain lines ``{input, expected}``."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from apps.evals.formats.base import (
    Imported,
    Options,
    Unreadable,
    Upload,
    content_id,
    family_of,
    first_problem,
    unused,
)
from apps.evals.formats.parts import NoEquivalent, any_of, equal_json, judge, judged, part
from apps.evals.formats.rows import rows_of
from apps.evals.formats.splits import TAG, split_named
from domain.contracts import TaskSpec

INPUTS = ("input", "prompt", "question", "query", "messages")
EXPECTED = ("expected", "expected_output", "ideal", "answer", "reference", "target", "output")
VERIFIERS = {
    "": "chosen by the expected values",
    "exact": "exact text",
    "exact_any_case": "exact text, whatever its case",
    "numeric": "number",
    "contains": "the answer contains it",
    "json": "the same JSON value",
    "judge": "judge models, with the expected answer",
}


def read_tasks(uploads: Sequence[Upload], options: Options) -> Imported:
    """One TaskSpec a line."""
    (upload, *others) = uploads
    found = Imported(whole=True)
    _only_one(found, others)
    seen: dict[str, int] = {}
    for line, value in rows_of(upload):
        try:
            task = TaskSpec.model_validate(value)
        except ValidationError as error:
            raise Unreadable(upload.name, first_problem(error), line) from None
        if task.id in seen:
            raise Unreadable(upload.name, f"the id “{task.id}” stands on line {seen[task.id]} already", line)
        seen[task.id] = line
        found.tasks.append(task)
        found.lines.append(line)
    return found


def read_plain(uploads: Sequence[Upload], options: Options) -> Imported:
    """Lines with a question and what is expected; other keys are kept as tags."""
    (upload, *others) = uploads
    found, taken = Imported(), set[str]()
    _only_one(found, others)
    for at, (line, value) in enumerate(rows_of(upload), start=1):
        where = f"line {line}" if line else f"entry {at}"
        plain_case(found, where, line, value, options, family_of(upload.name, options), taken)
    return found


def plain_case(
    found: Imported, where: str, line: int, value: Mapping[str, Any], options: Options, family: str,
    taken: set[str],
) -> None:  # fmt: skip
    asked = next((key for key in INPUTS if value.get(key) not in (None, "", [])), None)
    wanted = next((key for key in EXPECTED if value.get(key) is not None), None)
    if asked is None or wanted is None:
        missing = "nothing that is asked (input)" if asked is None else "nothing that is expected (expected)"
        found.leave_out(where, str(value.get("id", "case")), f"it has {missing}")
        return
    messages = messages_of(value[asked], system=value.get("system"))
    try:
        verdict = verifier_for(value[wanted], options.verifier)
    except NoEquivalent as problem:
        found.leave_out(where, str(value.get("id", "case")), str(problem))
        return
    known = {asked, wanted, "id", "family", "source", "split", "tags", "system"}
    tags = {**(value["tags"] if isinstance(value.get("tags"), dict) else {})}
    tags |= {key: kept for key, kept in value.items() if key not in known and kept is not None}
    if name := split_named(value.get("split")):
        tags[TAG] = name
    elif value.get("split") not in (None, ""):
        found.note("A split with an unknown name was kept as the tag “split” and hides nothing.")
        tags[TAG] = value["split"]
    given = value.get("id")
    case_id = given if isinstance(given, str | int) and not isinstance(given, bool) and given != "" else None
    found.add(
        where,
        line,
        id=unused(str(case_id), taken) if case_id is not None else content_id("case", messages, taken),
        family=str(value.get("family") or family),
        messages=messages,
        verifier=verdict.verifier,
        reference=verdict.reference,
        source=str(value.get("source") or ""),
        tags=tags,
    )


def messages_of(asked: Any, system: Any = None) -> list[dict[str, Any]]:
    """What is asked as chat messages: a text is one message of the user."""
    before = [{"role": "system", "content": system}] if isinstance(system, str) and system.strip() else []
    if isinstance(asked, list) and asked and all(isinstance(each, dict) and "role" in each for each in asked):
        kept = ("role", "content", "name", "tool_calls", "tool_call_id")
        return before + [{key: each[key] for key in kept if each.get(key) is not None} for each in asked]
    text = asked if isinstance(asked, str) else str(asked)
    return [*before, {"role": "user", "content": text}]


def verifier_for(expected: Any, wanted: str = "") -> Any:
    """Verifier and reference for an expected value, of the kind that was asked for or that fits it."""
    if isinstance(expected, list) and expected and wanted in ("", "exact", "exact_any_case", "contains"):
        if wanted == "contains":
            return judged([part("contains", {"texts": [str(each) for each in expected], "mode": "any"})])
        if all(isinstance(each, str) for each in expected):
            return judged([any_of([_one(each, wanted) for each in expected])])
    return judged([_one(expected, wanted)])


def _one(expected: Any, wanted: str) -> dict[str, Any]:
    if wanted in ("exact", "exact_any_case"):
        return part("exact", {"normalize": True} if wanted == "exact_any_case" else {}, _text(expected))
    if wanted == "contains":
        return part("contains", {"texts": [_text(expected)]})
    if wanted == "numeric":
        return part("numeric", {}, expected)
    if wanted == "json":
        return equal_json(expected)
    if wanted == "judge":
        return judge(f"The answer says the same as this expected answer: {_text(expected)}")
    if wanted:
        raise NoEquivalent(f"“{wanted}” is none of: {', '.join(name for name in VERIFIERS if name)}")
    if isinstance(expected, bool | dict | list):
        return equal_json(expected)
    if isinstance(expected, int | float):
        return part("numeric", {}, expected)
    return part("exact", {"normalize": True}, str(expected))


def _text(expected: Any) -> str:
    return expected if isinstance(expected, str) else str(expected)


def _only_one(found: Imported, others: Sequence[Upload]) -> None:
    for other in others:
        found.leave_out(other.name, "file", "this format is one file; send it on its own")
