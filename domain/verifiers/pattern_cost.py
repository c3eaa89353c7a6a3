"""How fast the time of a regular expression may grow with the text: the exponent of the length.

Repeats that can eat the same characters, with nothing in between that keeps them apart, try every way to
share a text among them: ``a*a*b`` takes n² steps from each start. The estimate walks the parsed pattern
with the characters that each repeat can match, on an alphabet of samples; it errs on the high side.

Short repeats and choices multiply too: ``a?`` thirty times can share a text in a billion ways. ``choices``
counts how often the next character leaves open which way to go.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from re import _compiler as compiler  # type: ignore[attr-defined]
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

Signs = frozenset[str]
Chains = dict[Signs, int]  # characters that a chain of repeats can share -> how many repeats
_ALPHABET = tuple(chr(number) for number in range(128)) + tuple("\u00a0éßжあ中٣\u2028😀")
_REPEATS = (code.MAX_REPEAT, code.MIN_REPEAT)
_MANY = 8  # so often repeated counts as without end
_MOST_LOOKS = (
    20_000  # at parts of a pattern: short repeats of short repeats are looked at as often as they run
)
_ANY: Signs = frozenset(_ALPHABET)


class TooManyWays(ValueError):
    """The pattern is too complex for an estimate, and so for a text."""


@dataclass
class Choices:
    """``open`` repeats without end whose end the next character does not tell, whether others run on
    behind one (``tail``), and in how many ``ways`` short repeats and alternatives go through one text."""

    open: int = 0
    ways: int = 1
    tail: bool = False
    _settled: bool = field(default=False, repr=False)  # a repeat whose end is told stands further on
    _looks: int = field(default=0, repr=False)

    def look(self) -> None:
        self._looks += 1
        if self._looks > _MOST_LOOKS or self.ways > 10**9:
            raise TooManyWays


def exponent(tree: Any, *, search: bool) -> int:
    """At least 1; ``search`` begins anew at every place of the text."""
    chains, longest = _walk(tree, {}, tree.state.flags)
    longest = max(longest, *chains.values(), 0)
    chosen = choices(tree)
    return max(longest, chosen.open + chosen.tail, 1) + (1 if search and longest else 0)


def choices(tree: Any) -> Choices:
    """Raises ``TooManyWays``."""
    found = Choices()
    _chosen(tree, frozenset(), tree.state.flags, found)
    return found


def _chosen(items: Any, behind: Signs, flags: int, found: Choices) -> Signs:
    """The characters that ``items`` can begin with, those of ``behind`` included where they can be empty;
    counts on the way what can go on in more than one way."""
    for item in reversed(list(items)):
        found.look()
        operator, argument = item
        if operator in _REPEATS:
            low, high, inner = argument
            first = _alone(inner, flags, found)
            if low != high and first & behind:
                if high > _MANY:
                    found.open, found.tail = found.open + 1, found.tail or found._settled
                else:
                    found.ways *= high - low + 1
            elif high > _MANY and low != high:
                found._settled = True
            for _ in range(high if high <= _MANY else 1):  # what is in it is met as often as it is repeated
                within = _chosen(inner, behind | first, flags, found)
            behind = first | behind if low == 0 else within
        elif operator is code.SUBPATTERN:
            behind = _chosen(argument[3], behind, _within(argument, flags), found)
        elif operator is code.BRANCH:
            firsts = [_chosen(way, behind, flags, found) for way in argument[1]]
            found.ways *= _together(argument[1], firsts)
            behind = frozenset().union(*firsts)
        elif operator in (code.ASSERT, code.ASSERT_NOT):
            _chosen(argument[1], frozenset(), flags, found)
        elif operator is code.POSSESSIVE_REPEAT or operator is code.ATOMIC_GROUP:
            inner = argument[2] if operator is code.POSSESSIVE_REPEAT else argument
            behind = behind | _chosen(inner, behind, flags, found)
        elif operator in (code.LITERAL, code.NOT_LITERAL, code.IN, code.ANY):
            behind = _signs([item], flags)
        elif operator in (code.GROUPREF, code.GROUPREF_EXISTS):
            behind, found._settled = _ANY, True  # as long as what it refers to
    return behind


def _together(ways: Any, firsts: list[Signs]) -> int:
    """How many alternatives one text can take at most: those that begin alike, of plain words those of
    which one begins another."""
    words = [_word(way) for way in ways]
    if None not in words:
        return max(sum(word.startswith(other) for other in words) for word in words)  # type: ignore[union-attr, arg-type]
    counts = Counter(sign for first in firsts for sign in first)
    return max(counts.values(), default=1)


def _word(items: Any) -> str | None:
    """The word that ``items`` spell, None where they are more than that."""
    if all(operator is code.LITERAL for operator, _ in items):
        return "".join(chr(argument) for _, argument in items).lower()
    return None


def _alone(inner: Any, flags: int, found: Choices) -> Signs:
    """What a repeated part itself begins with; nothing is counted but the looking."""
    kept = found.open, found.ways, found.tail, found._settled
    first = _chosen(inner, frozenset(), flags, found)
    found.open, found.ways, found.tail, found._settled = kept
    return first


def _walk(items: Any, chains: Chains, flags: int) -> tuple[Chains, int]:
    """The chains that are open behind ``items``, and the longest that there was."""
    longest = max(chains.values(), default=0)
    for item in items:
        operator, argument = item
        if operator in _REPEATS:
            low, high, inner = argument
            if high > _MANY and low != high:
                signs = _signs(inner, flags)
                grown = {signs: 1}
                for shared, count in chains.items():
                    if both := shared & signs:
                        grown[both] = max(grown.get(both, 0), count + 1)
                kept = chains if low == 0 else _passing(chains, signs)
                chains = _joined(kept, grown)
            else:
                behind, most = _walk(inner, chains, flags)
                longest = max(longest, most)
                chains = behind if low else _joined(chains, behind)
        elif operator is code.SUBPATTERN:
            chains, most = _walk(argument[3], chains, _within(argument, flags))
            longest = max(longest, most)
        elif operator is code.BRANCH:
            ways = [_walk(way, chains, flags) for way in argument[1]]
            longest = max(longest, *(most for _, most in ways))
            chains = _joined(*(behind for behind, _ in ways))
        elif operator in (code.ASSERT, code.ASSERT_NOT):
            longest = max(longest, _walk(argument[1], {}, flags)[1])
        elif operator is code.POSSESSIVE_REPEAT or operator is code.ATOMIC_GROUP:
            inner = argument[2] if operator is code.POSSESSIVE_REPEAT else argument
            longest = max(longest, _walk(inner, {}, flags)[1], 1)
            chains = {}  # it gives nothing back
        elif operator in (code.LITERAL, code.NOT_LITERAL, code.IN, code.ANY):
            chains = _passing(chains, _signs([item], flags))
        longest = max(longest, *chains.values(), 0)
    return chains, longest


def _passing(chains: Chains, signs: Signs) -> Chains:
    """Chains that a character that must be there does not cut: it is one that they can eat."""
    return {shared: count for shared, count in chains.items() if shared & signs}


def _joined(*all_chains: Chains) -> Chains:
    found: Chains = {}
    for chains in all_chains:
        for shared, count in chains.items():
            found[shared] = max(found.get(shared, 0), count)
    return found


def _signs(items: Iterable[Any], flags: int) -> Signs:
    """Every character that stands in ``items`` somewhere."""
    found: set[str] = set()
    for item in items:
        operator, argument = item
        if operator in (*_REPEATS, code.POSSESSIVE_REPEAT):
            found |= _signs(argument[2], flags)
        elif operator is code.SUBPATTERN:
            found |= _signs(argument[3], _within(argument, flags))
        elif operator is code.ATOMIC_GROUP:
            found |= _signs(argument, flags)
        elif operator is code.BRANCH:
            found |= {sign for way in argument[1] for sign in _signs(way, flags)}
        elif operator in (code.LITERAL, code.NOT_LITERAL, code.IN, code.ANY):
            found |= _matched(_key(item), flags)
        elif operator in (code.GROUPREF, code.GROUPREF_EXISTS):
            found |= set(_ALPHABET)
    return frozenset(found)


def _within(subpattern: Any, flags: int) -> int:
    """Flags inside a group that sets its own, as in ``(?i:…)``."""
    _, added, taken, _ = subpattern
    return (flags | int(added)) & ~int(taken)


def _key(item: Any) -> tuple[Any, ...]:
    operator, argument = item
    return (operator, tuple(argument) if isinstance(argument, list) else argument)


@lru_cache(maxsize=2000)
def _matched(item: tuple[Any, ...], flags: int) -> Signs:
    """Samples that one item of a parsed pattern matches."""
    operator, argument = item
    state = parser.State()
    state.flags = flags
    one = parser.SubPattern(state, [(operator, list(argument) if isinstance(argument, tuple) else argument)])
    compiled = compiler.compile(one)
    literal = {chr(argument)} if operator is code.LITERAL else set()
    return frozenset(sign for sign in {*_ALPHABET, *literal} if compiled.fullmatch(sign))
