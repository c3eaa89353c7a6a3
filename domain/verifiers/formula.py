"""Formulas over named values: ``total_assets == liabilities + equity``.

A language of its own with its own parser, computed in decimal arithmetic; Python never evaluates a
formula. Known are numbers, names with dots, ``+ - * /``, parentheses, one comparison
(``== != <= >= < >``, ``=`` is ``==``) and the functions ``sum min max count mean abs``. A name may
stand for a list (``lines.amount``: the amount of every line); lists go into functions only.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, DecimalException, localcontext
from typing import Any, NamedTuple

from domain.verifiers.numbers import close, parse_number

Value = Decimal | list[Decimal]
Values = Callable[[str], Value]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+(?:\.[0-9]+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)"
    r"|(?P<sign>==|!=|<=|>=|[-+*/()<>=]))"
)
_COMPARISONS = frozenset({"==", "!=", "<=", ">=", "<", ">"})
_FUNCTIONS = frozenset({"sum", "min", "max", "count", "mean", "abs"})
_MAX_LENGTH = 500
_MAX_DEPTH = 40
_DIGITS = 60


class FormulaError(ValueError):
    """The text is no formula. The message is for users."""


class Undefined(ValueError):
    """The formula has no value here: a value is missing, or a division by zero. For users."""


@dataclass(frozen=True)
class Term:
    """``operator`` is "number", "name", "negate", a function's name, or a sign between two terms."""

    operator: str
    parts: tuple["Term", ...] = ()
    name: str = ""
    number: Decimal = Decimal(0)


class Sides(NamedTuple):
    """Both sides of a relation, computed."""

    left: Decimal
    right: Decimal


@dataclass(frozen=True)
class Formula:
    """``comparison`` is empty for a formula that gives a number rather than yes or no."""

    text: str
    left: Term
    comparison: str = ""
    right: Term | None = None

    @property
    def names(self) -> frozenset[str]:
        """Every name that the formula asks for."""
        return _names(self.left) | (_names(self.right) if self.right else frozenset())

    def value(self, values: Values) -> Decimal:
        """The number of a formula without a comparison. Raises ``Undefined``."""
        if self.comparison:
            raise Undefined("A relation is true or false, it has no value.")
        return _computed(self.left, values)

    def sides(self, values: Values) -> Sides:
        """Both sides of a relation. Raises ``Undefined``."""
        if self.right is None:
            raise Undefined("A formula without a comparison has one side only.")
        return Sides(_computed(self.left, values), _computed(self.right, values))

    def holds(self, values: Values, *, tolerance: float = 0.0, relative: float = 0.0) -> bool:
        """Whether the relation is true. Equal is within max(tolerance, relative · |right side|);
        ``<=`` and ``>=`` allow as much, ``<`` and ``>`` nothing. Raises ``Undefined``."""
        left, right = self.sides(values)
        near = close(left, right, tolerance, relative)
        return {
            "==": near, "!=": not near, "<": left < right, ">": left > right,
            "<=": left <= right or near, ">=": left >= right or near,
        }[self.comparison]  # fmt: skip


def parse_formula(text: str) -> Formula:
    """Raises ``FormulaError`` for whatever is no formula."""
    if len(text) > _MAX_LENGTH:
        raise FormulaError(f"A formula has at most {_MAX_LENGTH} characters.")
    reader = _Reader(_tokens(text))
    left = reader.sum()
    if not reader.peek():
        return Formula(text, left)
    sign = "==" if reader.peek() == "=" else reader.peek()
    if sign not in _COMPARISONS:
        raise FormulaError(f"The formula cannot be read from {reader.peek()!r} on.")
    reader.next()
    right = reader.sum()
    if reader.peek():
        raise FormulaError(f"The formula goes on after its second side: {reader.peek()!r}.")
    return Formula(text, left, sign, right)


def values_in(found: Any, decimal: Any = "auto") -> Values:
    """Values by name from an object as JSON gives it: a dotted path of keys, where a list on the way
    gives one value an entry. What is no number raises ``Undefined`` when it is asked for."""

    def value(name: str) -> Value:
        place = [found]
        many = False
        for key in name.split("."):
            step: list[Any] = []
            for item in place:
                inner = item.get(key) if isinstance(item, Mapping) else None
                many = many or isinstance(inner, list)
                step += inner if isinstance(inner, list) else [inner]
            place = step
        numbers = [parse_number(item, decimal) for item in place]
        if any(number is None for number in numbers):
            raise Undefined(f"{name} is missing or no number.")
        read = [number for number in numbers if number is not None]
        return read if many else read[0]

    return value


