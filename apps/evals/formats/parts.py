"""Verifier parts put together, and the few verifiers that several formats need alike."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from domain.contracts import VerifierSpec
from domain.verifiers import InvalidVerifier, UnknownVerifier, check_spec

_MOST_PARTS = 20
_CRITERION = 4000
_NOTHING = object()


class Judged(NamedTuple):
    """A verifier and its reference, as two fields of a TaskSpec."""

    verifier: dict[str, Any]
    reference: Any


class NoEquivalent(ValueError):
    """Nothing here judges like this. The text says why, for users."""


def part(kind: str, params: Mapping[str, Any] | None = None, reference: Any = _NOTHING) -> dict[str, Any]:
    """One part of a composition; without a reference it uses none."""
    found: dict[str, Any] = {"kind": kind, "params": dict(params or {})}
    if reference is not _NOTHING:
        found["reference"] = reference
    return found


def checked(found: dict[str, Any]) -> dict[str, Any]:
    """``found`` if its verifier exists and can judge. Raises ``NoEquivalent`` in the check's own words."""
    try:
        check_spec(VerifierSpec(kind=found["kind"], params=found["params"]), found.get("reference"))
    except UnknownVerifier:
        raise NoEquivalent(f"verifier unknown: {found['kind']}") from None
    except (InvalidVerifier, ValueError) as error:
        raise NoEquivalent(str(error).rstrip(".")) from None
    return found


def judged(parts: Sequence[Mapping[str, Any]], threshold: float | None = None) -> Judged:
    """All of ``parts``; with a ``threshold`` the weighted mean of their scores must reach it."""
    if threshold is not None:
        if len(parts) > _MOST_PARTS:
            raise NoEquivalent(f"a threshold over more than {_MOST_PARTS} assertions")
        return Judged({"kind": "weighted", "params": {"parts": list(parts), "threshold": threshold}}, None)
    plain = [{key: value for key, value in each.items() if key != "weight"} for each in parts]
    if len(plain) == 1:
        return Judged({"kind": plain[0]["kind"], "params": plain[0]["params"]}, plain[0].get("reference"))
    while len(plain) > _MOST_PARTS:
        plain = [
            part("all", {"parts": plain[at : at + _MOST_PARTS]}) for at in range(0, len(plain), _MOST_PARTS)
        ]
    return Judged({"kind": "all", "params": {"parts": plain}}, None)


def negated(inner: Mapping[str, Any]) -> dict[str, Any]:
    return part("not", {"part": {key: value for key, value in inner.items() if key != "weight"}})


def any_of(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return dict(parts[0]) if len(parts) == 1 else part("any", {"parts": list(parts)})


def judge(text: str, threshold: float | None = None) -> dict[str, Any]:
    """A judge with ``text`` as its criteria, cut at paragraphs where it is long."""
    pieces = _pieces(text.strip())
    if not pieces:
        raise NoEquivalent("a judge without anything to judge by")
    params: dict[str, Any] = {"criteria": pieces, "min_words": 1}
    if threshold is not None and threshold != 0.5:
        if not 0 < threshold <= 1:
            raise NoEquivalent(f"a threshold of {threshold:g} that any judgement passes or none")
        params["threshold"] = threshold
    return part("judge", params)


def criteria_of(text: str) -> list[str]:
    return _pieces(text.strip())


def equal_json(value: Any) -> dict[str, Any]:
    """The answer is this JSON value."""
    return part("json_schema", {"schema": {"const": value}})


def found_pattern(pattern: str, flags: Sequence[str] = ()) -> dict[str, Any]:
    """``pattern`` stands somewhere in the answer, however often."""
    params: dict[str, Any] = {"pattern": rf"[\s\S]*?(?:{pattern})[\s\S]*", "mode": "full"}
    if flags:
        params["flags"] = list(flags)
    return part("regex", params)


def one_of_texts(texts: Sequence[str], before: str, after: str) -> dict[str, Any]:
    """One of ``texts`` with only ``before`` and ``after`` (patterns) around it, whatever its case."""
    ways = "|".join(re.escape(text) for text in texts)
    return part("regex", {"pattern": f"{before}(?:{ways}){after}", "mode": "full", "flags": ["ignore_case"]})


def said(value: Any) -> str:
    """A value as the text that a template shows: text as it is, the rest as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _pieces(text: str) -> list[str]:
    if len(text) <= _CRITERION:
        return [text] if text else []
    pieces: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        if pieces and len(pieces[-1]) + len(paragraph) + 2 <= _CRITERION:
            pieces[-1] += f"\n\n{paragraph}"
        else:
            pieces.append(paragraph)
    if len(pieces) > _MOST_PARTS or any(len(piece) > _CRITERION for piece in pieces):
        raise NoEquivalent(f"instructions to a judge in a paragraph longer than {_CRITERION:,} characters")
    return [piece for piece in pieces if piece.strip()]
