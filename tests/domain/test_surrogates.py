import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.surrogates import surrogate, surrogate_map, surrogates

ENTITIES = [
    "PERSON", "EMAIL_ADDRESS", "PHONE_NUMBER", "CREDIT_CARD", "IBAN_CODE", "LOCATION", "ORGANIZATION",
    "IP_ADDRESS", "URL", "US_SSN", "API_KEY", "CONNECTION_STRING", "ADDRESS", "ORDER_NUMBER", "SOMETHING",
]  # fmt: skip


def mapping(*entities: str, count: int = 1) -> dict[str, str]:
    return {f"<{entity}_{n + 1}>": entity for entity in entities for n in range(count)}


@given(st.integers())
def test_equal_seeds_give_equal_values_and_no_two_placeholders_share_one(seed: int) -> None:
    chosen = surrogate_map(mapping(*ENTITIES, count=20), seed)

    assert chosen == surrogate_map(mapping(*ENTITIES, count=20), seed)
    assert len(set(chosen.values())) == len(chosen)


def test_seeds_differ() -> None:
    assert surrogate_map(mapping(*ENTITIES), 1) != surrogate_map(mapping(*ENTITIES), 2)


@pytest.mark.parametrize(
    ("entity", "shape"),
    [
        ("EMAIL_ADDRESS", r"[a-z.]+\d\d@example\.com"),
        ("PHONE_NUMBER", r"\+1 \d{3}-555-01\d\d"),
        ("CREDIT_CARD", r"\d{16}"),
        ("IBAN_CODE", r"DE\d{20}"),
        ("IP_ADDRESS", r"(192\.0\.2|198\.51\.100|203\.0\.113)\.\d+"),
        ("PERSON", r"[A-Z][a-z]+ [A-Z][a-z]+"),
    ],
)
def test_values_have_the_form_of_their_type(entity: str, shape: str) -> None:
    (value,) = surrogate_map(mapping(entity), 5).values()

    assert re.fullmatch(shape, value)


def test_cards_and_accounts_pass_their_checksums() -> None:
    card, iban = surrogate_map(mapping("CREDIT_CARD", "IBAN_CODE"), 9).values()
    doubled = [int(c) * (1 + i % 2) for i, c in enumerate(reversed(card))]

    assert sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0
    assert int(iban[4:] + "1314" + iban[2:4]) % 97 == 1


def test_one_map_serves_prompt_answer_and_correction() -> None:
    names = mapping("PERSON", count=2)
    messages = [
        {"role": "user", "content": "Who is <PERSON_2>? Ask <PERSON_1>."},
        {"a": ["<PERSON_2>", 5, None]},
    ]

    replaced = surrogate(messages, names, seed=3)
    answer = surrogate("<PERSON_2>", names, seed=3)

    assert replaced[1]["a"] == [answer, 5, None]
    assert answer in replaced[0]["content"]
    assert "<" not in str(replaced)


def test_unknown_placeholders_stay() -> None:
    assert surrogates("<PERSON_9> <b>", {"<PERSON_1>": "x"}) == "<PERSON_9> <b>"
