"""Minutes: what was decided, who does what by when, and what was only talked about."""

import random
from dataclasses import dataclass
from datetime import date, timedelta

from packs.knowledge.common import PRODUCTS, SITES, amounts, claim, dates, day_after, fact, names, spelled
from packs.seeded import Draft


@dataclass(frozen=True)
class Point:
    """``text`` is how the minutes tell it, ``short`` how a summary says it, ``keys`` what must be in it."""

    text: str
    short: str
    keys: tuple[tuple[str, ...], ...]


def _decisions(rng: random.Random) -> list[Point]:
    site, product, price = rng.choice(SITES), rng.choice(PRODUCTS), rng.randint(12, 90) * 50
    days, seats, share = rng.choice((30, 45, 60)), rng.randint(4, 40), rng.choice((5, 8, 10, 15))
    return [
        Point(
            f"After some back and forth it was agreed that the {product} line will be sold from {site}.",
            f"Sell the {product} line from {site}",
            ((product,), (site,)),
        ),
        Point(
            f"The group settled on {price} EUR as the new list price of {product}; nobody objected.",
            f"New list price of {product}: {price} EUR",
            ((product,), tuple(amounts(price))),
        ),
        Point(
            f"It was resolved to give customers {days} days to pay, starting with the next quarter.",
            f"Payment terms of {days} days from next quarter",
            ((f"{days} days", f"{days}-day"),),
        ),
        Point(
            f"The {site} office gets {seats} more desks. This was carried without a vote against.",
            f"{seats} more desks for {site}",
            ((str(seats),), (site,)),
        ),
        Point(
            f"The travel budget is cut by {share} % for everybody; the chair noted this as final.",
            f"Cut the travel budget by {share} %",
            (("travel",), (f"{share} %", f"{share}%", f"{share} percent", f"{share} per cent")),
        ),
    ]


def _ideas(rng: random.Random) -> list[tuple[str, str]]:
    """What the minutes tell about rejected or open ideas, and the words that give them away."""
    idea = rng.sample((
        ("a four-day week", "four-day week"), ("a new logo", "logo"), ("a bonus for referrals", "referral"),
        ("leasing electric vans", "vans"), ("a podcast", "podcast"), ("opening a shop in Oslo", "Oslo"),
    ), 3)  # fmt: skip
    forms = (
        "{} was raised again, and dropped for lack of money.",
        "There was a long talk about {}; no conclusion was reached.",
        "Somebody proposed {}. The proposal found no majority.",
    )
    return [
        (
            form.replace("{}", what).replace(what, what[0].upper() + what[1:])
            if form.startswith("{}")
            else form.replace("{}", what),
            key,
        )
        for form, (what, key) in zip(rng.sample(forms, 3), idea, strict=True)
    ]


def _actions(rng: random.Random, people: list[str], start: date) -> list[tuple[Point, str, date]]:
    tasks = rng.sample((
        ("send the revised offer to Northwind", ("offer", "Northwind")),
        ("book the trade fair stand", ("stand", "trade fair")),
        ("update the price list", ("price list",)),
        ("collect quotes for the new server", ("quotes", "server")),
        ("draft the works agreement", ("agreement",)),
        ("call the insurance about the water damage", ("insurance",)),
        ("prepare the onboarding plan", ("onboarding",)),
    ), 3)  # fmt: skip
    points = []
    for (task, keys), who in zip(tasks, people, strict=False):
        due = day_after(rng, start, 3, 28)
        form = rng.choice((
            "{who} will {task} by {due}.",
            "{first} volunteered to {task}; this is needed by {due}.",
            "By {due}, {first} is to {task}.",
        ))  # fmt: skip
        first = who.split()[0]
        text = form.replace("{who}", who).replace("{first}", first).replace("{task}", task)
        points.append((Point(text.replace("{due}", spelled(due)), task, (keys,)), who, due))
    return points


