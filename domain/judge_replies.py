"""What a judge model's reply says. It counts by its last verdict; one that is malformed is none.

An earlier verdict is never taken instead, because it may be a quotation of the answer. ``null`` is not
0, and a verdict that contradicts itself is no verdict.
"""

import json
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

_OBJECT = re.compile(r"\{\s*[\"'}]")
MAX_REPLY = 20_000  # characters, from the end: there the verdict stands
_MAX_OBJECTS = 200
CHOICES = ("A", "B", "tie")


class Judgement(NamedTuple):
    """A judge's verdict; ``score`` is finite and in [0, 1]."""

    score: float
    passed: bool


class Malformed(NamedTuple):
    """A reply without a usable verdict, and why in a sentence."""

    reason: str


def read_judgement(reply: str, threshold: float, answer: str = "") -> Judgement | Malformed:
    """The score and pass of ``reply``. ``answer`` is what was judged: where the reply holds several
    verdicts, one that stands in the answer word for word is not taken for the judge's own."""
    last = _last_verdict(reply, answer)
    if isinstance(last, Malformed):
        return last
    if not last:
        return Malformed("The verdict is empty.")
    score, passes = last.get("score"), last.get("pass")
    if score is None:
        return Malformed("The score is null." if "score" in last else "The verdict has no score.")
    if not isinstance(passes, bool):
        return Malformed("The verdict does not say whether it passes.")
    if isinstance(score, bool) or not isinstance(score, int | float):
        return Malformed("The score is no number.")
    if not 0 <= score <= 1 or not math.isfinite(score):
        return Malformed("The score does not lie between 0 and 1.")
    value = float(score)
    if passes != (value >= threshold) or (passes and value == 0.0):
        word = "true" if passes else "false"
        return Malformed(f"The verdict contradicts itself: pass is {word} and the score {value:g}.")
    return Judgement(value, passes)


def read_label(reply: str, labels: Sequence[str], answer: str = "") -> str | Malformed:
    """The one of ``labels`` that ``reply`` chooses; case and outer spaces do not matter."""
    last = _last_verdict(reply, answer)
    if isinstance(last, Malformed):
        return last
    said = last.get("label")
    if not isinstance(said, str):
        return Malformed("The verdict names no label.")
    known = {label_key(label): label for label in labels}
    return known.get(label_key(said), Malformed("The verdict names a label that was not offered."))


def read_choice(reply: str, answer: str = "") -> str | Malformed:
    """``A``, ``B`` or ``tie``: which of two answers ``reply`` calls the better one."""
    last = _last_verdict(reply, answer)
    if isinstance(last, Malformed):
        return last
    said = last.get("better")
    known = {choice.casefold(): choice for choice in CHOICES}
    choice = known.get(said.strip().casefold()) if isinstance(said, str) else None
    return choice or Malformed("The verdict names neither A nor B nor a tie.")


def label_key(label: str) -> str:
    return " ".join(label.split()).casefold()


def _last_verdict(reply: str, answer: str) -> dict[str, Any] | Malformed:
    reply = reply[-MAX_REPLY:]
    found: list[tuple[Any, int, int]] = []
    for start in [match.start() for match in _OBJECT.finditer(reply)][-_MAX_OBJECTS:]:
        if found and start < found[-1][2]:
            continue  # inside the object before it
        try:
            value, end = _DECODER.raw_decode(reply, start)
        except (ValueError, RecursionError):
            value, end = None, start
        found.append((value, start, end))
    if not found:
        return Malformed("The reply holds no verdict.")
    last, start, end = found[-1]
    if not isinstance(last, dict):
        return Malformed("The last verdict of the reply is not valid JSON.")
    if re.search(r"\w", reply[end:]):
        return Malformed("The reply goes on after its verdict.")
    if reply[reply.rfind("\n", 0, start) + 1 : start].lstrip().startswith("|"):
        return Malformed("The last verdict of the reply is a quotation.")
    others = [value for value, _, _ in found[:-1] if isinstance(value, dict) and value.keys() & last.keys()]
    if any(value != last for value in others) and reply[start:end] in answer:
        return Malformed("The last verdict of the reply stands in the answer.")
    return last


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key appears twice")
    return dict(pairs)


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is not allowed in JSON")


# Of its own, because the verifiers import this module.
_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refused)
