"""The form of a verifier: a tree of parts, each with a kind and the fields of its parameters.

It is made from a specification or from what a browser sent, can be changed by a button, and gives the
specification back with a sentence at every field that cannot be read.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.training.verifier_fields import MISSING, Field, Unreadable, read_json
from domain.verifiers import KINDS
from domain.verifiers.composition import SINGLE

ROOT = "v"
_MOST_PARTS, _MOST_LEVELS = 20, 5
_ANY = {"description": "Text or JSON. Leave empty to use what each task says.", "x-short": True}
_WEIGHT = {"type": "number", "minimum": 0, "description": "1 where nothing is said."}


@dataclass
class Part:
    """One verifier of the tree. ``prefix`` begins the names of its inputs, ``place`` is where it stands in
    the specification ("" for the whole)."""

    prefix: str
    place: str
    kind: str
    label: str = ""
    level: int = 0
    fields: list[Field] = field(default_factory=list)
    parts: list["Part"] = field(default_factory=list)
    grows: bool = False  # has a list of parts
    removable: bool = False
    own: list[Field] = field(default_factory=list)  # reference and weight of a part
    errors: list[str] = field(default_factory=list)

    @property
    def description(self) -> str:
        """A part inside another says only its first sentence."""
        said = KINDS[self.kind].description if self.kind in KINDS else ""
        return f"{said.partition('. ')[0].rstrip('.')}." if said and self.nested else said

    @property
    def may_grow(self) -> bool:
        return self.grows and len(self.parts) < _MOST_PARTS

    @property
    def nested(self) -> bool:
        return bool(self.place)


def tree_of(spec: Mapping[str, Any]) -> Part:
    """The form of ``{"kind", "params"}``."""
    return _from_spec(spec, ROOT, "", "", 0)


def tree_from(data: Any) -> Part:
    """The form as a browser sent it: a ``QueryDict``."""
    return _from_post(data, ROOT, "", "", 0)


def change(tree: Part, action: str) -> None:
    """Carry out ``add:<prefix>`` or ``remove:<prefix>``; what fits nothing changes nothing."""
    verb, _, prefix = action.partition(":")
    for part in _walk(tree):
        if verb == "add" and part.prefix == prefix and part.may_grow:
            at = 1 + max((int(one.prefix.rpartition(".")[2]) for one in part.parts), default=-1)
            part.parts.append(_new_part(part, at))
        if verb == "remove":
            part.parts = [one for one in part.parts if not (one.removable and one.prefix == prefix)]


def spec_of(tree: Part) -> tuple[dict[str, Any], bool]:
    """The specification, and whether every field could be read; what could not has its sentence."""
    params: dict[str, Any] = {}
    good = True
    for one in tree.fields:
        good = _take(one, params, one.place.rpartition("/")[2]) and good
    nested = []
    for part in tree.parts:
        spec, fine = spec_of(part)
        for one in part.own:
            fine = _take(one, spec, one.place.rpartition("/")[2]) and fine
        nested.append((part.place, spec))
        good = good and fine
    for place, spec in nested:
        key = place.rpartition("/")[2]
        if key in SINGLE:
            params[key] = spec
        else:
            params.setdefault("parts", []).append(spec)
    return {"kind": tree.kind, "params": params}, good


def put_error(tree: Part, place: str, message: str) -> None:
    """Say ``message`` at the field whose place is the longest beginning of ``place``, else at the top."""
    steps = place.split("/")
    # Parts are numbered in the specification as they stand, whatever numbers their inputs have.
    spots: list[tuple[str, list[str]]] = []
    for part in _walk(tree):
        spots.append((f"{part.place}/kind".lstrip("/"), part.errors))
        spots.append((part.place, part.errors))
        spots += [(one.place, one.errors) for one in (*part.fields, *part.own)]
    fitting = [(spot, errors) for spot, errors in spots if steps[: len(spot.split("/"))] == spot.split("/")]
    best = max(fitting, key=lambda pair: len(pair[0]), default=("", tree.errors))
    best[1].append(message)


def errors_of(tree: Part) -> list[str]:
    """Every sentence of the form, with the field it belongs to."""
    found = []
    for part in _walk(tree):
        found += part.errors
        found += [f"{one.place}: {error}" for one in (*part.fields, *part.own) for error in one.errors]
    return found


def shows_all(spec: Mapping[str, Any]) -> bool:
    """Whether the form of ``spec`` gives it back; a form has no place for parameters that a kind lacks."""
    back, good = spec_of(tree_of(spec))
    return good and _bare(back) == _bare({"params": {}, **spec})


def first_spec(kind: str) -> dict[str, Any]:
    """What a new verifier of ``kind`` begins with."""
    return {"kind": kind, "params": {}}


def _from_spec(spec: Mapping[str, Any], prefix: str, place: str, label: str, level: int) -> Part:
    kind = str(spec.get("kind", ""))
    params = spec.get("params", {})
    params = params if isinstance(params, Mapping) else {}
    part = _skeleton(kind, prefix, place, label, level)
    for one in part.fields:
        one.show(params.get(one.place.rpartition("/")[2], MISSING))
    base = f"{place}/params" if place else ""
    if part.grows:
        listed = params.get("parts", [])
        part.parts = [
            _child(_from_spec(one, f"{prefix}.p.{at}", _join(base, f"parts/{at}"), "", level + 1), one, part)
            for at, one in enumerate(listed[:_MOST_PARTS])
            if isinstance(one, Mapping)
        ] or [_new_part(part, at) for at in range(1)]
    for key in _singles(kind):
        given = params.get(key)
        inner = given if isinstance(given, Mapping) else first_spec("exact")
        child = _from_spec(inner, f"{prefix}.{key}", _join(base, key), key.capitalize(), level + 1)
        part.parts.append(_child(child, inner, part))
    return part


def _from_post(data: Any, prefix: str, place: str, label: str, level: int) -> Part:
    kind = data.get(f"{prefix}.kind", "exact")
    part = _skeleton(kind, prefix, place, label, level)
    for one in part.fields:
        one.raw = data.getlist(one.name) if one.kind == "choices" else data.get(one.name, "")
    base = f"{place}/params" if place else ""
    if part.grows:
        pattern = re.compile(rf"{re.escape(prefix)}\.p\.(\d{{1,4}})\.kind")
        numbers = sorted({int(found[1]) for name in data if (found := pattern.fullmatch(name))})
        for at, number in enumerate(numbers[:_MOST_PARTS]):
            child = _from_post(data, f"{prefix}.p.{number}", _join(base, f"parts/{at}"), "", level + 1)
            part.parts.append(_posted(child, data, part))
        if not part.parts:
            part.parts = [_new_part(part, 0)]
    for key in _singles(kind):
        child = _from_post(data, f"{prefix}.{key}", _join(base, key), key.capitalize(), level + 1)
        part.parts.append(_posted(child, data, part))
    return part


def _skeleton(kind: str, prefix: str, place: str, label: str, level: int) -> Part:
    """A part with empty fields, and without its parts."""
    part = Part(prefix=prefix, place=place, kind=kind, label=label, level=level)
    if kind not in KINDS:
        return part
    schema = KINDS[kind].params_schema
    required = schema.get("required", ())
    base = f"{place}/params" if place else ""
    deep = level < _MOST_LEVELS
    for name, one in schema["properties"].items():
        if deep and kind != "graph" and name in ("parts", *SINGLE):
            continue
        part.fields.append(
            Field(
                name=f"{prefix}.a.{name}",
                place=_join(base, name),
                label=_label(name),
                schema=one,
                required=name in required,
            )
        )
    part.grows = deep and kind != "graph" and "parts" in schema["properties"]
    return part


def _singles(kind: str) -> list[str]:
    properties = KINDS[kind].params_schema["properties"] if kind in KINDS and kind != "graph" else {}
    return [key for key in SINGLE if key in properties]


def _child(child: Part, spec: Mapping[str, Any], parent: Part) -> Part:
    _own_fields(child, parent)
    for one in child.own:
        key = one.place.rpartition("/")[2]
        value = spec.get(key, MISSING)
        one.raw = value if isinstance(value, str) else "" if value is MISSING else json.dumps(value)
    return child


def _posted(child: Part, data: Any, parent: Part) -> Part:
    _own_fields(child, parent)
    for one in child.own:
        one.raw = data.get(one.name, "")
    return child


def _new_part(parent: Part, number: int) -> Part:
    base = f"{parent.place}/params" if parent.place else ""
    place = _join(base, f"parts/{len(parent.parts)}")
    child = _from_spec(first_spec("exact"), f"{parent.prefix}.p.{number}", place, "", parent.level + 1)
    return _child(child, {}, parent)


def _own_fields(child: Part, parent: Part) -> None:
    child.removable = parent.grows
    schemas: list[tuple[str, Mapping[str, Any]]] = [("reference", _ANY)]
    schemas += [("weight", _WEIGHT)] if parent.kind == "weighted" else []
    child.own = [
        Field(name=f"{child.prefix}.{key}", place=f"{child.place}/{key}", label=_label(key), schema=schema)
        for key, schema in schemas
    ]


def _take(one: Field, into: dict[str, Any], key: str) -> bool:
    try:
        value = _reference(str(one.raw)) if one.schema is _ANY else one.read()
    except Unreadable as error:
        if str(error) not in one.errors:
            one.errors.append(str(error))
        return False
    if value is not MISSING:
        into[key] = value
    return True


def _reference(text: str) -> Any:
    """JSON where it is some, else the text itself."""
    if not text.strip():
        return MISSING
    try:
        return read_json(text)
    except Unreadable:
        return text.replace("\r\n", "\n")


def _bare(value: Any) -> Any:
    """Without what a form leaves out: empty lists and texts."""
    if isinstance(value, Mapping):
        return {key: _bare(inner) for key, inner in value.items() if inner not in ([], "")}
    return [_bare(inner) for inner in value] if isinstance(value, list) else value


def _walk(part: Part) -> list[Part]:
    return [part, *(inner for one in part.parts for inner in _walk(one))]


def _join(base: str, rest: str) -> str:
    return f"{base}/{rest}" if base else rest


def _label(name: str) -> str:
    return name.replace("_", " ").capitalize()