def minutes_summary(rng: random.Random) -> Draft:
    people = names(rng, 5)
    day = date(2026, 1, 5) + timedelta(days=rng.randrange(320))
    decided = rng.sample(_decisions(rng), rng.choice((2, 3)))
    actions = _actions(rng, people, day)[: rng.choice((2, 3))]
    ideas = _ideas(rng)[: rng.choice((2, 3))]
    body = [point.text for point in decided] + [point.text for point, _, _ in actions]
    body += [text for text, _ in ideas]
    rng.shuffle(body)
    head = f"Minutes of {spelled(day)}. Present: {', '.join(people)}."
    source = "\n".join([head, *body])
    required = [
        fact(
            f"decision {place}",
            *point.keys[0],
            section="Decisions",
            **{"with": [list(key) for key in point.keys[1:]]},
            source=point.text,
        )
        for place, point in enumerate(decided, start=1)
    ]
    days = sorted({day, *(due for _, _, due in actions)})
    required += [
        fact(
            f"action {place}", *point.keys[0], section="Actions",
            **{"with": [[who.split()[0]], dates(due)]}, source=point.text,
            without=[name.split()[0] for name in people if name != who]
            + [form for other in days if other != due for form in dates(other)],
        )
        for place, (point, who, due) in enumerate(actions, start=1)
    ]  # fmt: skip

    def summary(owners: list[str], dues: list[date], tail: str = "") -> str:
        lines = ["## Decisions", *(f"- {point.short}" for point in decided), "## Actions"]
        lines += [
            f"- {owner}: {point.short} ({spelled(due)})"
            for (point, _, _), owner, due in zip(actions, owners, dues, strict=True)
        ]
        return "\n".join(lines) + tail

    owners, dues = [who for _, who, _ in actions], [due for _, _, due in actions]
    gold = summary(owners, dues)
    later = [due + timedelta(days=31) for due in dues]
    return Draft(
        prompt=(
            f"{source}\n\nSummarise these minutes under the headings Decisions and Actions, as lists and "
            "nothing "
            "else. One line for each decision; one for each action, with who and by when. Leave out what was "
            "only discussed or rejected. Use your own words, at most 90 in all."
        ),
        verifier="rules",
        params={
            "sections": [
                {"name": "Decisions", "items": [len(decided)] * 2},
                {"name": "Actions", "items": [len(actions)] * 2},
            ],
            "nothing_else": True,
            "length": {"words": [10, 90]},
            "numbers_from": source,
            "source": source,
            "max_copied_words": 12,
        },
        reference={
            "required": required,
            "forbidden": [claim("only discussed", key) for _, key in ideas],
        },
        gold=gold,
        bad={
            "owners_swapped": summary(owners[1:] + owners[:1], dues),
            "wrong_dates": summary(owners, later),
            "all_owners": summary([", ".join(people)] * len(actions), dues),
            "all_dates": summary(owners, dues).replace(")", f", {spelled(day)})"),
            "rejected_idea_as_decision": gold.replace("## Actions", f"- {ideas[0][1]}\n## Actions"),
            "decision_missing": "\n".join(line for line in gold.split("\n") if decided[0].short not in line),
            "copied": source,
            "no_headings": gold.replace("## Decisions\n", "").replace("## Actions\n", ""),
            "actions_as_decisions": gold.replace("## Decisions", "## X")
            .replace("## Actions", "## Decisions")
            .replace("## X", "## Actions"),
            "chatty": f"Sure, here is the summary of the meeting:\n{gold}",
            "opener": "Thought process:",
        },
        layout=f"minutes-{len(decided)}-{len(actions)}",
        origin=spelled(day),
    )


def minutes_label(rng: random.Random) -> Draft:
    """One word: decision, action or discussion. Small enough for a very small model."""
    people = names(rng, 3)
    day = date(2026, 1, 5) + timedelta(days=rng.randrange(320))
    kind = rng.choice(("decision", "action", "discussion"))
    text = {
        "decision": lambda: rng.choice(_decisions(rng)).text,
        "action": lambda: rng.choice(_actions(rng, people, day))[0].text,
        "discussion": lambda: rng.choice(_ideas(rng))[0],
    }[kind]()
    others = [other for other in ("decision", "action", "discussion") if other != kind]
    return Draft(
        prompt=f"{text}\naction, decision or discussion?",
        verifier="exact",
        params={"normalize": True},
        reference=kind,
        gold=kind,
        bad={
            "wrong": others[0],
            "other": others[1],
            "all": "action, decision or discussion",
            "two": f"{kind}/{others[0]}",
            "echo": text,
        },
        layout=f"label-{kind}",
        origin=" ".join(text.split()[:3]),
    )
