"""The document loop: a filing of several pages whose first page is preliminary.

What the summary says breaks a relation: the check shows it, the audited table settles it. So the way
is to extract, check, locate, extract again and submit.
"""

import random
from datetime import date
from typing import Any

from domain.contracts.tasks import HiddenCheck, VerifierSpec
from packs.finance.extraction import MEANING
from packs.finance.figures import as_json, misprinted, write_date
from packs.finance.statements import Statement, balance_sheet, income_statement
from packs.seeded import Draft

KEYS = ("revenue", "cost_of_sales", "gross_profit", "operating_profit", "net_profit")
TOTALS = ("total_assets", "total_liabilities", "total_equity")
MAX_TURNS = 10
SYSTEM = (
    "You read a document with tools: search, read_page, read_table, check, submit. Each of your turns is "
    'one call and nothing else: {"tool": name, "arguments": {…}}. Hand in with submit, whose argument '
    "answer is an object."
)


def filing(rng: random.Random) -> Draft:
    income = income_statement(rng)
    balance = _alike(balance_sheet(rng), income)
    staff = rng.randint(12, 4_800)
    approved = write_date(_march(rng, income.year + 1), rng.choice(("iso", "dotted", "spelled")))
    wrong_key = rng.choice(("gross_profit", "cost_of_sales", "total_liabilities", "total_equity"))
    source = income if wrong_key in KEYS else balance
    preliminary = source.with_value(wrong_key, misprinted(rng, source.line(wrong_key).value))

    factor = income.unit.factor
    right: dict[str, int] = {key: income.full(key) for key in KEYS} | {
        key: balance.full(key) for key in TOTALS
    }
    right["employees"] = staff
    draft = {**right, wrong_key: preliminary.line(wrong_key).value * factor}
    relations = [
        {"name": "gross profit", "formula": "gross_profit == revenue - cost_of_sales"},
        {"name": "balance", "formula": "total_assets == total_liabilities + total_equity"},
    ]
    sources = {key: f"table 1, {income.line(key).label}" for key in KEYS}
    sources |= {key: f"table 2, {balance.line(key).label}" for key in TOTALS}
    sources["employees"] = "page 2"
    verifier = {"relations": relations, "sources": sources, "tolerance": 0.5}
    named = ", ".join(f"{key} ({MEANING[key]})" if key in MEANING else key for key in right)
    reading = (_call("search", text="preliminary"), _call("read_page", n=1), _call("check", fields=draft))
    locating = (_call("read_table", n=1 if wrong_key in KEYS else 2), _call("search", text="employees"))
    prior = {key: income.line(key).prior * factor for key in KEYS}
    prior |= {key: balance.line(key).prior * factor for key in TOTALS}
    return Draft(
        system=SYSTEM,
        prompt=(
            f"Annual report {income.year} of {income.company}: 3 pages, 2 tables (1: income statement, 2: "
            f"balance sheet). Submit the audited figures of {income.year} as one object: {named}. Plain "
            f"numbers in full {income.currency}, costs positive."
        ),
        verifier="accounting",
        params=verifier,
        reference=right,
        gold=(
            *reading,
            *locating,
            _call("check", fields=right),
            _call("submit", answer=right),
        ),
        bad={
            "preliminary": (*reading, _call("submit", answer=draft)),
            "forced_to_balance": (*reading, _call("submit", answer=_forced(draft, wrong_key))),
            "prior_year": (_call("submit", answer={**prior, "employees": staff}),),
            "never_submitted": (*reading, *locating),
            "words": ("The figures stand in tables 1 and 2.", *reading),
            "unit": (*reading, _call("submit", answer=_other_unit(right, factor))),
        },
        layout=f"{wrong_key}-{income.style.name}-{factor}",
        origin=income.company,
        environment_params={
            "pages": _pages(income, balance, preliminary, wrong_key, staff, approved),
            "tables": [_table(1, 3, income), _table(2, 3, balance)],
            "relations": relations,
            "tolerance": 0.5,
            "max_turns": MAX_TURNS,
        },
        hidden=HiddenCheck(
            verifier=VerifierSpec(
                kind="accounting",
                params={**verifier, "tolerance": 0.005, "relations": [*relations, *_more(income)]},
            ),
            reference=right,
        ),
    )


def _alike(balance: Statement, income: Statement) -> Statement:
    """The balance sheet of the same company, printed the same way."""
    return Statement(
        balance.title, income.company, income.year, income.currency, income.unit, income.style,
        income.costs_negative, balance.lines, balance.relations,
    )  # fmt: skip


def _pages(
    income: Statement, balance: Statement, preliminary: Statement, wrong_key: str, staff: int, approved: str
) -> list[str]:
    def shown(key: str) -> str:
        source = preliminary if key == wrong_key else income if key in KEYS else balance
        return f"{source.line(key).label}: {source.printed(source.line(key), source.line(key).value)}"

    unit = income.unit.said(income.currency)
    summary = "\n".join(shown(key) for key in (*KEYS, *TOTALS))
    return [
        f"{income.company}\nAnnual report {income.year}\n\nHighlights (preliminary, {unit})\n{summary}",
        f"Report of the board\n\nThe board approved these accounts on {approved}. On average the "
        f"company had {income.style.write(staff)} employees in {income.year}. The highlights on page 1 "
        "were printed before the audit; where they differ, the audited tables are right.",
        f"Accounts ({unit})\n\nTable 1: income statement. Table 2: balance sheet. Costs are shown as "
        f"{'negative' if income.costs_negative else 'positive'} figures.",
    ]


def _table(number: int, page: int, statement: Statement) -> dict[str, Any]:
    return {
        "title": f"Table {number}: {statement.title} ({statement.unit.said(statement.currency)})",
        "page": page,
        "header": ["", str(statement.year), str(statement.year - 1)],
        "rows": [
            [line.label, statement.printed(line, line.value), statement.printed(line, line.prior)]
            for line in statement.lines
        ],
    }


def _other_unit(right: dict[str, int], factor: int) -> dict[str, float]:
    """As printed where that is thousands or millions, else blown up to what it is not."""
    return {key: value / factor if factor > 1 else value * 1_000 for key, value in right.items()}


def _forced(draft: dict[str, int], wrong_key: str) -> dict[str, int]:
    """Another figure bent until the relation holds, instead of looking the wrong one up."""
    if wrong_key in ("gross_profit", "cost_of_sales"):
        return {**draft, "revenue": draft["gross_profit"] + draft["cost_of_sales"]}
    return {**draft, "total_assets": draft["total_liabilities"] + draft["total_equity"]}


def _more(income: Statement) -> list[dict[str, str]]:
    """What no solver is shown: the result is at most what was earned before interest and tax and the rest."""
    above = "revenue" if "other_income" in income.values else "operating_profit"
    bound = f"net_profit <= {above}"
    return [{"name": "order of results", "formula": bound}]


def _march(rng: random.Random, year: int) -> date:
    return date(year, 3, rng.randint(1, 28))


def _call(name: str, **arguments: Any) -> str:
    return as_json({"tool": name, "arguments": arguments})
