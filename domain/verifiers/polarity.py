"""Whether a text states something, or denies it, doubts it or only puts a bound on it.

Read is the sentence around a span, in English, German and French. A denial may stand anywhere
before the span ("the total is not 42") or follow it ("42 is wrong"); an approximation or a bound
must stand right before it ("about 42", "more than 42").
"""

import re

_BOUNDARY = re.compile(r"[.!?;](?=\s|$)|\n")
_LABEL = re.compile(
    r"\b(?:invoice|order|ticket|item|line|page|account)\s+no\.?(?=\s|$)|\bno\.\s*(?=[0-9])", re.IGNORECASE
)
_DENIAL = re.compile(
    r"\b(?:not|no|never|neither|nor|cannot|except|unlike|nicht|kein|keine|keinen|keiner|nie|weder|pas|jamais|sauf)\b"
    r"|n['\u2019]t\b|\b(?:other|rather) than\b|\b(?:anything|everything|all|nothing) but\b"
    r"|\binstead of\b|\bfar from\b|\b(?:false|untrue|wrong|incorrect) (?:that|to say)\b"
    r"|\bau[sß]er\b",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"\b(?:maybe|perhaps|possibly|probably|presumably|might|could|guess|guessing|unsure|uncertain|either"
    r"|supposedly|allegedly|vielleicht|wahrscheinlich|vermutlich|möglicherweise|eventuell|entweder"
    r"|peut-être|probablement)\b",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"(?:\b(?:about|around|roughly|nearly|almost|approximately|approx\.?|circa|ca\.?|some|under|over|below"
    r"|above|up to|at (?:least|most)|(?:less|more|fewer|greater|higher|lower|larger|smaller|bigger) than"
    r"|between|close to|or|minus|negative|half(?: of)?|twice|double|triple|times"
    r"|(?:square|root|opposite|inverse|reciprocal|percent|%) of"
    r"|etwa|ungefähr|rund|fast|knapp|mindestens|höchstens|unter|über|oder"
    r"|(?:mehr|weniger|größer|kleiner) als"
    r"|environ|presque|au (?:moins|plus)|(?:plus|moins) de|ou)"
    r"|(?<![-=])[<>]=?|[≤≥≠~≈±]|!=)\s*[(\[{*_]*$",
    re.IGNORECASE,
)
_CHANGED = re.compile(r"^\W*(?:squared|cubed|plus|minus|times|divided by)\b", re.IGNORECASE)
_TAKEN_BACK = re.compile(
    r"^\W{0,4}(?:(?:is|was|are|would be|seems|looks|ist|war|est)\s+)?(?:\w+ly\s+)?"
    r"(?:not|n['\u2019]t|wrong|incorrect|false|invalid|nicht|falsch|faux|pas|(?:or|oder|ou)\b|give or take)"
    r"|\b(?:is|was|['\u2019]s)\s*(?:not|n['\u2019]t|wrong|incorrect|false)\b|\b(?:isn|wasn)['\u2019]t\b",
    re.IGNORECASE,
)
_RETRACTION = re.compile(
    r"\b(?:that|this|it|which)(?:\s+is|\s+was|['\u2019]s)\s+"
    r"(?:wrong|incorrect|false|not (?:right|correct|true))\b"
    r"|\bjust kidding\b|\bopposite day\b"
    r"|\b(?:das|es) (?:ist|war) (?:falsch|nicht (?:richtig|wahr))\b|\bc['\u2019]est faux\b",
    re.IGNORECASE,
)

