"""Which relation of a statement is broken: one total is misprinted, or none is."""

import random
from typing import Any

from packs.finance.figures import as_json, misprinted
from packs.finance.statements import LAYOUTS, Statement, balance_sheet, income_statement, render
from packs.seeded import Draft

ASK = (
    "Every single item is printed correctly. At most one total or subtotal of the latest year does not "
    'follow from its items. Answer with one JSON object: {"line": its label as printed, "reported": '
    'the printed figure, "correct": what it must be}, figures as plain numbers in the printed unit, or '
    "null three times where all totals follow. Costs and taxes are positive numbers."
)
FIELDS = {"line": "text", "reported": "number", "correct": "number"}


def broken_relation(rng: random.Random) -> Draft:
    statement = rng.choice((income_statement, balance_sheet))(rng)
    layout = rng.choice(LAYOUTS)
    fine = rng.random() < 0.15
    printed, key = (statement, "") if fine else misprint(rng, statement)
    text, sources = render(printed, layout)
    reference = finding(statement, printed, key)
    return Draft(
        prompt=f"{text}\n\n{ASK}",
        verifier="json_fields",
        params={
            "fields": FIELDS,
            "ignore_case": True,
            "fence": True,
            **({"sources": dict.fromkeys(FIELDS, sources[key].strip())} if key else {}),
        },
        reference=reference,
        gold=as_json(reference),
        bad=_bad(statement, printed, key, reference),
        layout=f"{layout}-{statement.title}-{key or 'fine'}",
        origin=statement.company,
    )


def misprint(rng: random.Random, statement: Statement) -> tuple[Statement, str]:
    """The statement with one total changed, and that total's key. Only the change of this one total
    makes all relations true again: it breaks its own, and every one that it is a term of."""
    totals = list(dict.fromkeys(relation.total for relation in statement.relations))
    key = rng.choice([key for key in totals if abs(statement.line(key).value) > 9])
    return statement.with_value(key, misprinted(rng, statement.line(key).value)), key


def finding(statement: Statement, printed: Statement, key: str) -> dict[str, Any]:
    if not key:
        return dict.fromkeys(FIELDS)
    line = statement.line(key)
    return {"line": line.label, "reported": printed.line(key).value, "correct": line.value}


def _bad(statement: Statement, printed: Statement, key: str, reference: dict[str, Any]) -> dict[str, str]:
    totals = [relation.total for relation in statement.relations]
    other = statement.line(next(total for total in totals if total != key))
    blamed = {"line": other.label, "reported": other.value, "correct": other.value + 10}
    bad = {"blamed_another": as_json(blamed), "prose": "One of the totals seems to be off."}
    if not key:
        return {**bad, "text_null": as_json(dict.fromkeys(FIELDS, "null"))}
    swapped = {**reference, "reported": reference["correct"], "correct": reference["reported"]}
    item = next(relation for relation in statement.relations if relation.total == key).plus[0]
    leaf = statement.line(item)
    return {
        **bad,
        "all_fine": as_json(dict.fromkeys(FIELDS)),
        "swapped": as_json(swapped),
        "unchanged": as_json({**reference, "correct": reference["reported"]}),
        "blamed_an_item": as_json({"line": leaf.label, "reported": leaf.value, "correct": leaf.value + 1}),
    }
