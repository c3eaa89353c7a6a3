"""Ratios of a statement: the right figures over the right figures."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from packs.finance.statements import LAYOUTS, Statement, balance_sheet, income_statement, render
from packs.seeded import Draft

Values = Mapping[str, int]


@dataclass(frozen=True)
class Ratio:
    """``wrong`` are the ways it is usually got wrong; ``percent`` says how it is written."""

    name: str
    meaning: str
    right: Callable[[Values], float]
    wrong: Mapping[str, Callable[[Values], float]]
    percent: bool = True


INCOME = (
    Ratio(
        "gross margin", "gross profit over revenue",
        lambda v: v["gross_profit"] / v["revenue"],
        {"cost_ratio": lambda v: v["cost_of_sales"] / v["revenue"],
         "markup": lambda v: v["gross_profit"] / v["cost_of_sales"],
         "operating": lambda v: v["operating_profit"] / v["revenue"]},
    ),
    Ratio(
        "operating margin", "operating profit over revenue",
        lambda v: v["operating_profit"] / v["revenue"],
        {"gross": lambda v: v["gross_profit"] / v["revenue"],
         "net": lambda v: v["net_profit"] / v["revenue"]},
    ),
    Ratio(
        "net margin", "net result over revenue",
        lambda v: v["net_profit"] / v["revenue"],
        {"before_tax": lambda v: (v["profit_before_tax"] + v["finance_cost"]) / v["revenue"],
         "gross": lambda v: v["gross_profit"] / v["revenue"]},
    ),
    Ratio(
        "interest cover", "operating profit over finance costs",
        lambda v: v["operating_profit"] / v["finance_cost"],
        {"gross": lambda v: v["gross_profit"] / v["finance_cost"],
         "inverted": lambda v: v["finance_cost"] / (v["operating_profit"] or 1)},
        percent=False,
    ),
)  # fmt: skip
BALANCE = (
    Ratio(
        "current ratio", "current assets over current liabilities",
        lambda v: v["current_assets"] / v["current_liabilities"],
        {"inverted": lambda v: v["current_liabilities"] / v["current_assets"],
         "all_liabilities": lambda v: v["current_assets"] / v["total_liabilities"],
         "quick": lambda v: (v["current_assets"] - v["inventory"]) / v["current_liabilities"]},
        percent=False,
    ),
    Ratio(
        "quick ratio", "current assets without inventories over current liabilities",
        lambda v: (v["current_assets"] - v["inventory"]) / v["current_liabilities"],
        {"current": lambda v: v["current_assets"] / v["current_liabilities"],
         "cash": lambda v: v["cash"] / v["current_liabilities"]},
        percent=False,
    ),
    Ratio(
        "equity ratio", "total equity over total assets",
        lambda v: v["total_equity"] / v["total_assets"],
        {"debt": lambda v: v["total_liabilities"] / v["total_assets"],
         "over_debt": lambda v: v["total_equity"] / v["total_liabilities"],
         "capital_only": lambda v: v["share_capital"] / v["total_assets"]},
    ),
    Ratio(
        "debt to equity", "total liabilities over total equity",
        lambda v: v["total_liabilities"] / v["total_equity"],
        {"inverted": lambda v: v["total_equity"] / v["total_liabilities"],
         "long_term_only": lambda v: v["noncurrent_liabilities"] / v["total_equity"]},
        percent=False,
    ),
)  # fmt: skip


def ratio(rng: random.Random) -> Draft:
    from_income = rng.random() < 0.5
    statement = income_statement(rng) if from_income else _with_equity(rng)
    wanted = rng.choice(INCOME if from_income else BALANCE)
    layout = rng.choice(LAYOUTS)
    text, _ = render(statement, layout)
    value = wanted.right(statement.values)
    form = "in per cent with one decimal and the per cent sign" if wanted.percent else "with two decimals"
    right = written(value, wanted.percent)
    bad = {name: written(way(statement.values), wanted.percent) for name, way in wanted.wrong.items()}
    prior = wanted.right({line.key: line.prior for line in statement.lines})
    bad["prior_year"] = written(prior, wanted.percent)
    bad["sign"] = written(-value, wanted.percent)
    bad["two_numbers"] = f"{right} (before: {written(prior, wanted.percent)})"
    if wanted.percent:
        bad["no_sign"] = f"{value * 100:.1f}"
    bad = {name: text for name, text in bad.items() if name == "two_numbers" or _apart(text, value, wanted)}
    return Draft(
        prompt=(
            f"{text}\n\nWhat is the {wanted.name} of the latest year ({wanted.meaning})? One number, {form}."
        ),
        verifier="numeric",
        params={"tolerance": tolerance(wanted), "decimal": "."},
        reference=value,
        gold=right,
        bad={**bad, "words": "It is healthy."},
        layout=f"{layout}-{wanted.name.replace(' ', '_')}",
        origin=statement.company,
    )


def written(value: float, percent: bool) -> str:
    return f"{value * 100:.1f} %" if percent else f"{value:.2f}"


def tolerance(wanted: Ratio) -> float:
    """Rounding, and a little of it."""
    return 0.00075 if wanted.percent else 0.0075


def _apart(text: str, value: float, wanted: Ratio) -> bool:
    """Whether a wrong answer is outside the tolerance: some mistakes make no difference here."""
    number = float(text.rstrip(" %")) / (100 if text.endswith("%") else 1)
    return abs(number - value) > 2 * tolerance(wanted)


def _with_equity(rng: random.Random) -> Statement:
    """A balance sheet whose equity is no hair's breadth, so that ratios over it mean something."""
    while True:
        statement = balance_sheet(rng)
        if statement.values["total_equity"] * 20 > statement.values["total_assets"]:
            return statement
