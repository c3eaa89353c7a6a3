"""JSON schemas applied in a bounded number of steps, whoever wrote the schema or the value.

A schema of some lines can double its work with every reference, and a list of some kilobytes has millions
of pairs. Every keyword that is looked at and every error costs; when the steps are used up, nothing is
known. What compares values pair by pair elsewhere goes by canonical text here.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import jsonschema  # type: ignore[import-untyped]
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

MOST_STEPS = 100_000  # two seconds, or three
_LETTERS_A_STEP = 500  # of what is written out to be compared or said


@dataclass
class _Walk:
    """One application of a schema: the steps that are left, and its lists of choices as canonical texts."""

    left: int = field(default_factory=lambda: MOST_STEPS)
    choices: dict[int, frozenset[str]] = field(default_factory=dict)


_walk: ContextVar[_Walk] = ContextVar("_walk")

Keyword = Callable[[Any, Any, Any, Any], Iterator[Any] | None]


class CannotFollow(ValueError):
    """The schema leads nowhere, round in circles, or on for too long. The text is for users."""


def errors_in(schema: Mapping[str, Any], value: Any, most: int) -> list[Any]:
    """At most ``most`` places where ``value`` does not fit. Raises ``CannotFollow``."""
    found = []
    before = _walk.set(_Walk())
    try:
        for error in _Bounded(schema, registry=Registry()).iter_errors(value):
            found.append(error)
            if len(found) == most:
                break
    except RecursionError:
        raise CannotFollow("the schema refers to itself without end") from None
    except Unresolvable as error:
        raise CannotFollow(f"{str(error.ref)[:80]!r} leads nowhere in the schema") from None
    finally:
        _walk.reset(before)
    return found


def lost_reference(schema: Mapping[str, Any]) -> str:
    """A reference that leads nowhere in the schema, "" if all lead somewhere."""
    resolver = Registry().with_resource("", DRAFT202012.create_resource(schema)).crawl().resolver()
    try:
        for reference in _references(schema):
            resolver.lookup(reference)
    except Unresolvable as error:
        return str(error.ref)
    return ""


def _references(schema: Any) -> Iterator[str]:
    waiting = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting += item
        elif isinstance(item, Mapping):
            if "$id" in item and item is not schema:
                continue  # a schema of its own, whose references start there
            yield from (item[key] for key in ("$ref", "$dynamicRef") if isinstance(item.get(key), str))
            waiting += item.values()


def _spend(steps: int) -> None:
    walk = _walk.get()
    walk.left -= steps
    if walk.left < 0:
        raise CannotFollow(f"the schema takes more than {MOST_STEPS:,} steps on this value")


def _counted(keyword: Keyword) -> Keyword:
    def run(validator: Any, asked: Any, instance: Any, schema: Any) -> Iterator[Any]:
        _spend(1)
        for error in keyword(validator, asked, instance, schema) or ():
            _spend(1 + len(error.message) // _LETTERS_A_STEP)
            yield error

    return run


def _canonical(value: Any) -> str:
    """Equal for values that a schema calls equal: 1 and 1.0, but not 1 and true."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _text(value: Any) -> str:
    """``value`` as canonical text, which costs what it is long."""
    text = _canonical(value)
    _spend(len(text) // _LETTERS_A_STEP)
    return text


def _unique(validator: Any, asked: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if asked and isinstance(instance, list) and len({_text(item) for item in instance}) < len(instance):
        yield jsonschema.ValidationError("The list holds something twice")


def _enum(validator: Any, asked: Any, instance: Any, schema: Any) -> Iterator[Any]:
    choices = _walk.get().choices
    if id(asked) not in choices:
        _spend(len(asked))
        choices[id(asked)] = frozenset(map(_text, asked))
    if _text(instance) not in choices[id(asked)]:
        yield jsonschema.ValidationError(f"{instance!r} is not one of {asked!r}")


_Bounded: Any = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    {
        name: _counted(keyword)
        for name, keyword in {
            **jsonschema.Draft202012Validator.VALIDATORS,
            "uniqueItems": _unique,
            "enum": _enum,
        }.items()
    },
)
