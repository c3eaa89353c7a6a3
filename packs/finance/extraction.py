"""Reading statements: which figure is asked for, in which unit, with which sign."""

import random
from typing import Any

from packs.finance.figures import as_json
from packs.finance.statements import COSTS, LAYOUTS, Statement, balance_sheet, income_statement, render
from packs.seeded import Draft

MEANING = {
    "cost_of_sales": "the direct cost of what was sold",
    "operating_profit": "before interest and tax",
    "profit_before_tax": "after interest, before tax",
    "net_profit": "after tax; a loss is negative",
    "noncurrent_assets": "the total of fixed assets",
}


def income_statement_extraction(rng: random.Random) -> Draft:
    return _draft(rng, income_statement(rng))


def balance_sheet_extraction(rng: random.Random) -> Draft:
    return _draft(rng, balance_sheet(rng))


def extraction_of(statement: Statement, keys: tuple[str, ...], sources: dict[str, str]) -> dict[str, Any]:
    """Parameters of the verifier ``accounting`` for these figures in full units."""
    relations = [
        {"name": relation.total, "formula": relation.formula}
        for relation in statement.relations
        if relation.keys <= set(keys)
    ]
    return {"relations": relations, "sources": {key: sources[key].strip() for key in keys}, "tolerance": 0.5}


def asked_keys(rng: random.Random, statement: Statement) -> tuple[str, ...]:
    """The figures of one relation and one or two others, in the order of the statement."""
    relation = rng.choice([relation for relation in statement.relations if len(relation.keys) >= 3])
    others = [line.key for line in statement.lines if line.key not in relation.keys]
    keys = {*relation.keys, *rng.sample(others, rng.choice((1, 2)))}
    return tuple(line.key for line in statement.lines if line.key in keys)


def request(keys: tuple[str, ...]) -> str:
    named = ", ".join(f"{key} ({MEANING[key]})" if key in MEANING else key for key in keys)
    return (
        f"Give these figures of the latest year as one JSON object of plain numbers: {named}. "
        "Full units of the currency, not thousands or millions; costs and taxes as positive numbers."
    )


def _draft(rng: random.Random, statement: Statement) -> Draft:
    layout = rng.choice(LAYOUTS)
    text, sources = render(statement, layout)
    keys = asked_keys(rng, statement)
    reference = {key: statement.full(key) for key in keys}
    return Draft(
        prompt=f"{text}\n\n{request(keys)}",
        verifier="accounting",
        params={**extraction_of(statement, keys, sources), "fence": True},
        reference=reference,
        gold=as_json(reference),
        bad=_bad(statement, keys, reference),
        layout=f"{layout}-{statement.style.name}-{statement.unit.factor}",
        origin=statement.company,
    )


def _bad(statement: Statement, keys: tuple[str, ...], reference: dict[str, int]) -> dict[str, str]:
    first = keys[0]
    prior = {key: statement.line(key).prior * statement.unit.factor for key in keys}
    bad = {
        "dropped": as_json({key: value for key, value in reference.items() if key != first}),
        "prose": ", ".join(f"{key}: {value}" for key, value in reference.items()),
    }
    if prior != reference:
        bad["prior_year"] = as_json(prior)
    if statement.unit.factor > 1:
        bad["unit"] = as_json({key: statement.line(key).value for key in keys})
    else:
        bad["thousands"] = as_json({key: value * 1_000 for key, value in reference.items()})
    costs = [key for key in keys if key in COSTS and reference[key]]
    if costs:
        bad["cost_sign"] = as_json({**reference, costs[0]: -reference[costs[0]]})
    losses = [key for key in keys if reference[key] < 0]
    if losses:
        bad["loss_sign"] = as_json({**reference, losses[0]: -reference[losses[0]]})
    if len(set(reference.values())) > 1:
        shifted = [*reference.values()][1:] + [*reference.values()][:1]
        bad["shifted_rows"] = as_json(dict(zip(keys, shifted, strict=True)))
    grouped = [
        key for key in keys if statement.style.thousands == "." and abs(statement.line(key).value) >= 1_000
    ]
    if grouped:
        bad["separators"] = as_json({**reference, grouped[0]: reference[grouped[0]] / 1_000})
    return bad
