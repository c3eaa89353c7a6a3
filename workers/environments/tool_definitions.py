"""OpenAI tool definitions, written short."""

from collections.abc import Mapping
from typing import Any


def tool(
    name: str, description: str, *, optional: tuple[str, ...] = (), **properties: str | Mapping[str, Any]
) -> dict[str, Any]:
    """``properties`` are JSON schemas by argument; a text describes an argument that is a text."""
    schemas = {
        key: {"type": "string", "description": what} if isinstance(what, str) else dict(what)
        for key, what in properties.items()
    }
    parameters = {
        "type": "object",
        "properties": schemas,
        "required": [key for key in properties if key not in optional],
        "additionalProperties": False,
    }
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}
