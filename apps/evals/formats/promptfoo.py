"""promptfoo's configuration: prompts × tests as cases, assertions as verifiers.

The same test under several prompts is one source. Files that it refers to are not followed: what needs
them is left out by name and line.
"""

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from apps.evals.formats.base import (
    MAX_CASES,
    Imported,
    Options,
    Unreadable,
    Upload,
    content_id,
    family_of,
)
from apps.evals.formats.jsonl import messages_of
from apps.evals.formats.parts import NoEquivalent, judged, negated, part, said
from apps.evals.formats.promptfoo_assertions import Context, assertion_part
from apps.evals.formats.safe_yaml import load_yaml
from apps.evals.formats.templates import filled, value_at
from apps.evals.formats.values import strict_json

_MOST_COMBINATIONS = 10_000
_MOST_WORK = 1_000_000_000  # characters of prompts under all tests, an assertion counted as so many:
_ASSERTION = 200
_ELSEWHERE = ("file://", "https://", "http://", "exec:", "package:", "huggingface://")
_UNREAD = {
    "redteam": "red teaming makes its tests while it runs",
    "evaluateOptions": "",
    "derivedMetrics": "metrics computed from others are not taken",
    "extensions": "extensions are programs",
    "nunjucksFilters": "filters are programs",
}


class _Prompt(NamedTuple):
    label: str
    text: str


class _Test(NamedTuple):
    """One test as it stands, with what the defaults give it; ``line`` is where it is written."""

    name: str
    line: int
    variables: Mapping[str, Any]
    assertions: Sequence[Any]
    threshold: Any
    metadata: Mapping[str, Any]
    refused: str = ""


def read(uploads: Sequence[Upload], options: Options) -> Imported:
    found = Imported()
    for other in uploads[1:]:
        found.leave_out(
            other.name, "file", "files beside the configuration are not followed; write them into it"
        )
    upload = uploads[0]
    document = load_yaml(upload)
    if not isinstance(document, Mapping):
        raise Unreadable(upload.name, "it is no promptfoo configuration: prompts and tests are expected")
    for name, why in _UNREAD.items():
        if why and document.get(name):
            found.leave_out(_at(document), name, why)
    prompts = list(_prompts(found, document))
    tests = list(itertools.islice(_tests(found, document), MAX_CASES + 1))
    if len(tests) > MAX_CASES:
        raise Unreadable(upload.name, f"more than {MAX_CASES:,} tests")
    if not prompts:
        raise Unreadable(upload.name, "it has no prompt that stands in the file itself")
    if not tests:
        raise Unreadable(upload.name, "it has no test that stands in the file itself")
    tools = _tools(document)
    family, taken = family_of(upload.name, options), set[str]()
    work, letters = 0, sum(len(prompt.text) for prompt in prompts)
    for test in tests:
        work += _filled(test) * (letters + _ASSERTION * len(prompts) * (len(test.assertions) + 1))
        if work > _MOST_WORK:
            raise Unreadable(upload.name, "its tests, prompts and assertions make too many cases", test.line)
        _test_cases(found, document, test, prompts, tools, family, taken)
    found.note("Providers are not taken: choose what is asked when you start a run.")
    return found


def _test_cases(
    found: Imported, document: Mapping[str, Any], test: _Test, prompts: Sequence[_Prompt],
    tools: Sequence[Mapping[str, Any]], family: str, taken: set[str],
) -> None:  # fmt: skip
    where = f"line {test.line}" if test.line else "tests"
    if test.refused:
        found.leave_out(where, test.name, test.refused)
        return
    try:
        combinations = list(_combinations(test.variables))
    except NoEquivalent as problem:
        found.leave_out(where, test.name, str(problem))
        return
    told: set[tuple[str, str, str]] = set()
    for variables, prompt in itertools.product(combinations, prompts):

        def fill(text: str, variables: Mapping[str, Any] = variables) -> str:
            return filled(text, lambda path: said(value_at(variables, path)))

        try:
            text = _twice(prompt.text, fill)
            messages = _messages(text)
            context = Context(fill, variables, text, tools)
            parts = list(_parts(found, document, test, context, told))
            if not parts:
                raise NoEquivalent(
                    "none of its assertions has an equivalent" if test.assertions else "it has no assertion"
                )
            verdict = judged(parts, _threshold(test.threshold))
        except (NoEquivalent, ValueError) as problem:
            found.leave_out(
                where, f"{test.name}, {prompt.label}" if len(prompts) > 1 else test.name, str(problem)
            )
            continue
        tags = {
            key: kept for key, kept in test.metadata.items() if isinstance(kept, str | int | float | bool)
        }
        if len(prompts) > 1:
            tags["prompt"] = prompt.label[:100]
        found.add(
            where,
            test.line,
            id=content_id("test", messages, taken),
            family=family,
            messages=messages,
            verifier=verdict.verifier,
            reference=verdict.reference,
            source=content_id("vars", variables, set()) if variables else "",
            tools=list(tools),
            tags=tags,
        )


