"""Reconciliation: the bank's entries against the books', pair by pair."""

import random
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from packs.finance.figures import (
    CURRENCIES,
    STYLES,
    Style,
    as_json,
    cents,
    company,
    day_in,
    misprinted,
    write_date,
)  # fmt: skip
from packs.seeded import Draft

BANK_ONLY = ("Account fee", "Interest received", "Card fee", "Returned direct debit")
PARTS = ("only_bank", "only_ledger", "amount_differs")


@dataclass(frozen=True)
class Posting:
    id: str
    day: date
    document: str  # the number that pairs go by; bank fees have none
    amount: int  # cents


@dataclass(frozen=True)
class Books:
    """Both sides in order of day; ``differs`` are pairs (bank, ledger) with another amount."""

    owner: str
    currency: str
    style: Style
    bank: tuple[Posting, ...]
    ledger: tuple[Posting, ...]
    only_bank: tuple[Posting, ...]
    only_ledger: tuple[Posting, ...]
    differs: tuple[tuple[Posting, Posting], ...]

    @property
    def reference(self) -> dict[str, list[dict[str, Any]]]:
        return {
            "only_bank": [_one(posting) for posting in self.only_bank],
            "only_ledger": [_one(posting) for posting in self.only_ledger],
            "amount_differs": [_pair(ours, theirs) for ours, theirs in self.differs],
        }


def books(rng: random.Random, *, pairs: tuple[int, int] = (4, 8)) -> Books:
    start = day_in(rng, rng.randint(2021, 2025))
    numbers = rng.sample(range(1_000, 9_999), 20)
    bank: list[tuple[date, str, int, str]] = []
    ledger: list[tuple[date, str, int, str]] = []
    count = rng.randint(*pairs)
    wrong = set(rng.sample(range(count), rng.randint(0, 2)))
    for index in range(count):
        day, document = start + timedelta(days=rng.randrange(25)), f"INV-{numbers.pop()}"
        amount = rng.randint(1_200, 480_000) * rng.choice((1, 1, -1))
        booked = misprinted(rng, amount) if index in wrong else amount
        kind = "differs" if index in wrong else "same"
        bank.append((day + timedelta(days=rng.choice((0, 0, 1, 3))), document, amount, kind))
        ledger.append((day, document, booked, kind))
    for text in rng.sample(BANK_ONLY, rng.randint(0, 2)):
        amount = rng.randint(150, 9_900) * (1 if "received" in text else -1)
        bank.append((start + timedelta(days=rng.randrange(25)), text, amount, "only"))
    for _ in range(rng.randint(1 if len(bank) == count and not wrong else 0, 2)):
        document = f"INV-{numbers.pop()}"
        twin = rng.choice(bank)[2] if rng.random() < 0.3 else rng.randint(1_200, 480_000)
        ledger.append((start + timedelta(days=24 + rng.randrange(4)), document, twin, "only"))

    def numbered(side: list[tuple[date, str, int, str]], letter: str) -> list[tuple[Posting, str]]:
        ordered = sorted(side, key=lambda entry: (entry[0], entry[1]))
        return [
            (Posting(f"{letter}{place}", day, text, amount), kind)
            for place, (day, text, amount, kind) in enumerate(ordered, start=1)
        ]

    ours, theirs = numbered(bank, "B"), numbered(ledger, "L")
    by_document = {posting.document: posting for posting, _ in theirs}
    return Books(
        owner=company(rng),
        currency=rng.choice(CURRENCIES),
        style=rng.choice(STYLES),
        bank=tuple(posting for posting, _ in ours),
        ledger=tuple(posting for posting, _ in theirs),
        only_bank=tuple(posting for posting, kind in ours if kind == "only"),
        only_ledger=tuple(posting for posting, kind in theirs if kind == "only"),
        differs=tuple(
            (posting, by_document[posting.document]) for posting, kind in ours if kind == "differs"
        ),
    )


