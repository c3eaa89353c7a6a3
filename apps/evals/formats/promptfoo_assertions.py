"""promptfoo's assertions as verifiers. What has no equivalent is refused with the reason, never guessed.

Sources: promptfoo's documentation of assertions and its handlers, whose defaults are kept.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from apps.evals.formats.parts import (
    NoEquivalent,
    checked,
    equal_json,
    found_pattern,
    judge,
    negated,
    part,
    said,
)

Fill = Callable[[str], str]
_MEASURED = "{0} is measured with every result; hold it to a bound with a gate instead"
_OTHER_MODEL = "it asks a model for numbers that no judge here gives"
_REFUSED = {
    "javascript": "JavaScript is not run here; write the check in Python",
    "cost": _MEASURED.format("cost"),
    "latency": _MEASURED.format("latency"),
    "similar": "it compares embeddings of a model, and there is none here",
    "perplexity": "it needs log-probabilities of the answer",
    "perplexity-score": "it needs log-probabilities of the answer",
    "classifier": _OTHER_MODEL,
    "moderation": _OTHER_MODEL,
    "answer-relevance": _OTHER_MODEL,
    "context-faithfulness": _OTHER_MODEL,
    "context-recall": _OTHER_MODEL,
    "context-relevance": _OTHER_MODEL,
    "select-best": "it compares answers of several prompts, and a case here is judged on its own",
    "max-score": "it compares answers of several prompts, and a case here is judged on its own",
    "webhook": "it sends the answer to another service",
    "ruby": "Ruby is not run here; write the check in Python",
}
_JSON_SOMEWHERE = """import json


def grade(sample, item):
    text, decoder = sample["output_text"], json.JSONDecoder()
    for start, letter in enumerate(text):
        if letter in "{[":
            try:
                decoder.raw_decode(text, start)
            except ValueError:
                continue
            return 1.0
    return 0.0
"""
_TOOL_CALLS = """import json

KINDS = {"string": str, "object": dict, "array": list, "boolean": bool, "null": type(None)}


def fits(value, schema):
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else (kinds or [])
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    right = [
        (kind == "number" and number)
        or (kind == "integer" and number and value == int(value))
        or (kind in KINDS and isinstance(value, KINDS[kind]))
        for kind in kinds
    ]
    if kinds and not any(right):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, dict):
        known = schema.get("properties", {})
        if any(name not in value for name in schema.get("required", [])):
            return False
        if schema.get("additionalProperties", True) is False and any(name not in known for name in value):
            return False
        return all(fits(inner, known[name]) for name, inner in value.items() if name in known)
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return all(fits(inner, schema["items"]) for inner in value)
    return True


def grade(sample, item):
    try:
        calls = json.loads(sample["output_text"])
        calls = calls.get("tool_calls", [calls]) if isinstance(calls, dict) else calls
        for call in calls:
            call = call.get("function", call)
            arguments = call["arguments"]
            arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
            if not fits(arguments, item["tools"][call["name"]]):
                return 0.0
        return 1.0 if calls else 0.0
    except (ValueError, KeyError, TypeError, AttributeError):
        return 0.0
"""
_LEVENSHTEIN = """def grade(sample, item):
    said, wanted = sample["output_text"], item["reference"]
    if abs(len(said) - len(wanted)) > item["most"]:
        return 0.0
    row = list(range(len(wanted) + 1))
    for at, letter in enumerate(said, 1):
        before, row[0] = row[0], at
        for to, other in enumerate(wanted, 1):
            before, row[to] = row[to], min(row[to] + 1, row[to - 1] + 1, before + (letter != other))
    return 1.0 if row[-1] <= item["most"] else 0.0
"""
_ENDING = """

def grade(sample, item):
    result = main(sample["output_text"], {"vars": item["vars"], "prompt": item["prompt"]})
    if isinstance(result, str):
        text = result.strip().lower()
        result = {"true": True, "false": False}.get(text, result)
        if isinstance(result, str):
            result = json.loads(result) if result.startswith("{") else float(result)
    if isinstance(result, dict):
        score = float(result.get("score", 1.0 if result["pass"] else 0.0))
        low = item["threshold"] is not None and score < item["threshold"]
        return 1.0 if result.get("pass", result.get("pass_")) and not low else 0.0
    if isinstance(result, bool):
        return 1.0 if result else 0.0
    bound = item["threshold"]
    return 1.0 if (result > 0 if bound is None else result >= bound) else 0.0
