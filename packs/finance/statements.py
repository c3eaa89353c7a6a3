"""Income statements and balance sheets whose figures add up, and the layouts they are printed in."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from packs.finance.figures import CURRENCIES, STYLES, UNITS, Style, Unit, company

LABELS: Mapping[str, tuple[str, ...]] = {
    "revenue": ("Revenue", "Net sales", "Turnover"),
    "cost_of_sales": ("Cost of sales", "Cost of goods sold", "Cost of revenue"),
    "gross_profit": ("Gross profit", "Gross margin"),
    "personnel": ("Personnel expenses", "Staff costs"),
    "marketing": ("Selling and marketing", "Distribution costs"),
    "research": ("Research and development",),
    "administration": ("General and administrative", "Administrative expenses"),
    "depreciation": ("Depreciation and amortisation",),
    "operating_profit": ("Operating profit", "EBIT", "Operating result"),
    "other_income": ("Other income", "Gain on disposals"),
    "finance_cost": ("Finance costs", "Interest expense"),
    "profit_before_tax": ("Profit before tax", "Result before taxes"),
    "income_tax": ("Income tax", "Tax expense"),
    "net_profit": ("Net profit for the year", "Net income", "Result for the period"),
    "cash": ("Cash and cash equivalents", "Cash at bank"),
    "receivables": ("Trade receivables", "Accounts receivable"),
    "inventory": ("Inventories", "Stocks"),
    "current_assets": ("Total current assets",),
    "property": ("Property, plant and equipment", "Tangible fixed assets"),
    "intangibles": ("Intangible assets", "Goodwill and intangibles"),
    "noncurrent_assets": ("Total non-current assets", "Total fixed assets"),
    "total_assets": ("Total assets",),
    "payables": ("Trade payables", "Accounts payable"),
    "short_term_debt": ("Short-term borrowings", "Bank overdrafts"),
    "current_liabilities": ("Total current liabilities",),
    "long_term_debt": ("Long-term borrowings", "Non-current loans"),
    "provisions": ("Provisions", "Pension provisions"),
    "noncurrent_liabilities": ("Total non-current liabilities",),
    "total_liabilities": ("Total liabilities",),
    "share_capital": ("Share capital", "Issued capital"),
    "retained_earnings": ("Retained earnings", "Reserves and retained profit"),
    "total_equity": ("Total equity", "Shareholders' equity"),
    "total_equity_and_liabilities": ("Total equity and liabilities",),
}
COSTS = frozenset({
    "cost_of_sales", "personnel", "marketing", "research", "administration", "depreciation", "finance_cost",
    "income_tax",
})  # fmt: skip
LAYOUTS = ("columns", "markdown", "csv", "dotted", "prose")


@dataclass(frozen=True)
class Line:
    """Figures in printed units. Costs are positive here, however they are printed."""

    key: str
    label: str
    value: int
    prior: int


@dataclass(frozen=True)
class Relation:
    """``total`` is the sum of ``plus`` less the sum of ``minus``."""

    total: str
    plus: tuple[str, ...]
    minus: tuple[str, ...] = ()

    @property
    def keys(self) -> frozenset[str]:
        return frozenset({self.total, *self.plus, *self.minus})

    @property
    def formula(self) -> str:
        return f"{self.total} == {' + '.join(self.plus)}" + "".join(f" - {key}" for key in self.minus)

    def worked_out(self, values: Mapping[str, int]) -> int:
        return sum(values[key] for key in self.plus) - sum(values[key] for key in self.minus)


@dataclass(frozen=True)
class Statement:
    title: str
    company: str
    year: int
    currency: str
    unit: Unit
    style: Style
    costs_negative: bool
    lines: tuple[Line, ...]
    relations: tuple[Relation, ...]

    @property
    def values(self) -> dict[str, int]:
        return {line.key: line.value for line in self.lines}

    def line(self, key: str) -> Line:
        return next(line for line in self.lines if line.key == key)

    def full(self, key: str) -> int:
        """The figure in full units of the currency."""
        return self.line(key).value * self.unit.factor

    def with_value(self, key: str, value: int) -> "Statement":
        lines = (replace(line, value=value) if line.key == key else line for line in self.lines)
        return replace(self, lines=tuple(lines))

    def printed(self, line: Line, value: int) -> str:
        return self.style.write(-value if line.key in COSTS and self.costs_negative else value)


def income_statement(rng: random.Random, *, loss: float = 0.25) -> Statement:
    """``loss`` is the share of companies that lose money."""
    expenses = tuple(
        key
        for key in ("personnel", "marketing", "research", "administration", "depreciation")
        if rng.random() < 0.6
    ) or ("personnel", "administration")
    other = ("other_income",) if rng.random() < 0.5 else ()
    relations = (
        Relation("gross_profit", ("revenue",), ("cost_of_sales",)),
        Relation("operating_profit", ("gross_profit",), expenses),
        Relation("profit_before_tax", ("operating_profit", *other), ("finance_cost",)),
        Relation("net_profit", ("profit_before_tax",), ("income_tax",)),
    )
    losing = rng.random() < loss
    scale = rng.choice((900, 5_000, 42_000, 310_000))

    def year(size: float) -> dict[str, int]:
        revenue = max(200, int(scale * size * rng.uniform(0.6, 1.6)))
        cost = int(revenue * rng.uniform(0.42, 0.72))
        share = (revenue - cost) * (rng.uniform(1.05, 1.5) if losing else rng.uniform(0.35, 0.8))
        cuts = [rng.uniform(0.5, 1.5) for _ in expenses]
        values = {"revenue": revenue, "cost_of_sales": cost}
        values |= {key: int(share * cut / sum(cuts)) + 1 for key, cut in zip(expenses, cuts, strict=True)}
        values |= {key: rng.randint(2, max(3, revenue // 60)) for key in other}
        values["finance_cost"] = rng.randint(2, max(3, revenue // 50))
        for relation in relations[:3]:
            values[relation.total] = relation.worked_out(values)
        values["income_tax"] = max(0, int(values["profit_before_tax"] * rng.uniform(0.18, 0.31)))
        values["net_profit"] = relations[3].worked_out(values)
        return values

    keys = (
        "revenue", "cost_of_sales", "gross_profit", *expenses, "operating_profit", *other, "finance_cost",
        "profit_before_tax", "income_tax", "net_profit",
    )  # fmt: skip
    return _statement(rng, "Income statement", keys, year(1.0), year(0.9), relations)


def balance_sheet(rng: random.Random) -> Statement:
    relations = (
        Relation("current_assets", ("cash", "receivables", "inventory")),
        Relation("noncurrent_assets", ("property", "intangibles")),
        Relation("total_assets", ("current_assets", "noncurrent_assets")),
        Relation("current_liabilities", ("payables", "short_term_debt")),
        Relation("noncurrent_liabilities", ("long_term_debt", "provisions")),
        Relation("total_liabilities", ("current_liabilities", "noncurrent_liabilities")),
        Relation("total_equity", ("share_capital", "retained_earnings")),
        Relation("total_equity_and_liabilities", ("total_liabilities", "total_equity")),
        Relation("total_equity_and_liabilities", ("total_assets",)),
    )
    scale = rng.choice((300, 2_500, 21_000, 180_000))

    def year(size: float) -> dict[str, int]:
        assets = ("cash", "receivables", "inventory", "property", "intangibles")
        values = {key: max(5, int(scale * size * rng.uniform(0.2, 1.8))) for key in assets}
        for relation in relations[:3]:
            values[relation.total] = relation.worked_out(values)
        whole = values["total_assets"]
        for key in ("payables", "short_term_debt", "long_term_debt", "provisions"):
            values[key] = max(3, int(whole * rng.uniform(0.04, 0.24)))
        values["share_capital"] = max(2, int(whole * rng.uniform(0.02, 0.1)))
        for relation in relations[3:6]:
            values[relation.total] = relation.worked_out(values)
        values["total_equity"] = whole - values["total_liabilities"]
        values["retained_earnings"] = values["total_equity"] - values["share_capital"]
        values["total_equity_and_liabilities"] = whole
        return values

    keys = (
        "cash", "receivables", "inventory", "current_assets", "property", "intangibles", "noncurrent_assets",
        "total_assets", "payables", "short_term_debt", "current_liabilities", "long_term_debt", "provisions",
        "noncurrent_liabilities", "total_liabilities", "share_capital", "retained_earnings", "total_equity",
        "total_equity_and_liabilities",
    )  # fmt: skip
    return _statement(rng, "Balance sheet", keys, year(1.0), year(0.9), relations)


def render(statement: Statement, layout: str) -> tuple[str, dict[str, str]]:
    """The document, and for each key the line it stands in."""
    unit = statement.unit.said(statement.currency)
    head = f"{statement.company}\n{statement.title} {statement.year} ({unit})"
    years = (str(statement.year), str(statement.year - 1))
    rows = [
        (line, statement.printed(line, line.value), statement.printed(line, line.prior))
        for line in statement.lines
    ]
    if layout == "columns":
        lines = {line.key: f"{line.label:<34}{now:>14}{before:>14}" for line, now, before in rows}
        top = f"{head}\n\n{'':<34}{years[0]:>14}{years[1]:>14}"
    elif layout == "markdown":
        lines = {line.key: f"| {line.label} | {now} | {before} |" for line, now, before in rows}
        top = f"{head}\n\n| | {years[0]} | {years[1]} |\n|---|---:|---:|"
    elif layout == "csv":
        lines = {line.key: f"{line.label};{now};{before}" for line, now, before in rows}
        top = f"{head}\nitem;{years[0]};{years[1]}"
    elif layout == "dotted":
        lines = {line.key: f"{line.label} {'.' * (40 - len(line.label))} {now}" for line, now, _ in rows}
        top = head
    else:
        lines = {
            line.key: f"{line.label} for {years[0]}: {now}, after {before} in {years[1]}."
            for line, now, before in rows
        }
        top = f"{head}\n\nNotes of the board."
    return "\n".join([top, *lines.values()]), lines


def _statement(
    rng: random.Random,
    title: str,
    keys: tuple[str, ...],
    now: Mapping[str, int],
    before: Mapping[str, int],
    relations: tuple[Relation, ...],
) -> Statement:
    return Statement(
        title=title,
        company=company(rng),
        year=rng.randint(2018, 2025),
        currency=rng.choice(CURRENCIES),
        unit=rng.choice(UNITS),
        style=rng.choice(STYLES),
        costs_negative=rng.random() < 0.5,
        lines=tuple(Line(key, rng.choice(LABELS[key]), now[key], before[key]) for key in keys),
        relations=relations,
    )
