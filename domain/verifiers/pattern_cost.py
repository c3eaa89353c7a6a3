"""How fast the time of a regular expression may grow with the text: the exponent of the length.

Repeats that can eat the same characters, with nothing in between that keeps them apart, try every way to
share a text among them: ``a*a*b`` takes n² steps from each start. The estimate walks the parsed pattern
with the characters that each repeat can match, on an alphabet of samples; it errs on the high side.
"""

from collections.abc import Iterable
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


def exponent(tree: Any, *, search: bool) -> int:
    """At least 1; ``search`` begins anew at every place of the text."""
    chains, longest = _walk(tree, {}, tree.state.flags)
    return max(longest, *chains.values(), 1) + (1 if search and longest else 0)


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
