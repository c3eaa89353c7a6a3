"""Without tools: where a ticket belongs, what the policy says, and how a case is closed on paper."""

import random
from datetime import date, timedelta

from packs.finance.figures import as_json
from packs.seeded import Draft
from packs.starter.draft import person
from packs.support.cases import (
    PROMISES,
    fact,
    mention,
    money,
)
from packs.support.world import (
    GOODS,
)

ROUTES = {
    "billing": (
        "I was charged twice", "The invoice has the wrong VAT", "My card was debited too much",
        "I need a copy of my receipt",
    ),
    "shipping": (
        "My parcel has not come", "Where is my delivery", "The tracking does not move",
        "The courier left it in the rain",
    ),
    "returns": (
        "I want to send it back", "How do I return this", "Please take it back, unopened",
        "I need a return label",
    ),
    "technical": (
        "It does not switch on", "The app crashes at start", "It makes a strange noise",
        "The screen stays black",
    ),
    "account": (
        "I cannot log in", "Please reset my password", "Change my e-mail address",
        "Delete my account",
    ),
}  # fmt: skip


def ticket_routing(rng: random.Random) -> Draft:
    """One word: the queue. Small enough for a very small model."""
    queue = rng.choice(tuple(ROUTES))
    item, name = rng.choice(GOODS)[1], person(rng)
    text = rng.choice(ROUTES[queue])
    form = rng.choice(("item", "name", "mail", "plain"))
    ticket = {
        "item": f"{text} ({item}).",
        "name": f"{text}. {name}",
        "mail": f"Hello, {text[0].lower() + text[1:]}: {item}. Thanks, {name}",
        "plain": f"About my {item}. {text}!",
    }[form]
    others = [other for other in ROUTES if other != queue]
    wrong = rng.choice(others)
    names = ", ".join(sorted(ROUTES))
    return Draft(
        prompt=f"{ticket}\nQueue: {names}?",
        verifier="exact",
        params={"normalize": True},
        reference=queue,
        gold=queue,
        bad={
            "wrong_queue": wrong,
            "all_queues": names,
            "two_queues": f"{queue} or {wrong}",
            "echo": ticket,
            "denied": f"not {queue}",
        },
        layout=f"routing-{form}",
        origin=f"{queue}-{text}",
    )


def policy_question(rng: random.Random) -> Draft:
    """A question answered from numbered rules, each statement with the rule that it comes from."""
    window, fee, free, warranty = (
        rng.choice((14, 20, 30, 60)), rng.choice((5, 8, 12, 15)), rng.choice((40, 60, 90)),
        rng.choice((12, 18, 36)),
    )  # fmt: skip
    deposit, reply_days = rng.choice((25, 35, 45)), rng.choice((2, 3, 4))
    rules = [
        f"Goods can be returned within {window} days after delivery.",
        f"Opened goods are taken back less a fee of {fee} % of the price.",
        f"Shipping is free from an order value of {free} EUR.",
        f"The warranty lasts {warranty} months and covers faults in material.",
        f"Custom-made goods need a deposit of {deposit} % and cannot be returned.",
        f"Questions by e-mail are answered within {reply_days} working days.",
    ]
    questions = [
        ("How long can I return something?", [0]), ("What do you deduct when I opened the box?", [1]),
        ("From which order value is shipping free?", [2]), ("How long is the warranty?", [3]),
        ("How much do I pay up front for a custom-made table?", [4]),
        ("How soon do you answer e-mails?", [5]),
        ("I opened the box a week ago. Until when can I return it, and what does it cost me?", [0, 1]),
        ("How long is the warranty, and from which value is shipping free?", [3, 2]),
    ]  # fmt: skip
    order = rng.sample(range(len(rules)), len(rules))
    passages = {f"R{place}": rules[index] for place, index in enumerate(order, start=1)}
    ids = {index: f"R{place}" for place, index in enumerate(order, start=1)}
    question, needed = rng.choice(questions)
    values = [
        (f"{window} days", f"{window}-day"), (f"{fee} %", f"{fee}%", f"{fee} percent", f"{fee} per cent"),
        (f"{free} EUR", f"EUR {free}", f"€{free}", f"{free} euros"),
        (f"{warranty} months", f"{warranty}-month"),
        (f"{deposit} %", f"{deposit}%", f"{deposit} percent", f"{deposit} per cent"),
        (f"{reply_days} working days",),
    ]  # fmt: skip
    required = [{**fact(f"rule {index + 1}", *values[index]), "cite": [ids[index]]} for index in needed]
    sentences = [f"{rules[index]} [{ids[index]}]" for index in needed]
    other = next(index for index in range(len(rules)) if index not in needed)
    listed = "\n".join(f"[{key}] {text}" for key, text in passages.items())
    asked_values = {value for index in needed for value in values[index]}
    told_too = [
        value for index, forms in enumerate(values) if index not in needed for value in forms
        if value not in asked_values
    ]  # fmt: skip
    everything = "".join(f"[{key}]" for key in passages)
    bare = " ".join(rules[index] for index in needed)
    return Draft(
        prompt=(
            f"{listed}\n\nCustomer: {question}\nAnswer in at most 60 words from these rules only. After each "
            "statement cite the rule that it comes from, such as [R1]."
        ),
        verifier="rules",
        params={
            "passages": passages,
            "numbers_from": listed,
            "length": {"words": [3, 60]},
            "forbidden": [
                {"name": "a promise", "any": list(PROMISES)},
                {"name": "what was not asked", "any": told_too},
            ],
        },
        reference={"required": required},
        gold=" ".join(sentences),
        bad={
            "no_citation": bare,
            "wrong_citation": " ".join(f"{rules[index]} [{ids[other]}]" for index in needed),
            "cites_everything": f"{bare} {everything}",
            "invented_number": bare.replace(values[needed[0]][0], "99 days") + f" [{ids[needed[0]]}]",
            "other_rule": f"{rules[other]} [{ids[other]}]",
            "everything_told": " ".join(
                sentences + [rules[index] for index in range(len(rules)) if index not in needed]
            ),
            "whole_policy": f"{listed} {bare}",
            "denied": " ".join(f"It is not so that it is {values[i][0]} [{ids[i]}]." for i in needed),
            "opener": "Let's solve this step by step.",
        },
        layout=f"policy-{'-'.join(str(index) for index in needed)}",
        origin=question,
    )


