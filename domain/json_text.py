"""JSON that stands inside a string, changed value by value with everything else left as it is.

The text is not parsed and written anew: spacing, numbers and even duplicate keys survive, and a
duplicate key cannot hide a value.
"""

import json
import re
from collections.abc import Callable
from typing import Any

_TOKEN = re.compile(
    r'(?P<string>"(?:[^"\\]|\\.)*")(?P<colon>\s*:)?|(?P<integer>(?<![\w.+-])-?[0-9]+(?![\w.+-]))', re.DOTALL
)


def map_json_text(text: str, key: Callable[[str], str], leaf: Callable[[str | None, Any], Any]) -> str | None:
    """``text`` with each string and integer passed through ``leaf(field name or None, value)`` and each
    field name through ``key``; None when ``text`` is not a JSON object or array."""
    if not text.lstrip().startswith(("{", "[")) or not _is_json(text):
        return None
    pieces: list[str] = []
    position = 0
    field: str | None = None
    for match in _TOKEN.finditer(text):
        name, end = match["string"], match.end()
        between = text[position : match.start()]
        if "[" in between or "{" in between or "}" in between:
            field = None if "," in between or "{" in between or "}" in between else field
        pieces.append(between)
        if name is not None and match["colon"] is not None:
            field = json.loads(name, strict=False)
            pieces += [_written(name, field, key(field)), match["colon"]]
        else:
            value = json.loads(match.group(), strict=False)
            pieces.append(_written(match.group(), value, leaf(field, value)))
        position = end
    return "".join([*pieces, text[position:]])


def _written(literal: str, old: Any, new: Any) -> str:
    """The literal as it stood where nothing changed."""
    return literal if new == old and type(new) is type(old) else json.dumps(new, ensure_ascii=False)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