class _Reader:
    """Recursive descent over the tokens; every level of nesting is counted."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._place = 0
        self._depth = 0

    def peek(self) -> str:
        return self._tokens[self._place][1] if self._place < len(self._tokens) else ""

    def next(self) -> tuple[str, str]:
        if self._place >= len(self._tokens):
            raise FormulaError("The formula ends too early.")
        self._place += 1
        return self._tokens[self._place - 1]

    def sum(self) -> Term:
        return self._chain(self.product, ("+", "-"))

    def product(self) -> Term:
        return self._chain(self.unary, ("*", "/"))

    def _chain(self, part: Callable[[], Term], signs: tuple[str, str]) -> Term:
        term = part()
        while self.peek() in signs:
            sign = self.next()[1]
            term = Term(sign, (term, part()))
        return term

    def unary(self) -> Term:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise FormulaError("The formula is nested too deeply.")
        term = Term("negate", (self.unary(),)) if self._took("-") else self._atom()
        self._depth -= 1
        return term

    def _atom(self) -> Term:
        kind, text = self.next()
        if kind == "number":
            return Term("number", number=Decimal(text))
        if kind == "name" and self.peek() != "(":
            return Term("name", name=text)
        if kind == "name" and text not in _FUNCTIONS:
            raise FormulaError(f"There is no function {text!r}; known: {', '.join(sorted(_FUNCTIONS))}.")
        if kind == "name":
            self.next()
        elif text != "(":
            raise FormulaError(f"A value is expected, not {text!r}.")
        inner = self.sum()
        if not self._took(")"):
            raise FormulaError("A parenthesis is not closed.")
        return Term(text, (inner,)) if kind == "name" else inner

    def _took(self, sign: str) -> bool:
        if self.peek() != sign:
            return False
        self._place += 1
        return True


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    place = 0
    text = text.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise FormulaError(f"The formula cannot be read from {text[place:][:20]!r} on.")
        tokens.append((str(match.lastgroup), match.group().strip()))
        place = match.end()
    if not tokens:
        raise FormulaError("The formula is empty.")
    return tokens


def _names(term: Term) -> frozenset[str]:
    own = frozenset({term.name}) if term.operator == "name" else frozenset()
    return own.union(*(_names(part) for part in term.parts))


def _computed(term: Term, values: Values) -> Decimal:
    with localcontext(Context(prec=_DIGITS)):
        try:
            value = _value(term, values)
        except DecimalException as error:
            raise Undefined("The formula divides by zero or leaves the range of numbers.") from error
    if isinstance(value, list):
        raise Undefined("A list has no single value; use sum, min, max, count or mean.")
    return value


def _value(term: Term, values: Values) -> Value:
    if term.operator == "number":
        return term.number
    if term.operator == "name":
        return values(term.name)
    parts = [_value(part, values) for part in term.parts]
    if term.operator in _FUNCTIONS:
        return _function(term.operator, parts[0])
    left, right = parts[0], parts[-1]
    if isinstance(left, list) or isinstance(right, list):
        raise Undefined("A list cannot be added or multiplied; use sum, min, max, count or mean.")
    if term.operator == "negate":
        return -left
    if term.operator == "+":
        return left + right
    if term.operator == "-":
        return left - right
    return left * right if term.operator == "*" else left / right


def _function(name: str, value: Value) -> Decimal:
    listed = value if isinstance(value, list) else [value]
    if name == "abs":
        if isinstance(value, list):
            raise Undefined("abs takes one value.")
        return abs(value)
    if name == "count":
        return Decimal(len(listed))
    if name == "sum":
        return sum(listed, Decimal(0))
    if not listed:
        raise Undefined(f"{name} of an empty list.")
    if name == "mean":
        return sum(listed, Decimal(0)) / len(listed)
    return min(listed) if name == "min" else max(listed)
