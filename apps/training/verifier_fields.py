"""One parameter of a verifier as a form field, made from its JSON schema: how it is shown, and how what was
typed is read again. What no field fits is written as JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.feedback.verifiers import nested_deeply

MISSING: Any = object()  # nothing was typed: the parameter is left out
_LONG = 2000  # a text that may be longer gets an area


class Unreadable(ValueError):
    """What was typed is no such value. The text is for the person who typed it."""


@dataclass
class Field:
    """``raw`` is what was typed: a text, or the chosen ones of several. ``place`` is where the parameter
    stands in the specification, as in ``parts/0/params/texts``."""

    name: str
    place: str
    label: str
    schema: Mapping[str, Any]
    required: bool = False
    raw: Any = ""
    errors: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.name.replace(".", "-")

    @property
    def kind(self) -> str:
        """choice, choices, flag (yes, no or nothing said), number, line, area, code, lines or json."""
        schema = self.schema
        if schema.get("x-short") and "\n" not in str(self.raw):
            return "line"
        if "enum" in schema:
            return "choice"
        kind = schema.get("type")
        if kind == "boolean":
            return "flag"
        if kind in ("number", "integer"):
            return "number"
        if kind == "string":
            if schema.get("x-language"):
                return "code"
            long = schema.get("maxLength", 200) > _LONG or "\n" in str(self.raw)
            return "area" if long else "line"
        if kind == "array" and isinstance(items := schema.get("items"), Mapping):
            if "enum" in items:
                return "choices"
            if items.get("type") == "string":
                return "json" if _is_json_list(self.raw) else "lines"
        return "json"

    @property
    def help(self) -> str:
        said = str(self.schema.get("description", ""))
        how = {"lines": "One a line.", "json": "Written as JSON."}.get(self.kind, "")
        how = "" if self.schema.get("x-short") else how
        return f"{said} {how}".strip()

    @property
    def options(self) -> list[str]:
        return list(self._values())

    @property
    def bounds(self) -> dict[str, Any]:
        """HTML attributes of a number."""
        found = {"min": self.schema.get("minimum"), "max": self.schema.get("maximum")}
        step = 1 if self.schema.get("type") == "integer" else "any"
        return {"step": step, **{name: value for name, value in found.items() if value is not None}}

    @property
    def short(self) -> bool:
        """Whether it may share a line with others."""
        return self.kind in ("choice", "flag", "number") or bool(self.schema.get("x-short"))

    @property
    def rows(self) -> int:
        text = self.raw if isinstance(self.raw, str) else ""
        least = {"code": 10, "lines": 3, "json": 3, "area": 4}.get(self.kind, 1)
        return max(least, min(24, text.count("\n") + 1))

    def show(self, value: Any) -> None:
        """Make ``raw`` what a person would have typed for ``value``."""
        if value is MISSING:
            self.raw = [] if self.kind == "choices" else ""
        elif self.kind == "choices":
            self.raw = [str(one) for one in value] if isinstance(value, list) else []
        elif self.kind == "lines" and isinstance(value, list) and _plain_lines(value):
            self.raw = "\n".join(value)
        elif self.kind == "flag" and isinstance(value, bool):
            self.raw = "yes" if value else "no"
        elif self.kind in ("choice", "line", "area", "code", "number") and not isinstance(value, list | dict):
            self.raw = json.dumps(value) if isinstance(value, int | float) else str(value)
        else:
            self.raw = json.dumps(value, indent=1, ensure_ascii=False)

    def read(self) -> Any:
        """The value that was typed, or ``MISSING``. Raises ``Unreadable``."""
        if self.kind == "choices":
            return [self._values().get(one, one) for one in self.raw] or MISSING
        text = str(self.raw)
        if not text.strip():
            return MISSING
        if self.kind == "flag":
            return {"yes": True, "no": False}.get(text, text)
        if self.kind == "choice":
            return self._values().get(text, text)
        if self.kind == "number":
            return self._number(text.strip())
        if self.kind == "lines":
            return [line for line in text.splitlines() if line.strip()]
        if self.kind == "json":
            return read_json(text)
        return text.replace("\r\n", "\n")

    def _values(self) -> dict[str, Any]:
        """What may be chosen, by how it is shown."""
        source = self.schema.get("items", {}) if self.kind == "choices" else self.schema
        return {str(value): value for value in source["enum"]}

    def _number(self, text: str) -> int | float:
        try:
            return int(text) if self.schema.get("type") == "integer" else float(text.replace(",", "."))
        except ValueError:
            what = "a whole number" if self.schema.get("type") == "integer" else "a number"
            raise Unreadable(f"“{text[:40]}” is not {what}.") from None


def read_json(text: str) -> Any:
    """Raises ``Unreadable``."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise Unreadable("This is nested too deeply.") from None
    except json.JSONDecodeError as error:
        raise Unreadable(f"This is no JSON: {error.msg}, line {error.lineno}.") from None
    except ValueError as error:
        raise Unreadable(f"This is no JSON: {error}.") from None
    if nested_deeply(value):
        raise Unreadable("This is nested too deeply.")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not allowed")


def _plain_lines(value: list[Any]) -> bool:
    plain = (isinstance(line, str) and line.strip() and line.splitlines() == [line] for line in value)
    return bool(value) and all(plain)


def _is_json_list(raw: Any) -> bool:
    """A list whose texts have lines of their own is shown, and read again, as JSON."""
    if not (isinstance(raw, str) and raw.lstrip().startswith("[")):
        return False
    try:
        return isinstance(json.loads(raw), list)
    except (ValueError, RecursionError):
        return False
