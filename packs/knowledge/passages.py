"""Answers from passages: each statement cites its passage, the newest one counts, and what is not there
is said not to be there. And the other way round: which claims a text supports."""

import random
from datetime import date, timedelta
from typing import Any

from packs.finance.figures import as_json
from packs.knowledge.common import PRODUCTS, SITES, amounts, claim, fact, full_name, spelled
from packs.seeded import Draft

NOT_THERE = "The passages do not say."


def _facts(
    rng: random.Random, product: str, site: str
) -> list[tuple[str, str, str, list[str], str, list[str]]]:
    """Question, passage, short answer, its forms, and another value in passage form with its forms."""
    weight, other_weight = rng.sample(range(12, 95), 2)
    staff, other_staff = rng.sample(range(110, 950), 2)
    year, other_year = rng.sample(range(1978, 2019), 2)
    price, other_price = (value * 10 for value in rng.sample(range(110, 900), 2))
    boss, other_boss = full_name(rng), full_name(rng)
    months, other_months = rng.sample((12, 18, 24, 36, 48), 2)
    return [
        (f"How heavy is the {product}?", f"The {product} weighs {weight} kg with its case.",
         f"The {product} weighs {weight} kg", [f"{weight} kg", f"{weight} kilograms"],
         f"The {product} weighs {other_weight} kg with its case.", [f"{other_weight} kg"]),
        (f"How many people work in {site}?", f"The plant in {site} employs {staff} people.",
         f"{staff} people work in {site}", [str(staff)],
         f"The plant in {site} employs {other_staff} people.", [str(other_staff)]),
        (f"When was the {site} plant opened?", f"Production in {site} was opened in {year}.",
         f"It was opened in {year}", [str(year)],
         f"Production in {site} was opened in {other_year}.", [str(other_year)]),
        (f"What does the {product} cost?", f"The list price of the {product} is {price} EUR.",
         f"The {product} costs {price} EUR", amounts(price),
         f"The list price of the {product} is {other_price} EUR.", amounts(other_price)),
        (f"Who runs the {site} plant?", f"The plant in {site} is run by {boss}.",
         f"{boss} runs it", [boss], f"The plant in {site} is run by {other_boss}.", [other_boss]),
        (f"How long is the warranty of the {product}?",
         f"The {product} carries a warranty of {months} months.",
         f"The warranty lasts {months} months", [f"{months} months", f"{months}-month"],
         f"The {product} carries a warranty of {other_months} months.", [f"{other_months} months"]),
    ]  # fmt: skip


