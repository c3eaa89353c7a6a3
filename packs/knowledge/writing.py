"""Mails with required facts and forbidden promises, and texts rewritten to a style guide."""

import random
from datetime import date, timedelta

from packs.knowledge.common import PRODUCTS, PROMISES, amounts, claim, dates, fact, names, spelled
from packs.seeded import Draft

_SMALL_TALK = ("best regards", "kind regards", "regards", "sincerely", "best wishes", "yours")
_SWAPS = (
    ("utilise", "use"), ("in order to", "to"), ("commence", "start"), ("prior to", "before"),
    ("leverage", "use"), ("at this point in time", "now"), ("terminate", "end"), ("facilitate", "help"),
    ("a large number of", "many"), ("due to the fact that", "because"),
)  # fmt: skip


def mail_draft(rng: random.Random) -> Draft:
    """Facts that the mail must state, and inside information and promises that it must not."""
    customer, sender, rival = names(rng, 3)
    product, day = rng.choice(PRODUCTS), date(2026, 2, 1) + timedelta(days=rng.randrange(300))
    pieces, price = rng.randint(3, 60), rng.randint(20, 190) * 10
    reason = rng.choice((
        ("a part is missing at our supplier", "supplier"), ("the machine was down for three days", "machine"),
        ("customs held the shipment back", "customs"), ("many colleagues were ill", "ill"),
    ))  # fmt: skip
    purpose = rng.choice(("delay", "offer"))
    margin = rng.choice((18, 22, 27, 31))
    notes = [
        f"{'New delivery date' if purpose == 'delay' else 'Offer valid until'}: {spelled(day)}",
        f"{pieces} pieces of {product}",
    ]
    required = [
        fact("greeting", customer, customer.split()[0], customer.split()[1]),
        fact("date", *dates(day)),
        fact("quantity", str(pieces)),
        fact("product", product),
        fact("sender", sender, sender.split()[0]),
    ]
    if purpose == "delay":
        notes.append(f"Reason: {reason[0]}")
        required.append(fact("reason", reason[1]))
        text = (
            f"your {pieces} pieces of {product} will arrive later than planned, on {spelled(day)}, because "
            f"{reason[0]}. We are sorry about that."
        )
    else:
        notes.append(f"{price} EUR a piece")
        required.append(fact("price", *amounts(price)))
        text = (
            f"we offer you {pieces} pieces of {product} at {price} EUR a piece. The offer is valid until "
            f"{spelled(day)}."
        )
    notes += [f"Internal: our margin is {margin} %", f"Internal: {rival} pays less"]
    body = f"Dear {customer},\n\n{text}\n\nKind regards\n{sender}"
    forbidden = [
        claim("a promise", *PROMISES),
        claim("inside information", "margin", f"{margin} %", f"{margin}%", "internal"),
        claim(
            "another customer",
            rival,
            rival.split()[1] if rival.split()[1] not in customer + sender else rival,
        ),
    ]
    return Draft(
        prompt=(
            f"Write a mail from {sender} to {customer} about "
            f"{'a delay' if purpose == 'delay' else 'an offer'}.\n"
            + "\n".join(f"- {note}" for note in rng.sample(notes, len(notes)))
            + "\n\n20 to 90 words, with greeting and close. State every fact, keep internal notes out, "
            "promise nothing beyond the facts."
        ),
        verifier="rules",
        params={
            "length": {"words": [20, 90]},
            "numbers_from": "\n".join(notes),
            "patterns": [
                {
                    "name": "a close",
                    "pattern": "(?:regards|sincerely|best wishes|yours)",
                    "flags": ["ignore_case"],
                },
                {"name": "a placeholder", "pattern": r"\[[A-Za-z ]+\]", "present": False},
            ],
        },
        reference={"required": required, "forbidden": forbidden},
        gold=body,
        bad={
            "promise": body.replace("Kind regards", "We guarantee this.\n\nKind regards"),
            "inside_information": body.replace(
                "Kind regards", f"Our margin is only {margin} %.\n\nKind regards"
            ),
            "other_customer": body.replace("Kind regards", f"{rival} is content as well.\n\nKind regards"),
            "no_date": body.replace(spelled(day), "soon"),
            "invented_discount": body.replace("Kind regards", "You get 7.5 % off.\n\nKind regards"),
            "placeholder": body.replace(f"Dear {customer}", "Dear [Customer Name]"),
            "notes_copied": "\n".join(notes),
            "too_short": f"Dear {customer}, {spelled(day)}. {sender}",
            "opener": "Here is my answer",
        },
        layout=f"mail-{purpose}",
        origin=product,
    )