def _parts(
    found: Imported,
    document: Mapping[str, Any],
    test: _Test,
    context: Context,
    told: set[tuple[str, str, str]],
) -> Iterator[dict[str, Any]]:
    for assertion in test.assertions:
        try:
            yield _assertion(found, document, assertion, context, told, test)
        except NoEquivalent as problem:
            kind = str(assertion.get("type", "assertion")) if isinstance(assertion, Mapping) else "assertion"
            line = getattr(assertion, "line", 0) or test.line
            entry = (f"line {line}", kind, str(problem))
            if entry not in told:  # the same under every prompt is told once
                told.add(entry)
                found.leave_out(entry[0], f"{kind} of {test.name}", entry[2])


def _assertion(
    found: Imported, document: Mapping[str, Any], assertion: Any, context: Context,
    told: set[tuple[str, str, str]], test: _Test,
) -> dict[str, Any]:  # fmt: skip
    if not isinstance(assertion, Mapping):
        raise NoEquivalent("an assertion must be a mapping with a type")
    if "$ref" in assertion:
        named = str(assertion["$ref"]).rpartition("/")[2]
        templates = document.get("assertionTemplates") or {}
        if not isinstance(templates, Mapping) or not isinstance(templates.get(named), Mapping):
            raise NoEquivalent(f"it refers to {assertion['$ref']}, which is not in the file")
        assertion = {**templates[named], **{key: kept for key, kept in assertion.items() if key != "$ref"}}
    if assertion.get("type") not in ("assert-set", "not-assert-set"):
        return assertion_part(assertion, context)
    inner = list(
        _parts(found, document, test._replace(assertions=assertion.get("assert") or []), context, told)
    )
    if not inner:
        raise NoEquivalent("none of the assertions in the set has an equivalent")
    verdict = judged(inner, _threshold(assertion.get("threshold")))
    made = part(verdict.verifier["kind"], verdict.verifier["params"])
    if verdict.reference is not None:
        made["reference"] = verdict.reference
    if str(assertion["type"]).startswith("not-"):
        made = negated(made)
    weight = assertion.get("weight", 1)
    return (
        {**made, "weight": float(weight)}
        if isinstance(weight, int | float) and weight > 0 and weight != 1
        else made
    )


def _prompts(found: Imported, document: Mapping[str, Any]) -> Iterator[_Prompt]:
    given = document.get("prompts")
    listed = given if isinstance(given, list) else [given] if given else []
    for at, each in enumerate(listed, start=1):
        where = f"prompts[{at}]"
        if isinstance(each, str):
            label, text = f"prompt {at}", each
        elif isinstance(each, Mapping) and isinstance(each.get("raw") or each.get("id"), str):
            label, text = str(each.get("label") or f"prompt {at}"), str(each.get("raw") or each.get("id"))
            where = f"line {getattr(each, 'line', 0)}"
        else:
            found.leave_out(where, f"prompt {at}", "it is neither text nor a mapping with raw")
            continue
        if text.startswith(_ELSEWHERE) or _names_a_file(text):
            found.leave_out(
                where, label, f"it is in another file ({text[:60]}); files are not followed: write it here"
            )
            continue
        yield _Prompt(label, text)


def _names_a_file(text: str) -> bool:
    ending = text.rpartition(".")[2]
    return (
        " " not in text
        and "\n" not in text
        and ending in ("txt", "json", "yaml", "yml", "js", "py", "md", "j2")
    )


def _tests(found: Imported, document: Mapping[str, Any]) -> Iterator[_Test]:
    default = document.get("defaultTest") or {}
    if not isinstance(default, Mapping):
        found.leave_out(
            "defaultTest",
            "defaultTest",
            f"it is in another file ({str(default)[:60]}); files are not followed",
        )
        default = {}
    yield from _listed(found, document.get("tests"), default, "tests", {})
    for at, scenario in enumerate(document.get("scenarios") or [], start=1):
        where = f"scenarios[{at}]"
        if not isinstance(scenario, Mapping) or not isinstance(scenario.get("config"), list):
            found.leave_out(
                where, "scenario", "it is in another file or has no config; files are not followed"
            )
            continue
        for config in scenario["config"]:
            variables = config.get("vars") if isinstance(config, Mapping) else None
            if not isinstance(variables, Mapping):
                found.leave_out(f"line {getattr(config, 'line', 0)}", "scenario", "its config has no vars")
                continue
            yield from _listed(found, scenario.get("tests"), default, where, variables)