def cited_answer(rng: random.Random) -> Draft:
    product, site = rng.choice(PRODUCTS), rng.choice(SITES)
    facts = _facts(rng, product, site)
    rng.shuffle(facts)
    asked = facts[: rng.choice((1, 1, 2))]
    unanswerable = rng.random() < 0.15
    shown = facts[len(asked) :] if unanswerable else facts
    day = date(2024, 1, 1) + timedelta(days=rng.randrange(600))
    dated = [(day, one[1], index) for index, one in enumerate(facts) if one in shown]
    stale = not unanswerable and rng.random() < 0.5
    if stale:
        dated.append((day - timedelta(days=rng.randint(200, 900)), asked[0][4], -1))
    rng.shuffle(dated)
    passages = {
        f"P{place}": f"({spelled(when)}) {text}" for place, (when, text, _) in enumerate(dated, start=1)
    }
    ids = {index: f"P{place}" for place, (_, _, index) in enumerate(dated, start=1)}
    listed = "\n".join(f"[{key}] {text}" for key, text in passages.items())
    question = " ".join(one[0] for one in asked)
    prompt = (
        f"{listed}\n\n{question}\nAnswer from these passages only, in at most 60 words, and cite the passage "
        f"after each statement, such as [P1]. Where passages differ, the newest counts. Where none answers, "
        f"write: {NOT_THERE}"
    )
    layout = f"cited-{'none' if unanswerable else 'stale' if stale else 'plain'}-{len(asked)}"
    if unanswerable:
        key = next(iter(passages))
        return Draft(
            prompt=prompt, verifier="exact", params={"normalize": True}, reference=NOT_THERE, gold=NOT_THERE,
            bad={
                "invented": f"{asked[0][2]} [{key}].",
                "related": f"{shown[0][2]} [{ids[facts.index(shown[0])]}].",
                "hedged": f"{NOT_THERE} It may be {asked[0][3][0]}.",
                "opener": "Thought process:",
            },
            layout=layout, origin=product,
        )  # fmt: skip
    right = " ".join(f"{one[2]} [{ids[facts.index(one)]}]." for one in asked)
    first, rest = asked[0], [one for one in shown if one not in asked]
    bad = {
        "no_citation": " ".join(f"{one[2]}." for one in asked),
        "cites_everything": " ".join(f"{one[2]} {''.join(f'[{key}]' for key in passages)}." for one in asked),
        "wrong_passage": " ".join(f"{one[2]} [{ids[facts.index(rest[0])]}]." for one in asked),
        "unknown_passage": " ".join(f"{one[2]} [P99]." for one in asked),
        "copied": listed,
        "gave_up": NOT_THERE,
        "denied": " ".join(f"It is not {one[3][0]} [{ids[facts.index(one)]}]." for one in asked),
        "opener": "Let's solve this step by step.",
    }
    asked_forms = {form for one in asked for form in one[3]}
    told_too = [form for one in rest for form in one[3] if form not in asked_forms]
    forbidden = [claim("what was not asked", *told_too)] if told_too else []
    bad["everything_told"] = f"{right} {' '.join(f'{one[2]}.' for one in rest)}"
    if stale:
        bad["stale"] = right.replace(first[3][0], first[5][0]).replace(
            f"[{ids[facts.index(first)]}]", f"[{ids[-1]}]"
        )
        bad["both"] = f"{right} Or {first[5][0]} [{ids[-1]}]."
        forbidden.append(claim("what was true before", *first[5]))
    return Draft(
        prompt=prompt,
        verifier="rules",
        params={"passages": passages, "numbers_from": listed, "length": {"words": [3, 60]}},
        reference={
            "required": [fact(one[0], *one[3], cite=[ids[facts.index(one)]], source=one[1]) for one in asked],
            "forbidden": forbidden,
        },
        gold=right,
        bad=bad,
        layout=layout,
        origin=product,
    )


def claim_check(rng: random.Random) -> Draft:
    """Claims against a text: supported, contradicted or not mentioned."""
    product, site = rng.choice(PRODUCTS), rng.choice(SITES)
    facts = _facts(rng, product, site)
    rng.shuffle(facts)
    told, left_out = facts[:4], facts[4:]
    text = " ".join(one[1] for one in rng.sample(told, len(told)))
    claims: list[tuple[str, str]] = []
    for one in rng.sample(told, 3):
        wrong = rng.random() < 0.5
        claims.append((one[4] if wrong else f"{one[2]}.", "contradicted" if wrong else "supported"))
    claims.append((left_out[0][1], "not mentioned"))
    if rng.random() < 0.5:
        claims.append((f"The {product} is also sold in Japan.", "not mentioned"))
    rng.shuffle(claims)
    rows: list[dict[str, Any]] = [
        {"claim": f"C{place}", "verdict": verdict} for place, (_, verdict) in enumerate(claims, start=1)
    ]
    listed = "\n".join(f"C{place}: {said}" for place, (said, _) in enumerate(claims, start=1))
    flipped = [
        {**row, "verdict": "supported" if row["verdict"] != "supported" else "contradicted"} for row in rows
    ]
    strict = [
        {**row, "verdict": "contradicted" if row["verdict"] == "not mentioned" else row["verdict"]}
        for row in rows
    ]
    return Draft(
        prompt=(
            f"{text}\n\nClaims:\n{listed}\n\nIs each claim supported, contradicted or not mentioned? Answer "
            "with a JSON list of objects with claim (its id) and verdict."
        ),
        verifier="table",
        params={"key": ["claim"], "columns": {"claim": "text", "verdict": "text"}, "fence": True},
        reference=rows,
        gold=as_json(rows),
        bad={
            "all_supported": as_json([{**row, "verdict": "supported"} for row in rows]),
            "missing_taken_for_wrong": as_json(strict),
            "flipped": as_json(flipped),
            "one_left_out": as_json(rows[:-1]),
            "prose": "Most of these claims are supported.",
        },
        layout=f"claims-{len(claims)}",
        origin=product,
    )