"""


class Context(NamedTuple):
    """What an assertion may refer to: the test's variables, its prompt as text, the provider's tools."""

    fill: Fill
    variables: Mapping[str, Any]
    prompt: str
    tools: Sequence[Mapping[str, Any]]


def assertion_part(assertion: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """The verifier of one assertion, with its weight. Raises ``NoEquivalent``."""
    kind = str(assertion.get("type", ""))
    inverse, base = kind.startswith("not-"), kind.removeprefix("not-")
    if assertion.get("transform") or assertion.get("contextTransform"):
        raise NoEquivalent("it changes the answer before it judges (transform)")
    if base in _REFUSED:
        raise NoEquivalent(_REFUSED[base])
    if base not in _READERS:
        raise NoEquivalent("this type of assertion has no equivalent here")
    value = _value(assertion.get("value"), context.fill)
    found = _READERS[base](value, assertion, context)
    if inverse and found["kind"] == "contains" and found["params"].get("mode") == "any":
        found = part("contains", {**found["params"], "mode": "none"})
    elif inverse:
        found = negated(found)
    found = checked(found)
    weight = assertion.get("weight", 1)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or weight < 0:
        raise NoEquivalent("its weight is no number from 0 on")
    if weight == 0:
        raise NoEquivalent("its weight is 0, so it decides nothing")
    return {**found, "weight": float(weight)} if weight != 1 else found


def _value(value: Any, fill: Fill) -> Any:
    if isinstance(value, str):
        if value.startswith(("file://", "package:", "exec:")):
            raise NoEquivalent(f"its value is in another file ({value[:60]}); files are not followed")
        return fill(value)
    if isinstance(value, list):
        return [_value(each, fill) for each in value]
    if isinstance(value, Mapping):
        return {key: _value(each, fill) for key, each in value.items()}
    return value


def _text(value: Any) -> str:
    if value is None or value == "":
        raise NoEquivalent("it has no value")
    return said(value)


def _equals(value: Any, assertion: Mapping[str, Any], context: Context) -> dict[str, Any]:
    if isinstance(value, Mapping | list):
        return equal_json(json.loads(json.dumps(value)))
    return part("string_check", {"operation": "eq"}, _text(value))


def _iequals(value: Any, assertion: Mapping[str, Any], context: Context) -> dict[str, Any]:
    return part("exact", {"normalize": True}, _text(value))


def _list(mode: str, ignore_case: bool) -> Callable[..., dict[str, Any]]:
    def read(value: Any, assertion: Mapping[str, Any], context: Context) -> dict[str, Any]:
        texts = _texts(value)
        params: dict[str, Any] = {"texts": _once(texts, ignore_case), "mode": mode}
        if ignore_case:
            params["ignore_case"] = True
        return part("contains", params)

    return read


def _single(ignore_case: bool, where: str = "anywhere") -> Callable[..., dict[str, Any]]:
    def read(value: Any, assertion: Mapping[str, Any], context: Context) -> dict[str, Any]:
        params: dict[str, Any] = {"texts": [_text(value)], "mode": "any"}
        if ignore_case:
            params["ignore_case"] = True
        if where != "anywhere":
            params["where"] = where
        return part("contains", params)

    return read


def _texts(value: Any) -> list[str]:
    """A list, or a text with commas as promptfoo reads it: quoted pieces may hold commas."""
    if isinstance(value, str):
        pieces = re.findall(r'\s*"((?:[^"]|"")*)"\s*|([^,]+)', value)
        value = [(quoted or plain).strip() for quoted, plain in pieces]
    if not isinstance(value, list) or not value:
        raise NoEquivalent("its value is no list of texts")
    return [said(each) for each in value]


def _once(texts: Sequence[str], ignore_case: bool) -> list[str]:
    return list({(text.casefold() if ignore_case else text): text for text in texts}.values())


def _regex(value: Any, assertion: Mapping[str, Any], context: Context) -> dict[str, Any]:
    pattern = re.sub(r"\(\?<(?![=!])", "(?P<", _text(value)).replace(r"\/", "/")
    return found_pattern(pattern)


def _is_json(value: Any, assertion: Mapping[str, Any], context: Context) -> dict[str, Any]:
    if value in (None, ""):
        some = [{"type": "object", "minProperties": 1}, {"type": "array", "minItems": 1}]
        return part("json_schema", {"schema": {"anyOf": [*some, {"type": ["number", "boolean"]}]}})
    return part("json_schema", {"schema": _schema(value)})


def _contains_json(value: Any, assertion: Mapping[str, Any], context: Context) -> dict[str, Any]:
    if value in (None, ""):
        return part("grader_python", {"source": _JSON_SOMEWHERE, "item": {}, "pass_threshold": 1.0})
    return part("json_schema", {"schema": _schema(value), "fence": True})


def _schema(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise NoEquivalent("its schema is no JSON") from None
    if not isinstance(value, Mapping):
        raise NoEquivalent("its schema is no object")
    return dict(value)


def _tools_call(value: Any, assertion: Mapping[str, Any], context: Context) -> dict[str, Any]:
    tools = {}
    for tool in context.tools:
        function = tool.get("function", tool)
        if isinstance(function, Mapping) and function.get("name"):
            tools[str(function["name"])] = function.get("parameters") or {}
    if not tools:
        raise NoEquivalent("no provider in the file says which tools there are")
    return part("grader_python", {"source": _TOOL_CALLS, "item": {"tools": tools}, "pass_threshold": 1.0})


def _levenshtein(value: Any, assertion: Mapping[str, Any], context: Context) -> dict[str, Any]:
    item = {"reference": _text(value), "most": _number(assertion.get("threshold") or 5)}
    return part("grader_python", {"source": _LEVENSHTEIN, "item": item, "pass_threshold": 1.0})


def _similarity(metric: str, default: float) -> Callable[..., dict[str, Any]]:
    def read(value: Any, assertion: Mapping[str, Any], context: Context) -> dict[str, Any]:
        threshold = _number(assertion.get("threshold", default))
        reference = [said(each) for each in value] if isinstance(value, list) else _text(value)
        return part("similarity", {"metric": metric, "threshold": threshold}, reference)

    return read


def _python(value: Any, assertion: Mapping[str, Any], context: Context) -> dict[str, Any]:
    code = _text(value)
    if "\n" in code:
        indented = next((match.group() for match in re.finditer(r"(?m)^[ \t]+(?=\S)", code)), "    ")
        body = "\n".join(f"{indented}{line}" for line in code.split("\n"))
    else:
        body = f"    return {code}"
    source = f"import json\n\n\ndef main(output, context):\n{body}\n{_ENDING}"
    try:
        compile(source, "assertion", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        raise NoEquivalent("its code is not Python") from None
    threshold = assertion.get("threshold")
    item = {
        "vars": dict(context.variables),
        "prompt": context.prompt,
        "threshold": None if threshold is None else _number(threshold),
    }
    return part("grader_python", {"source": source, "item": item, "pass_threshold": 1.0})


def _rubric(value: Any, assertion: Mapping[str, Any], context: Context) -> dict[str, Any]:
    if isinstance(assertion.get("rubricPrompt"), str | list | Mapping):
        raise NoEquivalent("it asks its judge with a prompt of its own (rubricPrompt)")
    texts = [said(each) for each in value] if isinstance(value, list) else [_text(value)]
    threshold = assertion.get("threshold")
    return judge("\n\n".join(texts), None if threshold is None else _number(threshold))


def _geval(value: Any, assertion: Mapping[str, Any], context: Context) -> dict[str, Any]:
    return _rubric(value, {**assertion, "threshold": assertion.get("threshold", 0.7)}, context)


def _factuality(value: Any, assertion: Mapping[str, Any], context: Context) -> dict[str, Any]:
    wanted = _text(value)
    return judge(f"The answer agrees with these facts and contradicts none of them: {wanted}")


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NoEquivalent("its threshold is no number")
    return float(value)


_READERS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "equals": _equals,
    "iequals": _iequals,
    "contains": _single(False),
    "icontains": _single(True),
    "contains-all": _list("all", False),
    "contains-any": _list("any", False),
    "icontains-all": _list("all", True),
    "icontains-any": _list("any", True),
    "starts-with": _single(False, "start"),
    "ends-with": _single(False, "end"),
    "regex": _regex,
    "is-json": _is_json,
    "contains-json": _contains_json,
    "is-valid-openai-tools-call": _tools_call,
    "levenshtein": _levenshtein,
    "rouge-n": _similarity("rouge_1", 0.75),
    "rouge-l": _similarity("rouge_l", 0.75),
    "bleu": _similarity("bleu", 0.5),
    "gleu": _similarity("gleu", 0.5),
    "meteor": _similarity("meteor", 0.5),
    "python": _python,
    "llm-rubric": _rubric,
    "model-graded-closedqa": _rubric,
    "g-eval": _geval,
    "factuality": _factuality,
    "model-graded-factuality": _factuality,
}