_TRUTH = r"(?:true|so|right|correct|the case)"
_UNTRUTH = r"(?:false|untrue|unlikely|doubtful|wrong|incorrect|fiction|nonsense|an? (?:lie|myth|rumou?r))"
_LABEL_OF_UNTRUTH = r"(?:lies?|myths?|rumou?rs?|fiction|false|untrue|wrong|incorrect|not true)"
# What stands somewhere before a clause and takes the whole of it back, however far away.
_DISCLAIMED = re.compile(
    rf"\b(?:is|was|isn['\u2019]t|wasn['\u2019]t) (?:not )?(?:{_TRUTH}|{_UNTRUTH})\b[^.!?]*?\bthat\b"
    rf"|\b(?:not the case|hardly {_TRUTH})\b"
    rf"|\b(?:{_LABEL_OF_UNTRUTH}|rejected|disputed|denied)\s*:"
    r"|\b(?:nobody|no one)\s+(?:\w+\s+)?(?:said|says?|decide[ds]|agreed|claim(?:s|ed)?|believes?|thinks?)\b"
    r"|\b(?:refuse[sd]?|decline[sd]?|unable|unwilling) to (?:say|state|confirm|claim)\b"
    r"|\b(?:ignore|disregard|forget) (?:this|that|the following|what follows)\b"
    r"|\b(?:maybe|perhaps|possibly|presumably|supposedly|allegedly|unlikely|vielleicht|angeblich|peut-être)\b",
    re.IGNORECASE,
)
_DISCLAIMED_AFTER = re.compile(
    rf"\(\s*(?:not {_TRUTH}|{_UNTRUTH})\s*\)|\b(?:is|was|are|were)\s+(?:{_UNTRUTH}|not {_TRUTH})\b|\?\s*$",
    re.IGNORECASE,
)
_DISOWNED = re.compile(
    r"\b(?:none|nothing) of (?:the above|this|that|these|it)\b[^.!?\n]* (?:true|right|correct)\b"
    r"|\b(?:ignore|disregard|forget) (?:(?:all|everything|any|most|each)(?: of)? )?"
    r"(?:the above|the foregoing|what (?:i|we) (?:said|wrote)|what (?:stands|is) above|everything above)\b"
    r"|\b(?:the above|all (?:of )?(?:this|the above)|everything (?:above|here)) (?:is|was) "
    rf"(?:{_UNTRUTH}|not {_TRUTH}|made up)\b"
    rf"|(?:^|\n|[.!?]\s)\W*{_LABEL_OF_UNTRUTH}\s*:|\(\s*(?:not {_TRUTH}|{_UNTRUTH})\s*\)"
    r"|\b(?:is|was|are|were)\s+(?:all )?an? (?:lie|myth|rumou?r)\b"
    rf"|\bthe opposite (?:of (?:the above|this|that|it all) )?is {_TRUTH}\b",
    re.IGNORECASE,
)


def sentence_parts(text: str, start: int, end: int) -> tuple[str, str]:
    """The sentence around ``text[start:end]``: what stands before the span, and what after it."""
    opening = max((match.end() for match in _BOUNDARY.finditer(text, 0, start)), default=0)
    closing = _BOUNDARY.search(text, end)
    # The closing sign stays, so that a question can be told from a statement.
    return text[opening:start], text[end : closing.end() if closing else len(text)]


def denied(text: str, start: int, end: int) -> bool:
    """Whether the sentence says that ``text[start:end]`` is not so, before or after the span."""
    before, after = sentence_parts(text, start, end)
    return bool(_DENIAL.search(_LABEL.sub(" ", before)) or _TAKEN_BACK.search(after))


def doubted(text: str, start: int, end: int) -> bool:
    """Whether the sentence only supposes, approximates, bounds, changes or asks for ``text[start:end]``."""
    before, after = sentence_parts(text, start, end)
    return bool(
        _DOUBT.search(before) or _BOUND.search(before) or _DOUBT.search(after) or _CHANGED.search(after)
    ) or after.rstrip().endswith("?")


def disclaimed(text: str, start: int, end: int) -> bool:
    """Whether the sentence around ``text[start:end]`` says of itself that it is untrue, unsure or asked."""
    before, after = sentence_parts(text, start, end)
    return bool(_DISCLAIMED.search(before) or _DISCLAIMED_AFTER.search(after))


def retracted(text: str) -> bool:
    """Whether any sentence takes back what another one says ("That is wrong.")."""
    return bool(_RETRACTION.search(text) or _DISOWNED.search(text))
