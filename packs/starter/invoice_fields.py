"""Document field extraction: read a short invoice, answer with one JSON object.

Dates are asked for in ISO form and totals as plain numbers, whatever the document writes.
Several layouts carry a distractor: a due date beside the invoice date, a net amount beside
the total.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

from packs.starter.draft import CURRENCIES, VENDORS, Draft, email, invoice_number, person

FIELD_SETS = (
    ("invoice", "total"),
    ("invoice", "date"),
    ("total", "date"),
    ("total", "currency"),
    ("invoice", "currency"),
    ("invoice", "total", "currency"),
)
KINDS = {"invoice": "text", "total": "number", "date": "date", "currency": "text"}
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True)
class Invoice:
    number: str
    vendor: str
    issued: date
    due: date
    cents: int
    net_cents: int
    currency: str
    person: str
    email: str


def draft(rng: random.Random) -> Draft:
    issued = date(2022, 1, 1) + timedelta(days=rng.randrange(1800))
    cents = rng.randint(1_000, 30_000_0) if rng.random() < 0.5 else rng.randint(5, 990) * 100
    doc = Invoice(
        number=invoice_number(rng),
        vendor=rng.choice(VENDORS),
        issued=issued,
        due=issued + timedelta(days=rng.choice((7, 14, 30, 45))),
        cents=cents,
        net_cents=cents - max(100, cents // rng.choice((5, 6, 11))),
        currency=rng.choice(CURRENCIES),
        person=person(rng),
        email=email(rng),
    )
    layout = rng.choice(tuple(LAYOUTS))
    fields = rng.choice(FIELD_SETS)
    values = {
        "invoice": doc.number,
        "total": doc.cents / 100,
        "date": doc.issued.isoformat(),
        "currency": doc.currency,
    }
    reference = {name: values[name] for name in fields}
    return Draft(
        prompt=f"{LAYOUTS[layout](doc)}\nJSON: {', '.join(fields)}",
        verifier="json_fields",
        params={"fields": {name: KINDS[name] for name in fields}},
        reference=reference,
        gold=answer(reference),
        bad=_bad(doc, reference),
        layout=layout,
        origin=doc.vendor,
    )


def answer(reference: dict[str, object]) -> str:
    """The reference as one JSON object: totals with two decimals, everything else as text."""
    parts = (
        f'"{name}":{value:.2f}' if isinstance(value, int | float) else f'"{name}":"{value}"'
        for name, value in reference.items()
    )
    return "{" + ",".join(parts) + "}"


def _bad(doc: Invoice, reference: dict[str, object]) -> dict[str, str]:
    """Mistakes seen in real extraction: no JSON at all, a dropped field, the net amount, the due date."""
    first = next(iter(reference))
    bad = {
        "plain": answer(reference).strip("{}").replace('"', "").replace(":", " "),
        "dropped": answer({name: value for name, value in reference.items() if name != first}),
        "unclosed": answer(reference)[:-1],
    }
    if "total" in reference:
        bad["net"] = answer({**reference, "total": doc.net_cents / 100})
    if "date" in reference:
        bad["due"] = answer({**reference, "date": doc.due.isoformat()})
    return bad


def _money(cents: int) -> str:
    return f"{cents / 100:,.2f}"


def _ledger(doc: Invoice) -> str:
    total = f"Total {_money(doc.cents)} {doc.currency}"
    return f"Invoice {doc.number}\n{doc.vendor}\nDate {doc.issued.isoformat()}\n{total}"


def _columns(doc: Invoice) -> str:
    issued, due = _dotted(doc.issued), _dotted(doc.due)
    return f"{doc.vendor} | No {doc.number} | {issued} | due {due} | {doc.currency} {_money(doc.cents)}"


def _net(doc: Invoice) -> str:
    return (
        f"{doc.vendor} invoice {doc.number}, {doc.issued.isoformat()}\n"
        f"Net {_money(doc.net_cents)}\nTotal due {_money(doc.cents)} {doc.currency}"
    )


def _mail(doc: Invoice) -> str:
    return (
        f"From: {doc.email}\nPlease pay {doc.currency} {_money(doc.cents)} for invoice {doc.number} "
        f"of {_spelled(doc.issued)}.\n{doc.person}, {doc.vendor}"
    )


def _letter(doc: Invoice) -> str:
    return (
        f"Dear {doc.person}, our invoice {doc.number} of {doc.issued.isoformat()} over "
        f"{_money(doc.cents)} {doc.currency} is open. {doc.vendor}"
    )


def _receipt(doc: Invoice) -> str:
    total = f"TOTAL {doc.currency} {_money(doc.cents)}"
    head = f"{doc.vendor.upper()}\n{_spelled(doc.issued)}\nRECEIPT {doc.number}"
    return f"{head}\n{total}\nServed by {doc.person}"


def _due(doc: Invoice) -> str:
    return (
        f"Bill {doc.number} from {doc.vendor}\n"
        f"Issued {doc.issued.isoformat()}, pay by {doc.due.isoformat()}\n"
        f"Amount {doc.currency} {_money(doc.cents)}"
    )


def _slip(doc: Invoice) -> str:
    total = f"{doc.currency} {_money(doc.cents)}"
    return f"{total} / {_dotted(doc.issued)} / {doc.number} / {doc.vendor} / {doc.person}"


def _dotted(day: date) -> str:
    return day.strftime("%d.%m.%Y")


def _spelled(day: date) -> str:
    return f"{day.day:02d} {MONTHS[day.month - 1]} {day.year}"


LAYOUTS: dict[str, Callable[[Invoice], str]] = {
    "ledger": _ledger,
    "columns": _columns,
    "net": _net,
    "mail": _mail,
    "letter": _letter,
    "receipt": _receipt,
    "due": _due,
    "slip": _slip,
}
