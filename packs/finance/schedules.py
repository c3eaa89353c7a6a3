"""Schedules: how old open invoices are, and how an asset loses its value."""

import random
from datetime import date, timedelta
from typing import Any

from packs.finance.figures import CURRENCIES, STYLES, as_json, cents, company, day_in, write_date
from packs.seeded import Draft
from packs.starter.draft import VENDORS

BUCKETS = (("not_due", 0), ("days_1_30", 30), ("days_31_60", 60), ("days_61_90", 90), ("over_90", 10**6))


def ageing(rng: random.Random) -> Draft:
    """Open invoices sorted into buckets by days past due."""
    today = day_in(rng, rng.randint(2022, 2025))
    style, currency = rng.choice(STYLES), rng.choice(CURRENCIES)
    form = rng.choice(("iso", "dotted", "spelled"))
    owner, terms = company(rng), rng.choice((14, 30, 45))
    open_items = []
    for _ in range(rng.randint(4, 8)):
        late = rng.choice((rng.randint(-25, 130), rng.choice((0, 1, 30, 31, 60, 61, 90, 91))))
        due = today - timedelta(days=late)
        number = f"INV-{rng.randint(1_000, 9_999)}"
        open_items.append(
            (rng.choice(VENDORS), number, due - timedelta(days=terms), due, rng.randint(900, 700_000))
        )
    lines = [
        f"{vendor}; {number}; issued {write_date(issued, form)}; due {write_date(due, form)}; "
        f"{style.write(amount, 2)}"
        for vendor, number, issued, due, amount in open_items
    ]
    right = _sorted([((today - due).days, amount) for *_, due, amount in open_items])
    from_issue = _sorted([((today - issued).days, amount) for _, _, issued, _, amount in open_items])
    shifted = _sorted([((today - due).days + 1, amount) for *_, due, amount in open_items])
    total = sum(right.values())
    bad = {
        "from_the_invoice_date": as_json(from_issue),
        "off_by_one_day": as_json(shifted),
        "all_overdue": as_json({**dict.fromkeys(right, 0.0), "over_90": total}),
        "empty": as_json(dict.fromkeys(right, 0.0)),
        "dropped": as_json({name: value for name, value in right.items() if name != "not_due"}),
    }
    gold = as_json(right)
    names = ", ".join(name for name, _ in BUCKETS)
    return Draft(
        prompt=(
            f"{owner}, open invoices on {write_date(today, form)}, {currency}:\n" + "\n".join(lines) + "\n\n"
            f"Sum them up by days past due, as one JSON object with exactly {names}. An invoice that is due "
            "today or later is not due. Plain numbers."
        ),
        verifier="accounting",
        params={
            "relations": [
                {"name": "total", "formula": f"{' + '.join(right)} == {total:.2f}", "tolerance": 0.01}
            ],
            "fence": True,
        },
        reference=right,
        gold=gold,
        bad={name: text for name, text in bad.items() if text != gold},
        layout=f"{style.name}-{form}",
        origin=owner,
    )


def depreciation(rng: random.Random) -> Draft:
    """Straight line from the month of purchase, down to a residual value."""
    years = rng.choice((3, 4, 5))
    month, year = rng.choice((1, 1, 4, 7, 10)), rng.randint(2019, 2024)
    monthly = rng.randint(40, 2_500) * 100
    residual = rng.choice((0, rng.randint(10, 900) * 1_000))
    cost = monthly * 12 * years + residual
    style, currency, owner = rng.choice(STYLES), rng.choice(CURRENCIES), company(rng)
    thing = rng.choice(("press", "van", "server room", "oven", "crane", "packing line"))
    rows = _schedule(year, month, years, monthly, cost)
    ignored = _schedule(year, month, years, cost // (12 * years), cost)
    full_year = _schedule(year, 1, years, monthly, cost)
    bad = {
        "residual_ignored": as_json(ignored),
        "full_first_year": as_json(full_year),
        "last_year_dropped": as_json(rows[:-1]),
        "accumulated": as_json(
            [{**row, "depreciation": cents(cost) - row["book_value"] + 1} for row in rows]
        ),
        "before_depreciation": as_json(
            [{**row, "book_value": row["book_value"] + row["depreciation"]} for row in rows]
        ),
    }
    gold = as_json(rows)
    bought = date(year, month, 1)
    return Draft(
        prompt=(
            f"{owner} bought a {thing} on {write_date(bought, 'spelled')} for {currency} "
            f"{style.write(cost, 2)}. "
            f"Useful life {years} years, residual value {style.write(residual, 2)}, straight line by months "
            "from the month of purchase; the financial year is the calendar year.\n\nGive the schedule as a "
            "JSON list of objects with year, depreciation and book_value (at the end of the year). "
            "Plain numbers."
        ),
        verifier="table",
        params={
            "key": ["year"],
            "columns": {"year": "number", "depreciation": "number", "book_value": "number"},
            "fence": True,
            "tolerance": 0.5,
        },
        reference=rows,
        gold=gold,
        bad={name: text for name, text in bad.items() if text != gold},
        layout=f"{years}-{month}-{'residual' if residual else 'nothing'}",
        origin=owner,
    )


def _sorted(items: list[tuple[int, int]]) -> dict[str, float]:
    sums = dict.fromkeys((name for name, _ in BUCKETS), 0)
    for late, amount in items:
        name = next(name for name, limit in BUCKETS if late <= limit)
        sums[name] += amount
    return {name: cents(value) for name, value in sums.items()}


def _schedule(year: int, month: int, years: int, monthly: int, cost: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    left, book = 12 * years, cost
    while left > 0:
        months = min(left, 13 - month if not rows else 12)
        left, book = left - months, book - months * monthly
        rows.append(
            {"year": year + len(rows), "depreciation": cents(months * monthly), "book_value": cents(book)}
        )
    return rows