def render(held: Books, layout: str, date_form: str) -> str:
    def side(title: str, postings: tuple[Posting, ...]) -> list[str]:
        rows = [
            (one.id, write_date(one.day, date_form), one.document, held.style.write(one.amount, 2))
            for one in postings
        ]
        if layout == "markdown":
            lines = [f"| {' | '.join(row)} |" for row in rows]
            return [f"### {title}", "| id | date | document | amount |", "|---|---|---|---|", *lines]
        if layout == "csv":
            return [title, "id;date;document;amount", *(";".join(row) for row in rows)]
        return [title, *(f"{a:<5}{b:<13}{c:<24}{d:>14}" for a, b, c, d in rows)]

    lines = [f"{held.owner}, {held.currency}", *side("Bank", held.bank), "", *side("Ledger", held.ledger)]
    return "\n".join(lines)


def reconciliation(rng: random.Random) -> Draft:
    held = books(rng)
    layout = rng.choice(("columns", "markdown", "csv"))
    date_form = rng.choice(("iso", "dotted", "spelled"))
    reference = held.reference
    return Draft(
        prompt=(
            f"{render(held, layout, date_form)}\n\nEntries with the same document belong together, "
            "whatever their dates. Answer with one JSON object of three lists: only_bank and only_ledger, "
            "objects with id and amount; amount_differs, objects with bank (id), ledger (id) and difference "
            "(bank amount minus ledger amount). Plain numbers."
        ),
        verifier="weighted",
        params={"parts": parts(reference)},
        reference=None,
        gold=as_json(reference),
        bad=bad_reconciliations(held),
        layout=f"{layout}-{held.style.name}-{date_form}",
        origin=held.owner,
    )


def parts(reference: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """One table for each list of a reconciliation."""
    one = {"id": "text", "amount": "number"}
    pair = {"bank": "text", "ledger": "text", "difference": "number"}
    return [
        {
            "kind": "table",
            "params": {
                "key": ["bank", "ledger"] if name == "amount_differs" else ["id"],
                "columns": pair if name == "amount_differs" else one,
                "path": name,
                "fence": True,
            },
            "reference": reference[name],
            # An empty list is easy to get right: it weighs little.
            "weight": len(reference[name]) or 0.25,
        }
        for name in PARTS
    ]


def bad_reconciliations(held: Books) -> dict[str, str]:
    right = held.reference
    bad = {
        "everything_matches": as_json({name: [] for name in PARTS}),
        "sides_swapped": as_json(
            {**right, "only_bank": right["only_ledger"], "only_ledger": right["only_bank"]}
        ),
        "all_listed": as_json({**right, "only_bank": [_one(posting) for posting in held.bank]}),
        "prose": "Some entries have no counterpart.",
    }
    if right["only_bank"] == right["only_ledger"]:
        del bad["sides_swapped"]
    if held.differs:
        apart = [_one(ours) for ours, _ in held.differs]
        others = [_one(theirs) for _, theirs in held.differs]
        bad["matched_by_amount"] = as_json(
            {
                "only_bank": right["only_bank"] + apart,
                "only_ledger": right["only_ledger"] + others,
                "amount_differs": [],
            }
        )
        flipped = [{**row, "difference": -row["difference"]} for row in right["amount_differs"]]
        bad["difference_sign"] = as_json({**right, "amount_differs": flipped})
    moved = [_one(ours) for ours in held.bank for theirs in held.ledger if _same_but_later(ours, theirs)]
    if moved:
        bad["matched_by_date"] = as_json({**right, "only_bank": [*right["only_bank"], *moved]})
    return bad


def _same_but_later(ours: Posting, theirs: Posting) -> bool:
    return ours.document == theirs.document and ours.amount == theirs.amount and ours.day != theirs.day


def _one(posting: Posting) -> dict[str, Any]:
    return {"id": posting.id, "amount": cents(posting.amount)}


def _pair(ours: Posting, theirs: Posting) -> dict[str, Any]:
    return {"bank": ours.id, "ledger": theirs.id, "difference": cents(ours.amount - theirs.amount)}
