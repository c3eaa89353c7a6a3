"""What an answer must look like before a data set's own scorer may see it.

Many scorers of reasoning-gym evaluate the answer (``eval``, sympy's parser), which would let an answer
run code beside the scorer; others give full marks to what is plainly wrong (NaN in a list of numbers,
the first number of many, any text for "False"). Each entry here closes such a door: a whitelist of
characters or words, or a comparison of our own where the known answer is the only one.
"""

import json
import re
from collections.abc import Callable, Collection
from fractions import Fraction

from domain.verifiers.base import shown

# The answer and the known answer -> what is wrong, or "".
Guard = Callable[[str, str], str]

_TAGS = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_NUMBER = re.compile(r"[-+]?\$?\d[\d,]*(?:\.\d+)?\$?")


def marked(answer: str) -> str:
    """What stands between the one pair of ``<answer>`` tags; the whole text where there is none, and
    nothing where there are several: an answer is one answer."""
    found: list[str] = _TAGS.findall(answer)
    if len(found) > 1:
        return ""
    return (found[0] if found else answer).strip()


def guard(dataset: str, answer: str, known: str) -> str:
    """Why the marked ``answer`` must not be scored, or "" when it may be."""
    if not answer:
        return "The answer is empty, or there are several."
    if len(answer) > 6 * len(known) + 400:
        return "The answer is far longer than any right one."
    return GUARDS[dataset](answer, known) if dataset in GUARDS else ""


def only(pattern: str, what: str) -> Guard:
    """The whole answer matches ``pattern``."""
    whole = re.compile(pattern)

    def check(answer: str, known: str) -> str:
        return "" if whole.fullmatch(answer) else f"The answer is not {what}."

    return check


def same(*, fold: bool = False, squeeze: bool = False) -> Guard:
    """The answer is the known one; with ``fold`` in any case, with ``squeeze`` with any spacing."""

    def plain(text: str) -> str:
        text = "".join(text.split()) if squeeze else text.strip()
        return text.casefold() if fold else text

    def check(answer: str, known: str) -> str:
        return "" if plain(answer) == plain(known) else f"The answer is not right: {shown(answer, 60)}."

    return check


def expression(names: Collection[str] = (), *, powers: bool) -> Guard:
    """Arithmetic over numbers and ``names``; one-letter names are always allowed where any are.

    Nothing else gets through: no attribute, no text, no call of anything but the functions named.
    """
    token = re.compile(r"\s+|\d+(?:\.\d+)?|[A-Za-z]+|\*\*|[-+*/()^]")

    def check(answer: str, known: str) -> str:
        place = 0
        while place < len(answer):
            match = token.match(answer, place)
            if match is None:
                return f"The answer holds {shown(answer[place], 10)}, which no expression needs."
            word = match.group()
            if word.isalpha() and not (names and (len(word) == 1 or word in names)):
                return f"The answer holds {shown(word, 40)}, which is not allowed here."
            if word in ("**", "^") and not powers:
                return "Powers are not allowed here."
            if word == "/" and answer[match.end() : match.end() + 1] == "/":
                return "Whole-number division is not allowed here."
            place = match.end()
        return ""

    return check


def _no_more_parts(answer: str, known: str) -> str:
    """Some scorers read the first parts and pass over the rest: no right answer has more."""
    return "The answer goes on after its end." if answer.count(",") > known.count(",") else ""


def _one_number(answer: str, known: str) -> str:
    return "" if _NUMBER.fullmatch(answer) else "The answer is not one number."


def _number_list(answer: str, known: str) -> str:
    """As numbers the same list as the known one; JSON's NaN and words are no numbers."""
    try:
        got, wanted = (
            [_exact(str(item)) for item in json.loads(text.replace("'", '"'))] for text in (answer, known)
        )
    except (ValueError, TypeError, ZeroDivisionError, RecursionError):
        return "The answer is not a list of numbers."
    return "" if got == wanted else "The numbers are not the right ones in the right order."


