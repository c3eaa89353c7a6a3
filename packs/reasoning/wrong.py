"""Answers that must fail: mistakes of models, and attempts to fool or to run code in a scorer."""

import json
import re
from decimal import Decimal

_OPPOSITES = {"true": "False", "false": "True", "yes": "No", "no": "Yes"}
_ATTACK = "__import__('sys').modules['__main__'].__dict__.update(score=1.0)"


def wrong_answers(question: str, known: str) -> dict[str, str]:
    """Wrong by construction, by the name of the mistake."""
    return {
        "refusal": "I cannot solve this.",
        "echo": question,
        "near": near_miss(known),
        "denied": f"It is certainly not {known}",
        "among_others": f"0, 1, 2, {known}",
        "twice": f"<answer>{known}</answer> or <answer>{near_miss(known)}</answer>",
        "not_a_number": "[" + ", ".join(["NaN"] * max(1, known.count(",") + 1)) + "]",
        "code": _ATTACK,
    }


def near_miss(known: str) -> str:
    """The known answer with one thing wrong: another number, the other truth value, the end missing."""
    text = known.strip()
    if text.lower() in _OPPOSITES:
        return _OPPOSITES[text.lower()]
    if re.fullmatch(r"[-+]?[\d,]*\.?\d+(?:[eE][-+]?\d+)?", text):
        # Scorers read numbers to about three figures: far enough off for all of them.
        number = Decimal(text.replace(",", ""))
        return str(number + abs(number) + 1 if abs(number) < 10**15 else number / 2)
    if re.fullmatch(r"\d+ days?.*|\d+(?::[\d.]+)+", text):  # 46 days; 17:30:00
        return re.sub(r"^\d+", lambda first: str(int(first.group()) + 1), text)
    if text[0] in "[{":
        return _other_json(text)
    if re.fullmatch(r"[$\\{}/.°\d]*(?:d?frac)?[$\\{}/.°\d]*\d[$\\{}/.°]*", text):  # 50.25°, $\frac{2}{3}$
        return re.sub(r"\d+(?=\D*$)", lambda last: str(int(last.group()) + 1), text)
    words = text.rsplit(None, 1)
    if len(words) == 2:
        return words[0]
    return text[:-1] if len(text) > 1 else chr(ord(text) + 1)


def _other_json(text: str) -> str:
    try:
        value = json.loads(text.replace("'", '"'))
    except ValueError:
        return text[:-1]
    if isinstance(value, list):
        return json.dumps(value[:-1])
    return json.dumps(dict(list(value.items())[:-1]))
