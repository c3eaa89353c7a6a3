"""What is hidden in a long text and asked for, after RULER (arXiv 2404.06654): one fact, one among
similar ones, a chain of facts, a variable that is handed on, a sum over several.

Each maker draws its facts for a ``depth`` in [0, 1] and returns them with the question and the one
right number. No other fact of the text leads to that number.
"""

import random
from collections.abc import Callable, Mapping
from typing import NamedTuple

from domain.long_context.filler import Fact

_THINGS = ("vault", "locker", "safe", "archive", "cabinet", "workshop", "cellar", "tower")
_PLACES = ("Ashford", "Millbrook", "Lindau", "Corvara", "Eastvale", "Norrby", "Marwick", "Dunholm")
_NAMES = ("Marta", "Oskar", "Irene", "Tomas", "Selma", "Viktor", "Paula", "Henrik")
_INNS = ("Golden Crane", "Old Bridge", "White Stag", "Quiet Mill", "Red Anchor", "Three Pines", "Blue Door",
         "Long Table")  # fmt: skip
_LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"
_SIMILAR = 7  # facts that look like the one asked for
_CHAINS = 3  # beside the chain that is asked for
_HANDED_ON = 3  # assignments after the first
_SUMMANDS = 4
_WINDOW = 0.15  # how far from the depth a summand may stand


class Question(NamedTuple):
    """``answer`` is the number that ``text`` asks for."""

    facts: tuple[Fact, ...]
    text: str
    answer: int


class Task(NamedTuple):
    """``depth`` says in words what stands at the depth of a cell."""

    title: str
    depth: str
    make: Callable[[random.Random, float], Question]


def _retrieval(rng: random.Random, depth: float) -> Question:
    return _codes(rng, depth, similar=0)


def _among_similar(rng: random.Random, depth: float) -> Question:
    return _codes(rng, depth, similar=_SIMILAR)


def _codes(rng: random.Random, depth: float, *, similar: int) -> Question:
    pairs = rng.sample([(place, thing) for place in _PLACES for thing in _THINGS], similar + 1)
    codes = rng.sample(range(100, 1000), similar + 1)
    facts = [
        Fact(rng.random(), f"The code of the {place} {thing} is {code}.")
        for (place, thing), code in zip(pairs, codes, strict=True)
    ]
    facts[0] = facts[0]._replace(at=depth)
    place, thing = pairs[0]
    question = f"What is the code of the {place} {thing}? Answer with the number only."
    return Question(tuple(facts), question, codes[0])


def _multi_hop(rng: random.Random, depth: float) -> Question:
    """Owner, inn and bill: three facts, of which the last stands at the depth and the others anywhere."""
    count = _CHAINS + 1
    places, names, inns = (rng.sample(words, count) for words in (_PLACES, _NAMES, _INNS))
    bills = rng.sample(range(100, 1000), count)
    thing = rng.choice(_THINGS)
    facts = []
    for number, (place, name, inn, bill) in enumerate(zip(places, names, inns, bills, strict=True)):
        facts += [
            Fact(rng.random(), f"The {place} {thing} was left to {name}."),
            Fact(rng.random(), f"{name} stays at the {inn}."),
            Fact(depth if number == 0 else rng.random(), f"The bill of the {inn} is {bill}."),
        ]
    question = (
        f"Somebody was left the {places[0]} {thing} and stays at an inn. What is the bill of that inn? "
        "Answer with the number only."
    )
    return Question(tuple(facts), question, bills[0])


def _variables(rng: random.Random, depth: float) -> Question:
    """A value is set at the depth and handed on further down; other chains run beside it."""
    count = _CHAINS + 1
    names = iter(rng.sample([a + b for a in _LETTERS for b in _LETTERS], count * (_HANDED_ON + 1)))
    values = rng.sample(range(100, 1000), count)
    facts, asked = [], ""
    for number, value in enumerate(values):
        first = depth if number == 0 else rng.random()
        places = [first, *sorted(rng.uniform(first, 1.0) for _ in range(_HANDED_ON))]
        chain = [next(names) for _ in places]
        facts.append(Fact(places[0], f"Variable {chain[0]} is set to {value}."))
        facts += [
            Fact(at, f"Variable {name} takes the value of variable {source}.")
            for at, name, source in zip(places[1:], chain[1:], chain, strict=False)
        ]
        asked = asked or chain[-1]
    question = f"What is the value of variable {asked}? Answer with the number only."
    return Question(tuple(facts), question, values[0])


def _aggregation(rng: random.Random, depth: float) -> Question:
    """Deliveries to one place, all near the depth, among as many to others; asked is their sum."""
    places = rng.sample(_PLACES, 4)
    low, high = max(0.0, depth - _WINDOW), min(1.0, depth + _WINDOW)
    amounts = [rng.randint(11, 99) for _ in range(_SUMMANDS)]
    facts = [Fact(rng.uniform(low, high), _delivery(amount, places[0])) for amount in amounts]
    facts += [
        Fact(rng.random(), _delivery(rng.randint(11, 99), rng.choice(places[1:]))) for _ in range(_SUMMANDS)
    ]
    question = f"How many sacks of grain were brought to {places[0]} in all? Answer with the number only."
    return Question(tuple(facts), question, sum(amounts))


def _delivery(amount: int, place: str) -> str:
    return f"A cart brought {amount} sacks of grain to {place}."


TASKS: Mapping[str, Task] = {
    "retrieval": Task("One fact", "the fact", _retrieval),
    "similar": Task("One fact among similar ones", "the fact asked for", _among_similar),
    "multi_hop": Task("Chain of three facts", "the last fact of the chain", _multi_hop),
    "variables": Task("Variable handed on", "the assignment of the value", _variables),
    "aggregation": Task("Sum of four facts", "the middle of the facts", _aggregation),
}
