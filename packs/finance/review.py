"""Composite tasks: a statement is read, checked, measured and judged; each step builds on the last.

The verifier is a graph: a step whose predecessors failed earns nothing, so that a right conclusion
from wrong figures is luck that does not pay.
"""

import random
from typing import Any

from packs.finance import invoices, ledgers, relations
from packs.finance.extraction import asked_keys, extraction_of, request
from packs.finance.figures import as_json, cents, write_date
from packs.finance.statements import LAYOUTS, balance_sheet, render
from packs.seeded import Draft

_CHECK = {"fields": relations.FIELDS, "ignore_case": True}


def statement_review(rng: random.Random) -> Draft:
    """Extract → check the relations → equity ratio from the corrected figures → covenant."""
    statement = balance_sheet(rng)
    printed, key = relations.misprint(rng, statement) if rng.random() < 0.8 else (statement, "")
    layout = rng.choice(LAYOUTS)
    text, sources = render(printed, layout)
    leaves = {relation.total for relation in statement.relations}
    keys = tuple(name for name in asked_keys(rng, statement) if name not in leaves) or ("cash", "payables")
    figures = {name: statement.full(name) for name in keys}
    found = relations.finding(statement, printed, key)
    ratio = statement.values["total_equity"] / statement.values["total_assets"]
    limit = round(ratio * rng.choice((0.7, 0.9, 1.1, 1.4)), 2)
    outcome = "met" if ratio >= limit else "breached"
    gold = {"figures": figures, "check": found, "ratio": round(ratio, 4), "covenant": outcome}
    nodes: list[dict[str, Any]] = [
        {
            "name": "figures",
            "kind": "accounting",
            "params": extraction_of(statement, keys, sources),
            "reference": figures,
            "weight": 2,
        },
        {"name": "check", "kind": "json_fields", "params": _CHECK, "reference": found, "weight": 2},
        {
            "name": "ratio",
            "kind": "numeric",
            "params": {"tolerance": 0.0006},
            "reference": ratio,
            "after": ["check"],
        },
        {
            "name": "covenant",
            "kind": "exact",
            "params": {"normalize": True},
            "reference": outcome,
            "after": ["figures", "ratio"],
        },
    ]
    other = "breached" if outcome == "met" else "met"
    blamed = {"line": statement.line("cash").label, "reported": 1, "correct": 2}
    return Draft(
        prompt=(
            f"{text}\n\nReview this statement. Answer with one JSON object of four parts.\n"
            f"figures: {request(keys)}\n"
            f"check: {relations.ASK}\n"
            "ratio: equity ratio (total equity over total assets) from the right figures, as a fraction with "
            f"four decimals.\ncovenant: met where the equity ratio is at least {limit:.2f}, else breached."
        ),
        verifier="graph",
        params={"nodes": nodes, "fence": True},
        reference=None,
        gold=as_json(gold),
        bad={
            "wrong_conclusion": as_json({**gold, "covenant": other}),
            "conclusion_only": as_json({"covenant": outcome}),
            "debt_ratio": as_json({**gold, "ratio": round(1 - ratio, 4) if abs(1 - 2 * ratio) > 0.01 else 2}),
            "check_left_out": as_json({name: part for name, part in gold.items() if name != "check"}),
            "blamed_another": as_json({**gold, "check": blamed}),
            "figures_in_text": as_json({**gold, "figures": str(figures)}),
            "prose": f"The covenant is {outcome}.",
        },
        layout=f"{layout}-{key or 'fine'}-{outcome}",
        origin=statement.company,
    )


