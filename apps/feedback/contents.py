"""What a captured exchange looks like, and what is refused before anything of it is stored.

A content is ``{"messages": [...], "answer": str, "tool_calls": [...], "tools": [...],
"correction": str, "feedback": [...]}`` in OpenAI's message format; only what is present is kept. A
failed evaluation adds what judged it: ``verifier`` (kind and params) and ``reference``.
Messages of errors name the place, never the text.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from apps.feedback import names
from domain.contracts import ChatMessage

MAX_ITEMS = 1000
MAX_ITEM_BYTES = 256 * 1024
_IDENTIFIER = re.compile(r"[\w.:/#&+,() -]{1,120}", re.UNICODE)
_DIGITS = re.compile(r"(?:\d[ -]?){13,19}")
# What machines count by: a UUID or a digest, whole. Digits inside one are no card number, though one
# operation in some hundreds holds thirteen that look like it.
_HEX = "[0-9a-f]"
_MADE_UP = re.compile(
    rf"(?<![0-9A-Za-z])(?=[0-9-]*[a-f])(?:{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}|{_HEX}{{32,64}})"
    r"(?![0-9A-Za-z])",
    re.IGNORECASE,
)


class Invalid(ValueError):
    """An item that cannot be taken. The text is for the caller and quotes nothing captured."""


def content_checked(item: Mapping[str, Any]) -> dict[str, Any]:
    """The content of ``item`` in one form. Raises ``Invalid``."""
    messages = item.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Invalid("messages: at least one message is needed.")
    content: dict[str, Any] = {"messages": [_message(at, message) for at, message in enumerate(messages)]}
    answer = item.get("answer", "")
    if not isinstance(answer, str):
        raise Invalid("answer: must be text.")
    content["answer"] = answer
    for key, kind, words in (
        ("correction", str, "text"),
        ("tools", list, "a list"),
        ("tool_calls", list, "a list"),
        ("verifier", dict, "an object"),
    ):
        value = item.get(key)
        if value is not None and not isinstance(value, kind):
            raise Invalid(f"{key}: must be {words}.")
        if value:
            content[key] = value
    if item.get("reference") is not None:
        content["reference"] = item["reference"]
    try:
        size = len(json.dumps(content, ensure_ascii=False, allow_nan=False).encode())
    except (ValueError, TypeError, UnicodeEncodeError):
        raise Invalid("The item holds something that is not JSON.") from None
    if size > MAX_ITEM_BYTES:
        raise Invalid(f"The item is {size // 1024} KiB; at most {MAX_ITEM_BYTES // 1024} KiB are taken.")
    return content


def _message(at: int, message: Any) -> dict[str, Any]:
    try:
        parsed = ChatMessage.model_validate(message)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"][:1])
        raise Invalid(f"messages.{at}{f'.{place}' if place else ''}: {first['msg']}.") from None
    if isinstance(parsed.content, list) and any(part.get("type") != "text" for part in parsed.content):
        raise Invalid(f"messages.{at}: images and files are not accepted, because they cannot be anonymized.")
    return parsed.model_dump(exclude_none=True)


def identifier_checked(value: Any, name: str, *, optional: bool = False) -> str:
    """``value`` if it can be stored in clear: ids are kept as they are, so they must not be personal."""
    if value in (None, "") and optional:
        return ""
    if not isinstance(value, str) or not _IDENTIFIER.fullmatch(value):
        raise Invalid(f"{name}: 1 to 120 letters, digits, spaces and . : / # & + , ( ) _ - are allowed.")
    if any(_luhn(match.group()) for match in _DIGITS.finditer(_MADE_UP.sub("", value))):
        raise Invalid(f"{name}: looks like a card number. Send an id that is nobody's data.")
    if names.names_somebody(value):
        raise Invalid(f"{name}: looks like a person's name. Send an id that is nobody's data.")
    return value


def answer_text(content: Mapping[str, Any]) -> str:
    """What the model answered as one text; tool calls in the form that the verifier reads."""
    if content.get("tool_calls") and not content.get("answer"):
        return json.dumps({"tool_calls": content["tool_calls"]}, ensure_ascii=False)
    return str(content.get("answer", ""))


def prompt_text(content: Mapping[str, Any]) -> str:
    """The last user message as plain text."""
    for message in reversed(content.get("messages", [])):
        if message.get("role") == "user":
            return message_text(message)
    return message_text(content["messages"][-1]) if content.get("messages") else ""


def message_text(message: Mapping[str, Any]) -> str:
    said = message.get("content") or ""
    if isinstance(said, list):
        return "\n".join(str(part.get("text", "")) for part in said)
    return str(said)


def _luhn(text: str) -> bool:
    digits = [int(c) for c in text if c.isdigit()]
    doubled = [d if i % 2 == 0 else (d * 2 - 9 if d > 4 else d * 2) for i, d in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0
