"""What a model's turn asks for: one call of one tool.

A turn is an OpenAI tool call, or a text that holds exactly one JSON object
``{"tool": name, "arguments": {…}}`` (``name`` instead of ``tool`` is read too: it is what many models
were taught); words may stand around it. The JSON is strict: a key twice, NaN or a second object is an
error. ``BadAction`` is a sentence for the model, which it gets back as feedback.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from domain.verifiers.base import shown
from domain.verifiers.strict_json import NotStrictJson, decode_at, parse_strict_object
from workers.environments.protocol import Answer

Definition = Mapping[str, Any]  # of a tool, in OpenAI format

FORMAT = 'Answer with one call: {"tool": name, "arguments": {…}}.'
_BEGUN = re.compile(r"\{\s*\"")
_MAX_DEPTH = 50
_TRIES = 200  # places where an object may begin


@dataclass(frozen=True)
class Action:
    """``arguments`` fit the tool's schema; numbers are int or float."""

    tool: str
    arguments: dict[str, Any]


class BadAction(ValueError):
    """No action can be read from the turn, or it does not fit the tool. The text is for the model."""


def parse_action(answer: Answer, tools: Sequence[Definition]) -> Action:
    """The one action of a text, or of one call. Raises ``BadAction``."""
    name, arguments = _called(answer.tool_calls) if answer.tool_calls else _written(answer.text)
    known = {tool_name(tool): tool for tool in tools}
    if name not in known:
        raise BadAction(f"There is no tool {shown(name, 40)}. Tools: {', '.join(known)}.")
    plain = _plain(arguments)
    _check(name, plain, _parameters(known[name]))
    return Action(name, plain)


def holds_action(answer: Answer) -> bool:
    """Whether the turn tries to call a tool, well or badly; else it is plain words."""
    return bool(answer.tool_calls) or "{" in answer.text


def tool_name(tool: Definition) -> str:
    return str(tool.get("function", tool).get("name", ""))


def _called(calls: Sequence[Mapping[str, Any]]) -> tuple[str, dict[str, Any]]:
    (call,) = calls
    function = call.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise BadAction("The call has no function name.")
    arguments = function.get("arguments") or "{}"
    try:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        return function["name"], parse_strict_object(text)
    except (NotStrictJson, TypeError, ValueError) as error:
        raise BadAction(f"The arguments cannot be read. {error}") from error


def _written(text: str) -> tuple[str, dict[str, Any]]:
    found = list(_objects(text))
    if not found:
        raise BadAction(f"There is no JSON object in the answer. {FORMAT}")
    if len(found) > 1:
        raise BadAction(f"One call a turn, please: the answer holds {len(found)} JSON objects.")
    (call,) = found
    key = "tool" if "tool" in call else "name"
    if set(call) != {key, "arguments"}:
        raise BadAction(f"The keys of a call are tool and arguments. {FORMAT}")
    if not isinstance(call[key], str) or not isinstance(call["arguments"], dict):
        raise BadAction(f"The tool is a text and the arguments are an object. {FORMAT}")
    return call[key], call["arguments"]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The outermost JSON objects in ``text``, left to right."""
    start, broken = text.find("{"), ""
    for _ in range(_TRIES):
        if start < 0:
            break
        try:
            value, start = decode_at(text, start)
        except json.JSONDecodeError as error:
            if _BEGUN.match(text, start):  # braces of a formula or of code are words
                broken = broken or f"{error.msg} at character {error.pos + 1}"
            start += 1
        except NotStrictJson as error:
            raise BadAction(f"The JSON cannot be read. {error}") from error
        else:
            yield value
        start = text.find("{", start)
    else:
        raise BadAction(f"There are too many braces around the call. {FORMAT}")
    if broken:  # a call that is broken must not let its innermost arguments pass for one
        raise BadAction(f"The JSON cannot be read: {broken}. {FORMAT}")


def _plain(value: Any, depth: int = 0) -> Any:
    """Fractions as floats: what services and sandboxes get is what ``json.loads`` would give. Raises
    ``BadAction`` for what could not be kept: halves of characters, endless nesting."""
    if depth > _MAX_DEPTH:
        raise BadAction("The arguments are nested too deeply.")
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_whole(key): _plain(item, depth + 1) for key, item in value.items()}
    return _whole(value) if isinstance(value, str) else value


def _whole(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadAction("A text holds half a character (a lone surrogate).") from error
    return text


def _parameters(tool: Definition) -> Mapping[str, Any]:
    found = tool.get("function", tool).get("parameters")
    return found if isinstance(found, Mapping) else {"type": "object"}


def _check(name: str, arguments: dict[str, Any], schema: Mapping[str, Any]) -> None:
    validator = jsonschema.Draft202012Validator({"additionalProperties": False, **schema})
    error = jsonschema.exceptions.best_match(validator.iter_errors(arguments))
    if error is None:
        return
    place = "/".join(str(part) for part in error.absolute_path)
    message = error.message if len(error.message) <= 200 else error.message[:199] + "…"
    raise BadAction(f"{name}{f', argument {place}' if place else ''}: {message}.")
