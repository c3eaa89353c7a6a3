"""Invoices with line items: reading them whole, and their tax by rate."""

import random
from dataclasses import dataclass
from typing import Any

from packs.finance.figures import CURRENCIES, STYLES, Style, as_json, cents, company
from packs.seeded import Draft

GOODS = (
    "Office chair", "Desk lamp", "Printer paper", "Water pump", "Copper cable", "Steel bracket", "Toner",
    "Safety gloves", "Filter set", "Delivery", "Assembly", "Hand drill", "LED panel", "Storage box",
    "Floor tile", "Paint bucket", "Network switch", "Monitor arm", "Coffee beans", "Cleaning",
)  # fmt: skip
RATES = (0, 5, 7, 8, 10, 19, 20, 25)
LAYOUTS = ("columns", "markdown", "csv", "sentences")


@dataclass(frozen=True)
class Item:
    name: str
    quantity: int
    price: int  # cents
    rate: int  # per cent

    @property
    def amount(self) -> int:
        return self.quantity * self.price


@dataclass(frozen=True)
class Invoice:
    number: str
    vendor: str
    currency: str
    items: tuple[Item, ...]
    style: Style

    @property
    def net(self) -> int:
        return sum(item.amount for item in self.items)

    @property
    def by_rate(self) -> dict[int, tuple[int, int]]:
        """Net and tax in cents by rate, tax rounded half up once a rate."""
        nets: dict[int, int] = {}
        for item in self.items:
            nets[item.rate] = nets.get(item.rate, 0) + item.amount
        return {rate: (net, (net * rate + 50) // 100) for rate, net in sorted(nets.items())}

    @property
    def tax(self) -> int:
        return sum(tax for _, tax in self.by_rate.values())


def invoice(rng: random.Random, *, rates: int = 1, size: tuple[int, int] = (2, 5)) -> Invoice:
    """``rates`` is how many tax rates there are."""
    count = max(rng.randint(*size), rates)
    offered = rng.sample(RATES, rates)
    drawn = [*offered, *rng.choices(offered, k=count - rates)]
    items = tuple(
        Item(name, rng.randint(2, 40), rng.randint(120, 49_900), rate)
        for name, rate in zip(rng.sample(GOODS, count), drawn, strict=True)
    )
    number = f"{rng.choice(('INV', 'RE', 'F', 'B'))}-{rng.randint(1_000, 99_999)}"
    return Invoice(number, company(rng), rng.choice(CURRENCIES), items, rng.choice(STYLES))


def render(bill: Invoice, layout: str, *, with_rates: bool = False) -> tuple[str, dict[str, str]]:
    """The document, and the line of each item and total."""

    def money(value: int) -> str:
        return bill.style.write(value, 2)

    lines = {}
    for item in bill.items:
        rate = f"{item.rate} %" if with_rates else ""
        amount, price = money(item.amount), money(item.price)
        cell, taxed = (f"{rate} | ", f" plus {rate} tax") if rate else ("", "")
        lines[item.name] = {
            "columns": f"{item.name:<18}{item.quantity:>4} x {price:>10}{rate:>7}{amount:>14}",
            "markdown": f"| {item.name} | {item.quantity} | {price} | {cell}{amount} |",
            "csv": f"{item.name};{item.quantity};{price};{rate + ';' if rate else ''}{amount}",
            "sentences": f"{item.quantity} of {item.name} at {price} each{taxed}: {amount}.",
        }[layout]
    head = {
        "columns": "",
        "markdown": f"| Item | Quantity | Price | {'Tax | ' if with_rates else ''}Amount |\n|---|---|---|---|"
        + ("---|" if with_rates else ""),
        "csv": f"item;quantity;price;{'tax;' if with_rates else ''}amount",
        "sentences": "We delivered:",
    }[layout]
    top = f"{bill.vendor}\nInvoice {bill.number}, amounts in {bill.currency}"
    return "\n".join(part for part in (top, head, *lines.values()) if part), lines


def invoice_lines(rng: random.Random) -> Draft:
    bill = invoice(rng)
    layout = rng.choice(LAYOUTS)
    text, lines = render(bill, layout)
    rate = bill.items[0].rate
    totals = f"Net {bill.style.write(bill.net, 2)}\nTax {rate} % {bill.style.write(bill.tax, 2)}\n"
    totals += f"To pay {bill.style.write(bill.net + bill.tax, 2)}"
    rows = [_row(item) for item in bill.items]
    sums = {"net": cents(bill.net), "tax": cents(bill.tax), "gross": cents(bill.net + bill.tax)}
    relations = [
        {"name": "line", "formula": "quantity * price == amount", "each": "lines"},
        {"name": "net", "formula": "net == sum(lines.amount)"},
        {"name": "gross", "formula": "gross == net + tax"},
    ]
    columns = {"item": "text", "quantity": "number", "price": "number", "amount": "number"}
    table = {"key": ["item"], "columns": columns, "path": "lines", "fence": True, "sources": lines}
    return Draft(
        prompt=(
            f"{text}\n{totals}\n\nGive the invoice as one JSON object: lines, a list of objects with item, "
            "quantity, price and amount; net; tax; gross. Plain numbers."
        ),
        verifier="weighted",
        params={
            "parts": [
                {"kind": "table", "params": table, "reference": rows, "weight": 2},
                {
                    "kind": "accounting",
                    "params": {"relations": relations, "fence": True},
                    "reference": sums,
                    "weight": 1,
                },
            ]
        },
        reference=None,
        gold=as_json({"lines": rows, **sums}),
        bad=_bad_lines(rows, sums),
        layout=f"{layout}-{bill.style.name}",
        origin=bill.vendor,
    )


def vat_summary(rng: random.Random) -> Draft:
    bill = invoice(rng, rates=rng.choice((2, 2, 3)), size=(3, 6))
    layout = rng.choice(LAYOUTS)
    text, _ = render(bill, layout, with_rates=True)
    rows = [{"rate": rate, "net": cents(net), "tax": cents(tax)} for rate, (net, tax) in bill.by_rate.items()]
    items = [
        {"rate": item.rate, "net": cents(item.amount), "tax": cents((item.amount * item.rate + 50) // 100)}
        for item in bill.items
    ]
    included = [
        {
            **row,
            "net": round(row["net"] * 100 / (100 + row["rate"]), 2),
            "tax": round(row["net"] * row["rate"] / (100 + row["rate"]), 2),
        }
        for row in rows
    ]
    bad = {
        "rates_as_shares": as_json([{**row, "rate": row["rate"] / 100} for row in rows]),
        "dropped": as_json(rows[1:]),
        "tax_included": as_json(included),
        "net_and_tax_swapped": as_json([{"rate": r["rate"], "net": r["tax"], "tax": r["net"]} for r in rows]),
        "one_rate": as_json([{"rate": rows[-1]["rate"], "net": cents(bill.net), "tax": cents(bill.tax)}]),
    }
    if len(items) > len(rows):
        bad["not_summed"] = as_json(items)
    return Draft(
        prompt=(
            f"{text}\nPrices are without tax.\n\nSum up net and tax by tax rate: a JSON list of objects with "
            "rate (19 for 19 %), net and tax, rounded to cents once a rate. Plain numbers."
        ),
        verifier="table",
        params={
            "key": ["rate"],
            "columns": {"rate": "number", "net": "number", "tax": "number"},
            "fence": True,
            "tolerance": 0.011,
        },
        reference=rows,
        gold=as_json(rows),
        bad=bad,
        layout=f"{layout}-{bill.style.name}-{len(rows)}",
        origin=bill.vendor,
    )


def _row(item: Item) -> dict[str, Any]:
    return {
        "item": item.name,
        "quantity": item.quantity,
        "price": cents(item.price),
        "amount": cents(item.amount),
    }


def _bad_lines(rows: list[dict[str, Any]], sums: dict[str, float]) -> dict[str, str]:
    swapped = [{**row, "price": row["amount"], "amount": row["price"]} for row in rows]
    return {
        "totals_only": as_json(sums),
        "lines_only": as_json({"lines": rows}),
        "dropped": as_json({"lines": rows[:-1], **sums}),
        "price_and_amount": as_json({"lines": swapped, **sums}),
        "gross_as_net": as_json({"lines": rows, **sums, "net": sums["gross"] + 1}),
        "total_as_line": as_json(
            {
                "lines": [*rows, {"item": "Net", "quantity": 1, "price": sums["net"], "amount": sums["net"]}],
                **sums,
            }
        ),
    }
