"""Families that a very small model can learn: a dozen words in, one number out."""

import random

from packs.finance.figures import CURRENCIES, STYLES, cents
from packs.seeded import Draft
from packs.starter.draft import VENDORS

EXACT = {"tolerance": 0.005}


def balance_check(rng: random.Random) -> Draft:
    """By how much a balance sheet of three figures does not balance."""
    liabilities, equity = rng.randint(11, 70), rng.randint(5, 29)
    gap = rng.choice((0, 0, *range(-9, 10)))
    assets = liabilities + equity + gap
    name = rng.choice(VENDORS)
    layout = rng.choice(("line", "list", "ask", "short"))
    text = {
        "line": f"{name}: assets {assets}, liabilities {liabilities}, equity {equity}. Gap?",
        "list": f"Assets {assets}\nLiabilities {liabilities}\nEquity {equity}\nAssets minus the rest?",
        "ask": f"{name} owns {assets}, owes {liabilities}, equity {equity}. What is unexplained?",
        "short": f"A {assets} L {liabilities} E {equity}. A-L-E?",
    }[layout]
    return Draft(
        prompt=text,
        verifier="numeric",
        params=dict(EXACT),
        reference=gap,
        gold=str(gap),
        bad={
            "equity_forgotten": str(assets - liabilities),
            "sign": str(-gap) if gap else str(liabilities + equity),
            "sum": str(assets + liabilities + equity),
            "words": "balanced" if gap == 0 else "not balanced",
        },
        layout=layout,
        origin=name,
    )


def roll_forward(rng: random.Random) -> Draft:
    """Opening plus additions less disposals is closing; one of the four is asked for."""
    opening, added, gone = rng.randint(12, 60), rng.randint(2, 30), rng.randint(1, 11)
    closing = opening + added - gone
    what = rng.choice(("Stock", "Loans", "Fleet", "Open items", "Headcount", "Deposits"))
    name = rng.choice(VENDORS)
    asked = rng.choice(("closing", "closing", "opening", "added", "gone"))
    given = {"opening": opening, "added": added, "gone": gone, "closing": closing}
    shown = ", ".join(f"{key} {value}" for key, value in given.items() if key != asked)
    wrong = {
        "closing": opening + added + gone, "opening": closing + added - gone,
        "added": closing - opening, "gone": opening + closing,
    }[asked]  # fmt: skip
    right = given[asked]
    return Draft(
        prompt=f"{name}, {what}: {shown}. {asked.capitalize()}?",
        verifier="numeric",
        params=dict(EXACT),
        reference=right,
        gold=str(right),
        bad={
            "operation": str(wrong if wrong != right else right + 1),
            "copied": str(next(v for k, v in given.items() if k != asked and v != right)),
            "hedged": f"about {right}",
            "words": "unknown",
        },
        layout=f"roll-{asked}",
        origin=name,
    )


def amount_reading(rng: random.Random) -> Draft:
    """One amount in local notation and a unit, to be given as a plain number."""
    style, currency, name = rng.choice(STYLES), rng.choice(CURRENCIES), rng.choice(VENDORS)
    label, factor = rng.choice((
        ("", 1), ("", 1), (f"{currency} thousand", 1_000), (f"T{currency}", 1_000),
        (f"{currency} million", 1_000_000),
    ))  # fmt: skip
    decimals = 2 if factor == 1 else 1
    value = rng.randint(1_100, 9_999) * 10 + rng.randint(1, 9)
    value = value if rng.random() < 0.5 else value * 10 + rng.randint(0, 9)
    negative = rng.random() < 0.3
    value = -value if negative else value
    shown = style.write(value, decimals)
    right = value * factor / 10**decimals
    notation = {"us": "1,234.5", "european": "1.234,5", "swiss": "1'234.5", "spaced": "1 234,5"}[style.name]
    return Draft(
        prompt=f"{name} writes numbers like {notation}. Result: {shown} {label or currency}. Plain number?",
        verifier="numeric",
        params={"tolerance": 0.005, "decimal": "."},
        reference=right,
        gold=plain(right),
        bad={
            "unit": plain(cents(value) if factor > 1 else right * 1_000),
            "sign": plain(-right),
            "separators": plain(right * 10**decimals),
            "twice": f"{plain(right)} or {plain(right * 10)}",
        },
        layout=f"{style.name}-{style.negative}-{factor}",
        origin=name,
    )


def plain(value: float) -> str:
    """Without thousands separators, and without decimals where there are none."""
    return f"{value:.0f}" if value == int(value) else f"{value:.2f}".rstrip("0")
