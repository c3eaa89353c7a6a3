"""Arithmetic over fields of a short document: the answer is one number."""

import random

from packs.starter.draft import CURRENCIES, VENDORS, Draft, invoice_number, person

ITEMS = ("chairs", "lamps", "boxes", "pumps", "desks", "tickets", "books", "cables", "tiles", "bags")


def draft(rng: random.Random) -> Draft:
    layout = rng.choice(("tax", "paid", "items", "shipping", "discount", "two"))
    vendor, currency, number = rng.choice(VENDORS), rng.choice(CURRENCIES), invoice_number(rng)
    a, b, k = rng.randint(12, 60), rng.randint(1, 9), rng.randint(2, 5)
    price = rng.randint(2, 9)
    item = rng.choice(ITEMS)
    text, result, wrong = {
        "tax": (f"Invoice {number}, {vendor}\nNet {a} {currency}, tax {b}. Gross?", a + b, a - b),
        "paid": (f"{vendor} billed {currency} {a}, {person(rng)} paid {b}. Open?", a - b, a + b),
        "items": (f"{vendor}: {k} {item} at {price} {currency}. Amount?", k * price, k + price),
        "shipping": (f"{number}: goods {a}, shipping {b} {currency}. Total?", a + b, a),
        "discount": (f"{vendor} {number}\nList {a} {currency}, discount {b}. To pay?", a - b, a + b),
        "two": (f"{vendor} sent two bills: {b} and {price} {currency}. Sum?", b + price, abs(b - price)),
    }[layout]
    return Draft(
        prompt=text,
        verifier="numeric",
        params={"tolerance": 0.005, "relative": 0.0},
        reference=result,
        gold=str(result),
        bad={
            "operation": str(wrong) if wrong != result else str(result + 1),
            "copied": str(a + 300),
            "words": "unknown",
        },
        layout=layout,
        origin=vendor,
    )
