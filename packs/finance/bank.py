"""Bank statements: entries with their signs, dates in the bank's own notation, a running balance."""

import random
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from packs.finance.figures import CURRENCIES, STYLES, Style, as_json, cents, day_in, write_date
from packs.seeded import Draft
from packs.starter.draft import VENDORS

DATE_FORMS = ("iso", "dotted", "spelled", "slashed")
MONEY_OUT = ("Rent", "Payroll", "Card fees", "Insurance", "Electricity", "Supplies", "Fuel", "Telephone")
LAYOUTS = ("signed", "debit_credit", "suffix", "csv", "lines")
COLUMNS = {"date": "date", "text": "text", "amount": "number"}


@dataclass(frozen=True)
class Entry:
    day: date
    text: str
    amount: int  # cents, money out is negative


@dataclass(frozen=True)
class Account:
    owner: str
    currency: str
    opening: int
    entries: tuple[Entry, ...]
    style: Style
    date_form: str

    @property
    def closing(self) -> int:
        return self.opening + sum(entry.amount for entry in self.entries)


def account(rng: random.Random, *, size: tuple[int, int] = (4, 9)) -> Account:
    day = day_in(rng, rng.randint(2021, 2025))
    entries = []
    texts: set[str] = set()
    for _ in range(rng.randint(*size)):
        day += timedelta(days=rng.choice((0, 1, 1, 2, 3)))
        out = rng.random() < 0.55
        text = rng.choice(MONEY_OUT) if out and rng.random() < 0.5 else rng.choice(VENDORS)
        text = text if text not in texts else f"{text} {rng.randint(100, 999)}"
        texts.add(text)
        amount = rng.randint(500, 900_000)
        entries.append(Entry(day, text, -amount if out else amount))
    return Account(
        owner=rng.choice(VENDORS),
        currency=rng.choice(CURRENCIES),
        opening=rng.randint(-200_000, 3_000_000),
        entries=tuple(entries),
        style=rng.choice(STYLES),
        date_form=rng.choice(DATE_FORMS),
    )


def render(held: Account, layout: str) -> tuple[str, list[str]]:
    """The document, and the line of each entry."""
    lines = []
    balance = held.opening
    for entry in held.entries:
        balance += entry.amount
        day, amount = write_date(entry.day, held.date_form), held.style.write(entry.amount, 2)
        plain, total = held.style.write(abs(entry.amount), 2), held.style.write(balance, 2)
        if layout == "signed":
            lines.append(f"{day:<13}{entry.text:<26}{amount:>16}{total:>18}")
        elif layout == "debit_credit":
            debit, credit = (plain, "") if entry.amount < 0 else ("", plain)
            lines.append(f"| {day} | {entry.text} | {debit} | {credit} | {total} |")
        elif layout == "suffix":
            lines.append(f"{day:<13}{entry.text:<26}{plain:>14} {'D' if entry.amount < 0 else 'C'}")
        elif layout == "csv":
            lines.append(f'"{day}";"{entry.text}";"{amount}";"{total}"')
        else:
            way = "paid to" if entry.amount < 0 else "received from"
            lines.append(f"{day}: {held.currency} {plain} {way} {entry.text}")
    head = {
        "signed": f"{'Date':<13}{'Text':<26}{'Amount':>16}{'Balance':>18}",
        "debit_credit": "| Date | Text | Debit | Credit | Balance |\n|---|---|---|---|---|",
        "suffix": f"{'Date':<13}{'Text':<26}{'Amount':>14}   (D: money out, C: money in)",
        "csv": '"date";"text";"amount";"balance"',
        "lines": "Entries of the period:",
    }[layout]
    note = " Dates are month/day/year." if held.date_form == "slashed" else ""
    opening = f"Opening balance {held.style.write(held.opening, 2)}"
    closing = f"Closing balance {held.style.write(held.closing, 2)}"
    top = f"Account of {held.owner}, {held.currency}.{note}\n{opening}\n{head}"
    return "\n".join([top, *lines, closing]), lines


def bank_statement(rng: random.Random) -> Draft:
    held = account(rng)
    layout = rng.choice(LAYOUTS)
    text, lines = render(held, layout)
    which = rng.choice(("all", "all", "out", "in"))
    kept = [
        (entry, line)
        for entry, line in zip(held.entries, lines, strict=True)
        if which == "all" or (entry.amount < 0) == (which == "out")
    ] or list(zip(held.entries, lines, strict=True))
    which = which if len(kept) < len(held.entries) else "all"
    rows = [_row(entry) for entry, _ in kept]
    wanted = {
        "all": "all entries",
        "out": "the entries that took money out",
        "in": "the entries that brought money in",
    }
    return Draft(
        prompt=(
            f"{text}\n\nList {wanted[which]} as a JSON list of objects with date (YYYY-MM-DD), text and "
            "amount. Amounts are plain numbers, money out is negative."
        ),
        verifier="table",
        params={
            "key": ["text"],
            "columns": COLUMNS,
            "fence": True,
            "sources": {row["text"]: line.strip() for row, (_, line) in zip(rows, kept, strict=True)},
        },
        reference=rows,
        gold=as_json(rows),
        bad=_bad(held, rows, which),
        layout=f"{layout}-{held.style.name}-{held.date_form}-{which}",
        origin=held.owner,
    )


def _row(entry: Entry) -> dict[str, Any]:
    return {"date": entry.day.isoformat(), "text": entry.text, "amount": cents(entry.amount)}


def _bad(held: Account, rows: list[dict[str, Any]], which: str) -> dict[str, str]:
    opening = {"date": rows[0]["date"], "text": "Opening balance", "amount": cents(held.opening)}
    bad = {
        "dropped": as_json(rows[:-1]),
        "opening_as_entry": as_json([opening, *rows]),
        "next_amount": as_json([{**row, "amount": row["amount"] + 0.1} for row in rows]),
        "prose": "\n".join(f"{row['date']} {row['text']} {row['amount']}" for row in rows),
    }
    if any(row["amount"] < 0 for row in rows):
        bad["unsigned"] = as_json([{**row, "amount": abs(row["amount"])} for row in rows])
    swapped = [{**row, "date": f"{row['date'][:5]}{row['date'][8:]}-{row['date'][5:7]}"} for row in rows]
    if any(a["date"] != b["date"] for a, b in zip(rows, swapped, strict=True)):
        bad["day_and_month"] = as_json(swapped)
    if which != "all":
        bad["all_entries"] = as_json([_row(entry) for entry in held.entries])
    return bad
