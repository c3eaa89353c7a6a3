"""Agendas from constraints, and incoming mails sorted and read."""

import random
from datetime import date, datetime, timedelta
from itertools import pairwise

from packs.finance.figures import as_json
from packs.knowledge.common import PRODUCTS, full_name, names, spelled
from packs.seeded import Draft

TOPICS = (
    "Budget", "Hiring", "Safety", "Roadmap", "Sales", "Quality", "Training", "Office move", "Pricing",
    "Suppliers", "Website", "Trade fair",
)  # fmt: skip
CATEGORIES = ("order", "complaint", "question", "cancellation")


def agenda(rng: random.Random) -> Draft:
    """Constraints that leave exactly one order, turned into a table with start times."""
    topics = rng.sample(TOPICS, rng.choice((4, 5, 6)))
    people = names(rng, len(topics))
    minutes = [rng.choice((10, 15, 20, 30, 45)) for _ in topics]
    start = datetime(2026, 3, 2, rng.choice((8, 9, 13, 14)), rng.choice((0, 15, 30)))
    pause_after, pause = rng.randint(2, len(topics) - 1), rng.choice((10, 15, 20))
    hints = [f"{topics[0]} opens the meeting."]
    for before, after in pairwise(topics):
        hints.append(
            rng.choice((f"{after} comes right after {before}.", f"{before} is directly before {after}."))
        )
    rng.shuffle(hints)
    lines = [
        f"{topic}: {length} minutes, {who}"
        for topic, length, who in zip(topics, minutes, people, strict=True)
    ]
    rng.shuffle(lines)

    def rows(order: list[int], *, with_pause: bool = True) -> list[dict[str, str]]:
        now, table = start, []
        for place, index in enumerate(order, start=1):
            table.append({"start": f"{now:%H:%M}", "topic": topics[index], "who": people[index]})
            now += timedelta(minutes=minutes[index])
            if with_pause and place == pause_after:
                table.append({"start": f"{now:%H:%M}", "topic": "Break", "who": "all"})
                now += timedelta(minutes=pause)
        return table

    def written(table: list[dict[str, str]]) -> str:
        body = [f"| {row['start']} | {row['topic']} | {row['who']} |" for row in table]
        return "\n".join(["| start | topic | who |", "|---|---|---|", *body])

    right = list(range(len(topics)))
    swapped = [*right[:-2], right[-1], right[-2]]
    table = rows(right)
    packed = [{**row, "start": f"{start:%H:%M}"} for row in table]
    return Draft(
        prompt=(
            f"Meeting at {start:%H:%M}.\n" + "\n".join(lines) + "\n" + "\n".join(hints)
            + f"\nA break of {pause} minutes follows the item that is number {pause_after}; it does not "
            "count as an item.\n\nWrite the agenda as one Markdown table with the columns start (HH:MM), "
            "topic, who, in the order of time. The break is a row with topic Break and who all."
        ),
        verifier="table",
        params={
            "key": ["topic"],
            "columns": {"start": "text", "topic": "text", "who": "text"},
            "format": "markdown",
            "ordered": True,
        },
        reference=table,
        gold=written(table),
        bad={
            "order": written(rows(swapped)),
            "no_break": written(rows(right, with_pause=False)),
            "all_at_the_start": written(packed),
            "unordered_rows": written(table[::-1]),
            "one_left_out": written(table[:-1]),
            "prose": "\n".join(f"{row['start']} {row['topic']}" for row in table),
        },
        layout=f"agenda-{len(topics)}",
        origin=topics[0],
    )  # fmt: skip


def mail_intake(rng: random.Random) -> Draft:
    """A mail becomes one object: what it is, from whom, about what, how much, by when."""
    category = rng.choice(CATEGORIES)
    who, product, number = full_name(rng), rng.choice(PRODUCTS), f"K-{rng.randint(10_000, 99_999)}"
    sent = date(2026, 1, 8) + timedelta(days=rng.randrange(300))
    wanted = sent + timedelta(days=rng.randint(5, 40))
    pieces = rng.randint(2, 90)
    has_date, has_number = rng.random() < 0.75, rng.random() < 0.8
    due = f" by {spelled(wanted)}" if has_date else ""
    mine = f" My customer number is {number}." if has_number else ""
    text = {
        "order": f"Please send us {pieces} {product}{due}.",
        "complaint": f"{pieces} of the {product} from last week are scratched. We expect new ones{due}.",
        "question": f"Would {pieces} {product} be possible{due}? What would you charge?",
        "cancellation": f"We no longer need the {pieces} {product}. Please confirm{due}.",
    }[category]
    noise = rng.choice((
        "", f" (Our last order of {pieces + 7} pieces was fine.)", " Phone 061 555 01 23.",
        f" We met on {spelled(sent - timedelta(days=90))}.",
    ))  # fmt: skip
    urgent = rng.random() < 0.3
    alarm = " This is urgent." if urgent else ""
    mail = f"Date: {spelled(sent)}\nFrom: {who}\n\n{text}{noise}{mine}{alarm}\n{who}"
    reference = {
        "category": category,
        "customer": number if has_number else None,
        "product": product,
        "quantity": pieces,
        "due": wanted.isoformat() if has_date else None,
        "urgent": urgent,
    }
    other = next(name for name in CATEGORIES if name != category)
    bad = {
        "wrong_category": as_json({**reference, "category": other}),
        "sent_as_due": as_json({**reference, "due": sent.isoformat()}),
        "quantity_of_the_past": as_json({**reference, "quantity": pieces + 7}),
        "text_for_boolean": as_json({**reference, "urgent": str(urgent).lower()}),
        "dropped": as_json({key: value for key, value in reference.items() if key != "product"}),
        "prose": f"{who} writes about {product}.",
    }
    if not has_number:
        bad["number_invented"] = as_json({**reference, "customer": "K-10000"})
    if not has_date:
        bad["text_for_null"] = as_json({**reference, "due": "unknown"})
    return Draft(
        prompt=(
            f"{mail}\n\nOne JSON object: category ({', '.join(CATEGORIES)}), customer (number or null), "
            "product, "
            "quantity, due (YYYY-MM-DD or null), urgent (true only where the mail says so)."
        ),
        verifier="json_fields",
        params={
            "fields": {
                "category": "text",
                "customer": "text",
                "product": "text",
                "quantity": "number",
                "due": "date",
                "urgent": "boolean",
            },
            "ignore_case": True,
            "fence": True,
            "sources": {"quantity": text, "due": text, "category": text},
        },
        reference=reference,
        gold=as_json(reference),
        bad=bad,
        layout=f"intake-{category}",
        origin=product,
    )
