"""Filler: sentences without digits, and facts set among them at shares of their number."""

import random
from collections.abc import Sequence
from typing import NamedTuple

_WHO = (
    "The gardener", "A courier", "The archivist", "An old sailor", "The baker", "A night clerk",
    "The surveyor", "A printer", "The glazier", "A ferryman", "The librarian", "A mason",
)  # fmt: skip
_DID = (
    "counted", "carried", "painted", "repaired", "described", "folded", "measured", "sorted",
    "cleaned", "borrowed", "wrapped", "polished",
)  # fmt: skip
_WHAT = (
    "the wooden crates", "a set of maps", "the long ladder", "some copper pipes", "the blue curtains",
    "a stack of letters", "the garden chairs", "two oil lamps", "the cracked tiles", "a heavy rope",
    "the tall shelves", "a box of candles",
)  # fmt: skip
_WHEN = (
    "before the rain came", "in the early morning", "while the market was open", "after the bells rang",
    "on a quiet evening", "as the snow melted", "during the harvest", "when the ferry was late",
)  # fmt: skip


class Fact(NamedTuple):
    """``at`` is the share of the filler that stands before ``sentence``, in [0, 1]."""

    at: float
    sentence: str


def woven(facts: Sequence[Fact], sentences: int, rng: random.Random) -> str:
    """``sentences`` of filler with the facts among them; facts of one place keep their order. Equal
    generators with more sentences begin with the same ones."""
    filler = [_sentence(rng) for _ in range(sentences)]
    parts: list[str] = []
    done = 0
    for fact in sorted(facts, key=lambda fact: fact.at):
        upto = round(fact.at * sentences)
        parts += [*filler[done:upto], fact.sentence]
        done = upto
    return " ".join([*parts, *filler[done:]])


def _sentence(rng: random.Random) -> str:
    return f"{rng.choice(_WHO)} {rng.choice(_DID)} {rng.choice(_WHAT)} {rng.choice(_WHEN)}."