def month_end(rng: random.Random) -> Draft:
    """Closing balance from the statement → reconciliation → adjusted balances → do they agree."""
    held = ledgers.books(rng, pairs=(3, 6))
    opening = rng.randint(100_000, 5_000_000)
    bank_closing = opening + sum(one.amount for one in held.bank)
    slip = rng.choice((0, 0, rng.randint(1, 99) * 100))
    ledger_closing = opening + sum(one.amount for one in held.ledger) - slip
    adjusted_bank = bank_closing + sum(one.amount for one in held.only_ledger)
    differences = sum(ours.amount - theirs.amount for ours, theirs in held.differs)
    adjusted_ledger = ledger_closing + sum(one.amount for one in held.only_bank) + differences
    unexplained = adjusted_bank - adjusted_ledger
    outcome = "agreed" if unexplained == 0 else "not agreed"
    layout, form = rng.choice(("columns", "markdown", "csv")), rng.choice(("iso", "dotted", "spelled"))
    last = max(one.day for one in (*held.bank, *held.ledger))
    adjusted = {"bank": cents(adjusted_bank), "ledger": cents(adjusted_ledger)}
    gold = {
        "closing": cents(bank_closing),
        **held.reference,
        "adjusted": adjusted,
        "unexplained": cents(unexplained),
        "result": outcome,
    }
    nodes: list[dict[str, Any]] = [{"name": "closing", "kind": "numeric", "reference": cents(bank_closing)}]
    for part in ledgers.parts(held.reference):
        name = part["params"]["path"]
        params = {key: value for key, value in part["params"].items() if key not in ("path", "fence")}
        nodes.append({"name": name, "kind": "table", "params": params, "reference": part["reference"]})
    nodes += [
        {
            "name": "adjusted",
            "kind": "accounting",
            "reference": adjusted,
            "after": ["closing", *ledgers.PARTS],
            "weight": 2,
        },
        {"name": "unexplained", "kind": "numeric", "reference": cents(unexplained), "after": ["adjusted"]},
        {"name": "result", "kind": "exact", "reference": outcome, "after": ["unexplained"]},
    ]
    money = held.style.write
    return Draft(
        prompt=(
            f"{ledgers.render(held, layout, form)}\n\nBoth sides opened at {money(opening, 2)}. On "
            f"{write_date(last, form)} the ledger closed at {money(ledger_closing, 2)}.\n\n"
            "Entries with the same document belong together. Answer with one JSON object of plain numbers: "
            "closing (of the bank); only_bank and only_ledger, lists of objects with id and amount; "
            "amount_differs, objects with bank (id), ledger (id) and difference (bank minus ledger); "
            "adjusted, an object with bank (closing plus what only the ledger has) and ledger (its closing "
            "plus what only the bank has, plus the differences); unexplained (adjusted bank minus adjusted "
            "ledger); result, agreed where nothing is unexplained, else not agreed."
        ),
        verifier="graph",
        params={"nodes": nodes, "fence": True},
        reference=None,
        gold=as_json(gold),
        bad={
            "result_only": as_json({"result": outcome}),
            "unadjusted": as_json(
                {**gold, "adjusted": {"bank": cents(bank_closing), "ledger": cents(ledger_closing)}}
            )
            if (bank_closing, ledger_closing) != (adjusted_bank, adjusted_ledger)
            else "{}",
            "everything_matches": as_json({**gold, **{name: [] for name in ledgers.PARTS}})
            if any(held.reference.values())
            else "[]",
            "slip_hidden": as_json({**gold, "unexplained": cents(unexplained + 100), "result": "agreed"}),
            "prose": f"The accounts are {outcome}.",
        },
        layout=f"{layout}-{held.style.name}-{outcome.replace(' ', '_')}",
        origin=held.owner,
    )


def invoice_approval(rng: random.Random) -> Draft:
    """Order, delivery note, invoice → lines that deviate → what is payable → approve or hold."""
    bill = invoices.invoice(rng, size=(3, 5))
    layout = rng.choice(invoices.LAYOUTS)
    text, _ = invoices.render(bill, layout)
    ordered: list[str] = []
    delivered: list[str] = []
    wrong: list[dict[str, Any]] = []
    payable = 0
    for item in bill.items:
        reason = rng.choice(("", "", "price", "quantity"))
        price = max(1, item.price - rng.randint(10, 90)) if reason == "price" else item.price
        got = max(1, item.quantity - rng.randint(1, 9)) if reason == "quantity" else item.quantity
        reason = reason if (price, got) != (item.price, item.quantity) else ""
        ordered.append(f"{item.name}: {item.quantity} at {bill.style.write(price, 2)}")
        delivered.append(f"{item.name}: {got}")
        payable += got * price
        if reason:
            excess = item.amount - got * price
            wrong.append({"item": item.name, "reason": reason, "excess": cents(excess)})
    limit = rng.choice((1, 2, 5, 10))
    decision = "approve" if (bill.net - payable) * 100 <= limit * payable else "hold"
    gold = {"deviations": wrong, "payable": cents(payable), "decision": decision}
    columns = {"item": "text", "reason": "text", "excess": "number"}
    nodes = [
        {
            "name": "deviations",
            "kind": "table",
            "params": {"key": ["item"], "columns": columns},
            "reference": wrong,
            "weight": 2,
        },
        {"name": "payable", "kind": "numeric", "reference": cents(payable), "after": ["deviations"]},
        {"name": "decision", "kind": "exact", "reference": decision, "after": ["payable"]},
    ]
    other = "hold" if decision == "approve" else "approve"
    bad = {
        "decision_only": as_json({"decision": decision}),
        "wrong_decision": as_json({**gold, "decision": other}),
        "pays_more": as_json({**gold, "payable": cents(payable + 100)}),
        "prose": f"We should {decision} it.",
    }
    if wrong:
        trusting = {"deviations": [], "payable": cents(bill.net), "decision": "approve"}
        bad["trusts_the_invoice"] = as_json(trusting)
        flipped = [{**row, "reason": "price" if row["reason"] == "quantity" else "quantity"} for row in wrong]
        bad["reasons_swapped"] = as_json({**gold, "deviations": flipped})
    order, note = "\n".join(ordered), "\n".join(delivered)
    return Draft(
        prompt=(
            f"Order\n{order}\n\nDelivery note\n{note}\n\n{text}\nNet {bill.style.write(bill.net, 2)}\n\n"
            "Pay for what was delivered, at the price that was ordered. Answer with one JSON object of "
            "plain numbers: deviations, a list of objects with item, reason (price or quantity) and excess "
            "(billed minus payable) for each line that is billed too high; payable (net); decision: approve "
            f"where the invoice exceeds the payable amount by at most {limit} %, else hold."
        ),
        verifier="graph",
        params={"nodes": nodes, "fence": True},
        reference=None,
        gold=as_json(gold),
        bad=bad,
        layout=f"{layout}-{bill.style.name}-{decision}-{len(wrong)}",
        origin=bill.vendor,
    )