def _listed(
    found: Imported, tests: Any, default: Mapping[str, Any], where: str, variables: Mapping[str, Any]
) -> Iterator[_Test]:
    if tests is None:
        return
    if not isinstance(tests, list):
        found.leave_out(
            where,
            "tests",
            f"they are in another file ({said(tests)[:60]}); files are not followed: write them here",
        )
        return
    for at, test in enumerate(tests, start=1):
        if not isinstance(test, Mapping):
            found.leave_out(
                f"{where}[{at}]",
                f"test {at}",
                f"it is in another file ({said(test)[:60]}); files are not followed",
            )
            continue
        yield _test(at, test, default, variables)


def _test(
    at: int, test: Mapping[str, Any], default: Mapping[str, Any], variables: Mapping[str, Any]
) -> _Test:
    name = str(test.get("description") or f"test {at}")
    options = {**(default.get("options") or {}), **(test.get("options") or {})}
    given = test.get("vars") or {}
    refused = ""
    if options.get("transform") or options.get("transformVars"):
        refused = "it changes the answer or the variables with code (transform)"
    elif not isinstance(given, Mapping):
        refused = f"its vars are in another file ({said(given)[:60]}); files are not followed"
    merged = {**(default.get("vars") or {}), **variables, **(given if isinstance(given, Mapping) else {})}
    far = next(
        (key for key, value in merged.items() if isinstance(value, str) and value.startswith(_ELSEWHERE[:1])),
        "",
    )
    if far and not refused:
        refused = f"the variable {far} is in another file ({merged[far][:60]}); files are not followed"
    return _Test(
        name[:100],
        getattr(test, "line", 0),
        merged,
        [*(default.get("assert") or []), *(test.get("assert") or [])],
        test.get("threshold", default.get("threshold")),
        {**(default.get("metadata") or {}), **(test.get("metadata") or {})},
        refused,
    )


def _combinations(variables: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A variable that is a list stands for each of its values in turn."""
    choices = [value if isinstance(value, list) else [value] for value in variables.values()]
    count = 1
    for each in choices:
        count *= max(1, len(each))
        if count > _MOST_COMBINATIONS:
            raise NoEquivalent(f"its lists of variables make more than {_MOST_COMBINATIONS:,} cases")
    for values in itertools.product(*choices):
        yield dict(zip(variables, values, strict=True))


def _filled(test: _Test) -> int:
    """How often each prompt is filled for ``test``: a file of some lines can ask for a million times."""
    lists = [len(value) for value in test.variables.values() if isinstance(value, list) and value]
    return min(math.prod(lists), _MOST_COMBINATIONS)


def _twice(text: str, fill: Any) -> str:
    """A variable may itself hold ``{{other}}``, which promptfoo fills once more."""
    once: str = fill(text)
    return fill(once) if "{{" in once else once


def _messages(text: str) -> list[dict[str, Any]]:
    """A prompt that is JSON (or YAML-like JSON) with roles is a chat; any other text is one message."""
    if text.lstrip().startswith("["):
        try:
            value = strict_json(text)
        except ValueError:
            value = None
        if (
            isinstance(value, list)
            and value
            and all(isinstance(each, dict) and "role" in each for each in value)
        ):
            return messages_of(value)
    return messages_of(text)


def _threshold(value: Any) -> float | None:
    if value is None or value == 0:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise NoEquivalent("its threshold is no number above 0 and up to 1")
    return float(value)


def _tools(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Tools that a provider in the file offers; of several providers the first that offers any."""
    providers = document.get("providers") or document.get("targets")
    for provider in providers if isinstance(providers, list) else [providers]:
        if not isinstance(provider, Mapping):
            continue
        nested = provider if "config" in provider else next(iter(provider.values()), {})
        tools = (nested.get("config") or {}).get("tools") if isinstance(nested, Mapping) else None
        if isinstance(tools, list) and all(isinstance(tool, Mapping) for tool in tools):
            return json.loads(json.dumps(tools))  # type: ignore[no-any-return]
    return []


def _at(document: Mapping[str, Any]) -> str:
    return f"line {getattr(document, 'line', 1)}"