def style_rewrite(rng: random.Random) -> Draft:
    """A text rewritten by house rules: plain words, short sentences, ISO dates, every fact kept."""
    product, day = rng.choice(PRODUCTS), date(2026, 1, 10) + timedelta(days=rng.randrange(330))
    count, limit = rng.randint(12, 480), rng.choice((14, 16, 18))
    swaps = dict(rng.sample(_SWAPS, 3))
    bad_words = list(swaps)
    site = rng.choice(("Basel", "Graz", "Leeds", "Lyon"))
    sentences = {
        "utilise": "We utilise the new line", "in order to": "We work in order to save time",
        "commence": "We will commence production", "prior to": "We test every piece prior to delivery",
        "leverage": "We leverage our own tools",
        "at this point in time": "We are fully booked at this point in time",
        "terminate": "We will terminate the old contract", "facilitate": "New racks facilitate the work",
        "a large number of": "We have a large number of orders",
        "due to the fact that": "We are late due to the fact that parts were missing",
    }  # fmt: skip
    clauses = [sentences[word] for word in bad_words]
    text = (
        f"{clauses[0]} in {site} for {product}, and {clauses[1][0].lower() + clauses[1][1:]}, and by "
        f"{spelled(day)} "
        f"{count} pieces will be ready!! {clauses[2]}!"
    )

    def plain(clause: str) -> str:
        for word, better in swaps.items():
            clause = clause.replace(word, better)
        return clause

    good = (
        f"{plain(clauses[0])} in {site} for {product}. {plain(clauses[1])}. By {day.isoformat()}, {count} "
        "pieces "
        f"will be ready. {plain(clauses[2])}."
    )
    guide = "\n".join(f"- not {word!r}, but {better!r}" for word, better in swaps.items())
    return Draft(
        prompt=(
            f"Style guide:\n{guide}\n- at most {limit} words a sentence\n- no exclamation marks\n- dates as "
            f"YYYY-MM-DD\n- keep every fact, add none\n\nRewrite by the guide:\n{text}"
        ),
        verifier="rules",
        params={
            "sentence_words": limit,
            "length": {"words": [12, 80]},
            "patterns": [
                {"name": "an exclamation mark", "pattern": "!", "present": False},
                {
                    "name": "a date in words",
                    "pattern": rf"{day.day} [A-Z][a-z]+ {day.year}",
                    "present": False,
                },
                {"name": "a date as YYYY-MM-DD", "pattern": day.isoformat()},
            ],
            "numbers_from": text + day.isoformat(),
        },
        reference={
            "required": [
                fact("product", product, mention=True),
                fact("site", site, mention=True),
                fact("quantity", str(count)),
                fact("date", day.isoformat()),
                *(fact(f"plain word for {word}", better, mention=True) for word, better in swaps.items()),
            ],
            "forbidden": [claim(f"the word {word}", word) for word in bad_words],
        },
        gold=good,
        bad={
            "unchanged": text,
            "exclamation": good[:-1] + "!",
            "date_in_words": good.replace(day.isoformat(), spelled(day)),
            "long_sentence": good.replace(". ", ", and also ").replace(".", "") + ".",
            "one_word_kept": good + f" We {bad_words[0]} it.",
            "fact_lost": good.replace(f", {count} pieces", ", the pieces"),
            "fact_added": good + " Costs fall by 12.5 %.",
            "guide_copied": guide,
            "opener": "Sure!",
        },
        layout=f"style-{limit}-{bad_words[0].replace(' ', '_')}",
        origin=product,
    )
