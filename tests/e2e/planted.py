"""Made-up people, one for each way into an installation, and how what is known of them is looked for.

Nothing here is anyone's: numbers are drawn, card and account numbers get valid check digits.
"""

import json
import random
import string
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

_GIVEN = ("Margaret", "Robert", "Patricia", "Michael", "Jennifer", "Thomas", "Elizabeth", "Richard", "Susan")
_FAMILY = (
    "Thistlewood", "Ravenscroft", "Quillfeather", "Underbridge", "Wolverstone", "Applegarth", "Hazelmoor",
    "Fairweather", "Blackthorne", "Silverdale", "Copperfield", "Netherwood", "Oakenshaw", "Pemberwick",
    "Greystoke", "Lockridge", "Marchbanks", "Winterbourne", "Halloway", "Stonebridge", "Castlemaine",
    "Ferncliffe", "Goldsworthy", "Kingsnorth", "Larkhill", "Millbrooke",
)  # fmt: skip


@dataclass(frozen=True)
class Person:
    """Everything that must not be found again. ``way`` says how it came in."""

    way: str
    name: str
    mail: str
    phone: str
    card: str
    iban: str
    keys: tuple[str, ...]
    private_key: str

    def letter(self) -> str:
        """A message as a careless customer writes it."""
        return (
            f"Dear support,\nmy name is {self.name}, please write to {self.mail} or call {self.phone}.\n"
            f"I paid invoice INV-204 over 55.00 EUR with card {self.card}; refund to IBAN {self.iban}.\n"
            f"Our settings: api_key={self.keys[0]}, token: {self.keys[1]} and AWS {self.keys[2]}.\n"
            f"{self.private_key}\n"
            f"Kind regards,\n{self.name}"
        )

    def note(self) -> str:
        """A short one, that fits a small model's context."""
        return f"I am {self.name}, {self.mail}, my card is {self.card}. Which invoice is INV-204?"

    def record(self) -> dict[str, object]:
        """The same as a tool returns it: numbers as numbers, JSON in a string inside JSON."""
        inner = json.dumps({"name": self.name, "contact": {"email": self.mail, "phone": self.phone}})
        return {
            "customer": {"full_name": self.name, "email": self.mail, "card": int(self.card.replace(" ", ""))},
            "accounts": [{"iban": self.iban, "secret": self.keys[0]}],
            "raw": inner,
        }

    def secrets(self) -> Iterator[str]:
        """Each value in every form that it could be stored in."""
        digits = self.card.replace(" ", "")
        plain = [
            self.name, self.name.split()[1], self.mail, self.phone, self.phone.replace(" ", ""), self.card,
            digits, self.iban, self.iban.replace(" ", ""), *self.keys, *self.private_key.splitlines()[1:-1],
        ]  # fmt: skip
        for value in plain:
            yield value
            yield from {json.dumps(value)[1:-1], quote(value), value.replace(" ", "-")} - {value}


class Crowd:
    """Hands out a new person for each way; the same seed gives the same people."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._families = list(_FAMILY)
        self._random.shuffle(self._families)
        # Each number once: one that two people had would rightly stay where the one is known.
        self._phones = self._random.sample(range(100, 1000), len(self._families))
        self.people: list[Person] = []

    def person(self, way: str) -> Person:
        draw = self._random
        name = f"{draw.choice(_GIVEN)} {self._families.pop()}"
        first, last = name.lower().split()
        made = Person(
            way=way,
            name=name,
            mail=f"{first}.{last}@harbour-mail.com",
            phone=f"+44 20 7946 0{self._phones.pop()}",
            card=_card(draw),
            iban=_iban(draw),
            keys=(
                f"sk-{_word(draw, 40)}",
                f"ghp_{_word(draw, 36)}",
                f"AKIA{_word(draw, 16, string.ascii_uppercase)}",
            ),
            private_key=_private_key(draw),
        )
        self.people.append(made)
        return made

    def found_in(self, text: str) -> list[str]:
        """What of anyone stands in ``text``, as ``way: value``."""
        folded = text.casefold()
        return [
            f"{person.way}: {value}"
            for person in self.people
            for value in person.secrets()
            if value.casefold() in folded
        ]


def _word(draw: random.Random, length: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(draw.choice(letters) for _ in range(length))


def _card(draw: random.Random) -> str:
    """Sixteen digits with Luhn's check digit, in groups of four."""
    digits = [4, *(draw.randrange(10) for _ in range(14))]
    doubled = [
        digit if at % 2 else (2 * digit - 9 if digit > 4 else 2 * digit) for at, digit in enumerate(digits)
    ]
    text = "".join(map(str, [*digits, -sum(doubled) % 10]))
    return " ".join(text[at : at + 4] for at in range(0, 16, 4))


def _iban(draw: random.Random) -> str:
    """A German account number with the check digits of ISO 13616."""
    account = "".join(str(draw.randrange(10)) for _ in range(18))
    check = 98 - int(f"{account}131400") % 97
    text = f"DE{check:02d}{account}"
    return " ".join(text[at : at + 4] for at in range(0, len(text), 4))


def _private_key(draw: random.Random) -> str:
    body = "\n".join(_word(draw, 64, string.ascii_letters + string.digits + "+/") for _ in range(3))
    return f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"
