"""Invented values of the same type in place of placeholders, for tasks and training.

Without them a model would learn to say ``<PERSON_1>``. One map serves prompt, answer and
correction, so that what belonged together still does. Numbers, domains and networks come from
ranges that are reserved for examples.
"""

import hashlib
import random
import string
from collections.abc import Callable, Mapping
from typing import Any

from domain.spans import PLACEHOLDER

_FIRST = ("Mara", "Jonas", "Elif", "Tomas", "Priya", "Noah", "Ines", "Kofi", "Lena", "Yuki", "Omar", "Clara")
_LAST = (
    "Weber",
    "Okafor",
    "Silva",
    "Novak",
    "Tanaka",
    "Haddad",
    "Larsen",
    "Rossi",
    "Kaplan",
    "Moreau",
    "Keller",
)
_PLACES = (
    "Ashford",
    "Millbrook",
    "Westhaven",
    "Lindau",
    "Corvara",
    "Eastvale",
    "Norrby",
    "Marwick",
    "Dunholm",
)
_COMPANIES = ("Northwind", "Bluepeak", "Harrow", "Solace", "Meridian", "Copperline", "Tessel", "Larkfield")
_STREETS = ("Oak", "Mill", "Harbour", "Station", "Garden", "Church", "Bridge", "Meadow")


def surrogate(value: Any, mapping: Mapping[str, str], seed: int | str) -> Any:
    """``value`` (text, or messages and other JSON) with the placeholders in ``mapping`` (placeholder
    -> entity) replaced; equal mapping and seed give equal surrogates."""
    return surrogates(value, surrogate_map(mapping, seed))


def surrogate_map(value: Any, seed: int | str) -> dict[str, str]:
    """An invented value for each placeholder that stands anywhere in ``value``, no two alike."""
    chosen: dict[str, str] = {}
    taken: set[str] = set()
    for placeholder, entity in sorted(_placeholders(value)):
        digest = hashlib.sha256(f"{seed}\x00{placeholder}".encode()).digest()
        rng = random.Random(int.from_bytes(digest, "big"))
        make = _MAKERS.get(entity, _other)
        found = make(rng)
        for _ in range(100):
            if found not in taken:
                break
            found = make(rng)
        else:  # more placeholders than invented values
            found = f"{found} {len(taken)}"
        chosen[placeholder] = found
        taken.add(found)
    return chosen


def surrogates(value: Any, chosen: Mapping[str, str]) -> Any:
    """``value`` with the placeholders of ``chosen`` replaced in all texts; others stay."""
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda match: chosen.get(match[0], match[0]), value)
    if isinstance(value, Mapping):
        return {surrogates(key, chosen): surrogates(item, chosen) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [surrogates(item, chosen) for item in value]
    return value


def _placeholders(value: Any) -> set[tuple[str, str]]:
    """(placeholder, entity) of each one in ``value``, keys included."""
    if isinstance(value, str):
        return {(match[0], match[1]) for match in PLACEHOLDER.finditer(value)}
    if isinstance(value, Mapping):
        return {found for pair in value.items() for part in pair for found in _placeholders(part)}
    if isinstance(value, list | tuple):
        return {found for item in value for found in _placeholders(item)}
    return set()


def _person(rng: random.Random) -> str:
    return f"{rng.choice(_FIRST)} {rng.choice(_LAST)}"


def _email(rng: random.Random) -> str:
    return f"{rng.choice(_FIRST)}.{rng.choice(_LAST)}{rng.randrange(10, 99)}@example.com".lower()


def _phone(rng: random.Random) -> str:
    return f"+1 {rng.randrange(202, 990)}-555-01{rng.randrange(100):02}"


def _card(rng: random.Random) -> str:
    digits = "400000" + _digits(rng, 9)
    return digits + _luhn(digits)


def _iban(rng: random.Random) -> str:
    account = _digits(rng, 18)
    check = 98 - int(f"{account}131400") % 97  # DE as numbers, then 00
    return f"DE{check:02}{account}"


def _place(rng: random.Random) -> str:
    return rng.choice(_PLACES)


def _address(rng: random.Random) -> str:
    return f"{rng.randrange(1, 200)} {rng.choice(_STREETS)} Street"


def _company(rng: random.Random) -> str:
    return f"{rng.choice(_COMPANIES)} {rng.choice(('Ltd', 'GmbH', 'Inc', 'AG'))}"


def _ip(rng: random.Random) -> str:
    return f"{rng.choice(('192.0.2', '198.51.100', '203.0.113'))}.{rng.randrange(1, 255)}"


def _url(rng: random.Random) -> str:
    return f"https://example.com/{_letters(rng, 8)}"


def _mac(rng: random.Random) -> str:
    return "00:00:5e:00:53:" + f"{rng.randrange(256):02x}"


def _national_id(rng: random.Random) -> str:
    return f"{rng.randrange(900, 1000)}-{rng.randrange(10, 99)}-{_digits(rng, 4)}"


def _key(rng: random.Random) -> str:
    return f"example-key-{_letters(rng, 12)}"


def _connection(rng: random.Random) -> str:
    return f"db://user:{_letters(rng, 8)}@db.example.com/{_letters(rng, 5)}"


def _number(rng: random.Random) -> str:
    return str(rng.randrange(1, 10)) + _digits(rng, 8)


def _other(rng: random.Random) -> str:
    return f"value-{_letters(rng, 8)}"


def _digits(rng: random.Random, count: int) -> str:
    return "".join(rng.choice(string.digits) for _ in range(count))


def _letters(rng: random.Random, count: int) -> str:
    return "".join(rng.choice(string.ascii_lowercase) for _ in range(count))


def _luhn(digits: str) -> str:
    total = 0
    for index, char in enumerate(reversed(digits)):
        value = int(char) * (2 if index % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return str(-total % 10)


# Short names are ours, long ones Presidio's.
_MAKERS: Mapping[str, Callable[[random.Random], str]] = {
    "PERSON": _person,
    "EMAIL": _email,
    "EMAIL_ADDRESS": _email,
    "PHONE": _phone,
    "PHONE_NUMBER": _phone,
    "CARD": _card,
    "CREDIT_CARD": _card,
    "IBAN": _iban,
    "IBAN_CODE": _iban,
    "LOCATION": _place,
    "ADDRESS": _address,
    "ORGANIZATION": _company,
    "IP": _ip,
    "IP_ADDRESS": _ip,
    "MAC": _mac,
    "URL": _url,
    "NATIONAL_ID": _national_id,
    "US_SSN": _national_id,
    "ORDER_NUMBER": _number,
    "CUSTOMER_NUMBER": _number,
    "API_KEY": _key,
    "TOKEN": _key,
    "JWT": _key,
    "PASSWORD": _key,
    "SECRET": _key,
    "PRIVATE_KEY": _key,
    "CONNECTION_STRING": _connection,
}