def _probability(answer: str, known: str) -> str:
    try:
        off = abs(_exact(answer.replace(",", "")) - _exact(known.replace(",", "")))
    except (ValueError, ZeroDivisionError):
        return "The answer is not one number or fraction."
    return "" if off <= Fraction(1, 10_000) else f"The probability is not {shown(answer, 40)}."


def _exact(text: str) -> Fraction:
    """Raises ``ValueError``, also for a power of ten whose digits alone would take for ever."""
    if re.search(r"[eE][-+]?[0-9_]{4,}", text):
        raise ValueError("the number is out of range")
    return Fraction(text)


def _json_same(answer: str, known: str) -> str:
    if answer == known.strip():
        return ""
    try:
        same_value = json.dumps(json.loads(answer), sort_keys=True) == json.dumps(
            json.loads(known), sort_keys=True
        )
    except (ValueError, RecursionError):
        same_value = False
    return "" if same_value else "The output is not the right one."


_FUNCTIONS = frozenset(
    (
        "sin", "cos", "tan", "sec", "csc", "cot", "asin", "acos", "atan", "sinh", "cosh", "tanh",
        "asinh", "acosh", "atanh", "exp", "log", "ln", "sqrt", "pi", "Abs",
    )
)  # fmt: skip

_PERSON = r"[A-Z][a-z]+ is an? [a-z]+"

GUARDS: dict[str, Guard] = {
    "binary_matrix": same(),
    "spiral_matrix": same(),
    "string_insertion": same(),
    "emoji_mystery": same(),
    "spell_backward": same(fold=True),
    "figlet_font": same(fold=True, squeeze=True),
    "game_of_life_halting": same(),
    "codeio": _json_same,
    "coin_flip": _probability,
    "number_sorting": _number_list,
    "word_sorting": _no_more_parts,
    "time_intervals": _no_more_parts,
    "advanced_geometry": _no_more_parts,
    "gsm_symbolic": _one_number,
    "complex_arithmetic": only(r"[-+0-9.ij* ()]+", "one complex number"),
    "calendar_arithmetic": only(r"[A-Za-z]+|-?\d+", "one word or whole number"),
    "pool_matrix": only(r"[-+0-9.eE\s]+", "a matrix of numbers"),
    "polynomial_equations": only(r"[-+0-9.eE,\s]*\d[-+0-9.eE,\s]*", "a list of numbers"),
    "power_function": only(r"[-+]?[0-9.]+(?:[eE][-+]?\d+)?", "one number"),
    "decimal_arithmetic": only(r"[-+]?[0-9.]+(?:[eE][-+]?\d+)?", "one number"),
    "prime_factorization": only(r"[0-9×x*,\s]+", "a product of primes"),
    "fraction_simplification": only(r"[0-9/\\{}$a-z\s]+", "one fraction"),
    "n_queens": only(r"[Q_\s]+", "a board"),
    "kakurasu": only(r"[01\s]+", "a grid of 0 and 1"),
    "survo": only(r"[0-9\s]+", "a grid of numbers"),
    "knights_knaves": only(rf"{_PERSON}(?:(?:, and|,| and) {_PERSON})*\.?", "a role for each person"),
    "quantum_lock": only(r"[ABCabc](?:\s*(?:→|->|,|\s)\s*[ABCabc])*", "a sequence of buttons"),
    "rubiks_cube": only(r"[A-Za-z'0-9 \n]+", "a list of moves"),
    "rush_hour": only(r"[A-Z][+-]\d(?:[ ,\n]+[A-Z][+-]\d)*", "a list of moves"),
    "sokoban": only(r"[UDLR]+", "a list of moves"),
    "countdown": expression(powers=False),
    "puzzle24": expression(powers=False),
    "polynomial_multiplication": expression(("x",), powers=True),
    "simple_integration": expression(_FUNCTIONS, powers=True),
    "intermediate_integration": expression(_FUNCTIONS, powers=True),
}
