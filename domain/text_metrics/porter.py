"""Stems of English words by Porter's algorithm, in its published form.

Source: M. F. Porter, "An algorithm for suffix stripping", Program 14 (1980).
"""

from collections.abc import Callable, Iterable
from functools import lru_cache

_STEP2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"),
    ("abli", "able"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"),
    ("ization", "ize"), ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive"),
    ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"),
)  # fmt: skip
_STEP3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""),
    ("ness", ""),
)  # fmt: skip
_STEP4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism",
    "ate", "iti", "ous", "ive", "ize",
)  # fmt: skip
_LONGEST = 60  # what is longer is no word


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """``word`` is in lower case; what is no plain word of a to z comes back as it is."""
    if len(word) > _LONGEST or not (word.isascii() and word.isalpha()):
        return word
    for step in (_plural, _past, _y, _step2, _step3, _step4, _final_e, _final_l):
        word = step(word)
    return word


def _plural(word: str) -> str:
    return _first(word, (("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")), lambda part: True)


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        part = word.removesuffix(suffix)
        if part != word and _vowel_in(part):
            return _mended(part)
    return word


def _mended(part: str) -> str:
    """What is left of "hopping" or "rated" as the word it comes from."""
    if part.endswith(("at", "bl", "iz")):
        return part + "e"
    if _double(part) and part[-1] not in "lsz":
        return part[:-1]
    return part + "e" if _measure(part) == 1 and _cvc(part) else part


def _y(word: str) -> str:
    return f"{word[:-1]}i" if word.endswith("y") and _vowel_in(word[:-1]) else word


def _step2(word: str) -> str:
    return _first(word, _STEP2, lambda part: _measure(part) > 0)


def _step3(word: str) -> str:
    return _first(word, _STEP3, lambda part: _measure(part) > 0)


def _step4(word: str) -> str:
    for suffix in _STEP4:
        if word.endswith(suffix):
            part = word[: -len(suffix)]
            fits = _measure(part) > 1 and (suffix != "ion" or part.endswith(("s", "t")))
            return part if fits else word
    return word


def _final_e(word: str) -> str:
    if not word.endswith("e"):
        return word
    part, measure = word[:-1], _measure(word[:-1])
    return part if measure > 1 or (measure == 1 and not _cvc(part)) else word


def _final_l(word: str) -> str:
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _first(word: str, rules: Iterable[tuple[str, str]], fits: Callable[[str], bool]) -> str:
    """The first rule whose suffix the word has decides, whether or not its condition holds."""
    for suffix, other in rules:
        if word.endswith(suffix):
            part = word[: -len(suffix)]
            return part + other if fits(part) else word
    return word


def _shape(word: str) -> str:
    """c or v for each letter; y is a vowel behind a consonant."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    """How often a consonant follows a vowel: Porter's m."""
    return _shape(word).count("vc")


def _vowel_in(word: str) -> bool:
    return "v" in _shape(word)


def _double(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _shape(word).endswith("c")


def _cvc(word: str) -> bool:
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"
