"""Inspect's own scorers as verifiers. Scorers that people wrote are programs and have no equivalent."""

import re
import string
from collections.abc import Mapping
from typing import Any

from apps.evals.formats.parts import NoEquivalent, any_of, checked, judge, one_of_texts, part

_AROUND = r"[\W_]*"
_ANY = r"[\s\S]*"
_NUMBER = re.compile(r"[+-]?[\d,]*\.?\d+")
_ANSWER = {
    "letter": r"ANSWER\s*:\s*(?:{0})(?:[^\w][\s\S]*)?",
    "word": r"ANSWER\s*:\s*(?:{0})(?:[^\w][\s\S]*)?",
    "line": r"ANSWER\s*:\s*(?:{0})\s*",
}


def scorer_part(name: str, options: Mapping[str, Any], sample: Mapping[str, Any]) -> dict[str, Any]:
    """The verifier of one sample for a scorer. Raises ``NoEquivalent`` with the reason."""
    given = sample.get("target")
    targets = [str(each) for each in given] if isinstance(given, list) else [str(given or "")]
    targets = [target for target in targets if target.strip()]
    if not targets:
        raise NoEquivalent("the sample has no target")
    if name not in _READERS:
        raise NoEquivalent(f"the scorer “{name}” is none of Inspect's that has an equivalent")
    return checked(_READERS[name](options, targets))


def _match(options: Mapping[str, Any], targets: list[str]) -> dict[str, Any]:
    location = options.get("location", "end")
    if options.get("numeric"):
        return any_of([_number(location, target) for target in targets])
    texts = [target.strip().strip(string.punctuation) or target.strip() for target in targets]
    flags = ["ignore_case"] if options.get("ignore_case", True) else []
    if location == "any":
        return part(
            "contains", {"texts": _once(texts, bool(flags)), "mode": "any", "ignore_case": bool(flags)}
        )
    before, after = {
        "begin": (_AROUND, _ANY), "end": (_ANY, _AROUND), "exact": (_AROUND, _AROUND),
    }[location]  # fmt: skip
    found = one_of_texts(texts, before, after)
    found["params"] = (
        {**found["params"], "flags": flags}
        if flags
        else {key: value for key, value in found["params"].items() if key != "flags"}
    )
    return found


def _number(location: str, target: str) -> dict[str, Any]:
    """Inspect takes the last (or first) number of the answer; so does the pattern."""
    text = target.strip().strip("$€£").replace(",", "")
    if not _NUMBER.fullmatch(text):
        return _match({"location": location}, [target])
    whole, _, rest = text.lstrip("+").partition(".")
    ways = re.escape(whole) + (rf"(?:\.{rest.rstrip('0')}0*)" if rest.rstrip("0") else r"(?:\.0+)?")
    pattern = {
        "begin": rf"[^\d]*?(?<![\d.,-]){ways}(?![\d,]|\.\d){_ANY}",
        "end": rf"{_ANY}?(?<![\d.,-]){ways}(?![\d,]|\.\d)[^\d]*",
        "any": rf"{_ANY}?(?<![\d.,-]){ways}(?![\d,]|\.\d){_ANY}",
        "exact": ways,
    }[location]
    return part("regex", {"pattern": pattern, "mode": "full"})


def _includes(options: Mapping[str, Any], targets: list[str]) -> dict[str, Any]:
    folded = bool(options.get("ignore_case", True))
    return part("contains", {"texts": _once(targets, folded), "mode": "any", "ignore_case": folded})


def _exact(options: Mapping[str, Any], targets: list[str]) -> dict[str, Any]:
    return any_of([part("exact", {"normalize": True}, target) for target in targets])


def _answer(options: Mapping[str, Any], targets: list[str]) -> dict[str, Any]:
    form = _ANSWER.get(str(options.get("pattern", "word")))
    if form is None:
        raise NoEquivalent("its pattern is none of letter, word, line")
    ways = "|".join(re.escape(target) for target in targets)
    return part("regex", {"pattern": f"{_ANY}?{form.format(ways)}", "mode": "full", "flags": ["ignore_case"]})


def _choice(options: Mapping[str, Any], targets: list[str]) -> dict[str, Any]:
    letters = [letter for target in targets for letter in re.findall(r"[A-Za-z]", target)]
    asked = r" {0,3}(?:, {0,3})?(?:and )?".join(re.escape(letter.upper()) for letter in sorted(set(letters)))
    if not asked:
        raise NoEquivalent("its target names no choice by letter")
    pattern = rf"{_ANY}?ANSWER\s*:\s*{asked}(?:[^\w,][\s\S]*)?"
    return part("regex", {"pattern": pattern, "mode": "full", "flags": ["ignore_case"]})


def _pattern(options: Mapping[str, Any], targets: list[str]) -> dict[str, Any]:
    given = options.get("pattern")
    try:
        groups = re.compile(str(given)).groups
    except re.error:
        raise NoEquivalent("its pattern is no regular expression") from None
    if groups != 1 or "(?P<" in str(given):
        raise NoEquivalent("its pattern has not exactly one group")
    named = re.sub(r"(?<!\\)\((?!\?)", "(?P<answer>", str(given), count=1)
    flags = ["ignore_case"] if options.get("ignore_case", True) else []
    params = {"pattern": rf"[\s\S]*?{named}[\s\S]*", "mode": "full", **({"flags": flags} if flags else {})}
    return any_of([part("regex", params, {"answer": target}) for target in targets])


def _graded(options: Mapping[str, Any], targets: list[str]) -> dict[str, Any]:
    if options.get("template"):
        raise NoEquivalent("it asks its judge with a template of its own")
    wanted = "; or: ".join(targets)
    more = f" {options['instructions']}" if isinstance(options.get("instructions"), str) else ""
    return judge(
        f"The answer meets this criterion, or says the same as this expected answer: {wanted}.{more}"
    )


def _once(texts: list[str], folded: bool) -> list[str]:
    return list({(text.casefold() if folded else text): text for text in texts}.values())


_READERS = {
    "match": _match,
    "includes": _includes,
    "exact": _exact,
    "answer": _answer,
    "choice": _choice,
    "pattern": _pattern,
    "model_graded_qa": _graded,
    "model_graded_fact": _graded,
}