def ticket_closure(rng: random.Random) -> Draft:
    """The closure of a finished case as one JSON object, from the notes of the colleague who did it."""
    sku, item, price = rng.choice(GOODS)
    order, day = f"O-{rng.randint(1_000, 9_999)}", date(2026, 1, 1) + timedelta(days=rng.randrange(300))
    name = person(rng)
    outcome = rng.choice(("refunded", "replaced", "refused", "answered"))
    notes = {
        "refunded": f"Item faulty. Paid {price / 100:.2f} back to the card today.",
        "replaced": f"Item faulty, wants a new one. Sent {sku} again today, no money moved.",
        "refused": "Wants money back, but bought 90 days ago; we take back for 30 days. Said no.",
        "answered": f"Only asked whether we have the {item} in stock. We have.",
    }[outcome]
    said = {
        "refunded": f"We have refunded {price / 100:.2f} for your {item} of order {order}.",
        "replaced": f"We have sent you a new {item} for order {order}.",
        "refused": f"We cannot take back the {item} of order {order}: returns end after 30 days.",
        "answered": f"Thank you for asking, {order} aside: the {item} is in stock.",
    }
    facts = {
        "refunded": [fact("amount", *money(price))],
        "replaced": [fact("replacement", "new", "replacement", "again")],
        "refused": [mention("rule", "30 days", "30-day")],
        "answered": [fact("stock", "in stock", "available")],
    }[outcome]
    tags = {"refunded": ["faulty"], "replaced": ["faulty"], "refused": ["late"], "answered": ["question"]}[
        outcome
    ]
    other = next(code for code in said if code != outcome)

    def closure(code: str, text: str, status: str = "closed", marks: list[str] = tags) -> str:
        return as_json({"status": status, "resolution": code, "tags": marks, "reply": text})

    return Draft(
        prompt=(
            f"Case {order}, {name}, {item}, {day.isoformat()}.\nNotes: {notes}\n\nClose it as one JSON "
            "object: "
            "status (closed or open), resolution (refunded, replaced, refused or answered), tags (a list "
            "out of "
            "faulty, late, question), reply (two sentences at most to the customer, naming the order and "
            "what "
            "was decided, promising nothing)."
        ),
        verifier="ticket",
        params={
            "fence": True,
            "reply": {
                "required": [mention("order", order), *facts],
                "forbidden": [{"name": "a promise", "any": list(PROMISES)}],
                "length": {"words": [5, 70]},
            },
        },
        reference={"status": "closed", "resolution": outcome, "tags": tags},
        gold=closure(outcome, said[outcome]),
        bad={
            "wrong_code": closure(other, said[outcome]),
            "left_open": closure(outcome, said[outcome], status="open"),
            "no_reply": closure(outcome, ""),
            "says_nothing": closure(outcome, f"We have looked at order {order} and done what we could."),
            "promise": closure(outcome, f"{said[outcome]} We guarantee an answer by tomorrow."),
            "no_tags": closure(outcome, said[outcome], marks=[]),
            "prose": said[outcome],
        },
        layout=f"closure-{outcome}",
        origin=item,
    )
