"""The form of the rules for prose, as JSON schema; the reference of a task may add to its parameters."""

from typing import Any

from domain.verifiers.base import JsonSchema

_VARIANTS = {"type": "array", "minItems": 1, "maxItems": 60, "items": {"type": "string", "pattern": r"\S"}}
_NAME = {"type": "string", "minLength": 1, "maxLength": 120}
_BOUNDS = {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "integer", "minimum": 0}}
_RULES: dict[str, Any] = {
    "required": {
        "type": "array",
        "maxItems": 40,
        "items": {
            "type": "object",
            "properties": {
                "name": _NAME,
                "any": _VARIANTS,
                "mention": {"type": "boolean"},
                "with": {"type": "array", "items": _VARIANTS},
                "without": _VARIANTS,
                "section": _NAME,
                "cite": {"type": "array", "items": {"type": "string"}},
                "source": {"type": "string"},
            },
            "required": ["name", "any"],
            "additionalProperties": False,
        },
    },
    "forbidden": {
        "type": "array",
        "maxItems": 60,
        "items": {
            "type": "object",
            "properties": {"name": _NAME, "any": _VARIANTS, "unless_denied": {"type": "boolean"}},
            "required": ["name", "any"],
            "additionalProperties": False,
        },
    },
    "length": {
        "type": "object",
        "properties": {"words": _BOUNDS, "characters": _BOUNDS, "sentences": _BOUNDS},
        "additionalProperties": False,
    },
    "sentence_words": {"type": "integer", "minimum": 1},
    "passages": {"type": "object", "additionalProperties": {"type": "string"}},
    "numbers_from": {"type": "string"},
    "source": {"type": "string"},
    "max_copied_words": {"type": "integer", "minimum": 1},
    "sections": {
        "type": "array",
        "maxItems": 20,
        "items": {
            "type": "object",
            "properties": {"name": _NAME, "items": _BOUNDS},
            "required": ["name"],
            "additionalProperties": False,
        },
    },
    "nothing_else": {"type": "boolean"},
    "patterns": {
        "type": "array",
        "maxItems": 20,
        "items": {
            "type": "object",
            "properties": {
                "name": _NAME,
                "pattern": {"type": "string", "minLength": 1},
                "present": {"type": "boolean"},
                "flags": {"type": "array", "items": {"enum": ["ignore_case", "multiline", "dot_all"]}},
            },
            "required": ["name", "pattern"],
            "additionalProperties": False,
        },
    },
}
RULES_SCHEMA: JsonSchema = {"type": "object", "properties": _RULES, "additionalProperties": False}
