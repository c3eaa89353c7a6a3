"""The desk itself: tickets that say the same thing, and tickets that others must see at once."""

import random

from packs.seeded import Draft
from packs.support.cases import (
    PROMISES,
    Case,
    draft,
    mention,
    say,
)
from packs.support.world import (
    add_order,
    add_ticket,
    world,
)

DUPLICATE_TOOLS = ("list_tickets", "get_ticket", "add_note", "tag_ticket", "reply_ticket", "close_ticket")
ESCALATION_TOOLS = (
    "get_ticket", "get_policy", "move_ticket", "set_priority", "add_note", "reply_ticket", "tag_ticket",
    "close_ticket", "refund_order",
)  # fmt: skip
QUEUES = ("front", "legal", "safety", "privacy", "press", "billing")
# Queue, priority, what the policy calls it, what customers write.
CASES = (
    ("legal", "urgent", "a lawyer, a court or a deadline set in law", (
        "My lawyer will file a claim on Monday if the ITEM is not taken back.",
        "You have received a court order about the ITEM. Answer within the legal deadline.")),
    ("safety", "urgent", "smoke, fire, an electric shock or an injury", (
        "Smoke came out of the ITEM and I burnt my hand.",
        "The ITEM gave my son an electric shock this morning.")),
    ("privacy", "high", "personal data: requests to see or delete it, or data in wrong hands", (
        "In the parcel of the ITEM lay the invoice of another customer, with name and address.",
        "Delete everything you know about me. I bought a ITEM once.")),
    ("press", "high", "journalists and public posts with a wide reach", (
        "I write for the Morning Herald and prepare an article about your ITEM. Who may I speak to?",
        "My video about your ITEM has two million views. I am making a second one.")),
    ("billing", "normal", "charges that the customer does not know, and invoices that are wrong", (
        "You charged me twice for the ITEM. Look at my card statement.",
        "The invoice of the ITEM shows the wrong company name. Please correct it.")),
    ("front", "normal", "everything else stays at the front", (
        "Which batteries does the ITEM need?",
        "Does the ITEM come in blue as well?")),
)  # fmt: skip


def duplicate_tickets(rng: random.Random) -> Draft:
    """Several tickets of one customer about one order: the oldest stays, the others are closed."""
    place = world(rng, people=4)
    owner, other = place.people[0], place.people[1]
    order = add_order(rng, place, owner)
    others = add_order(rng, place, other)
    item = place.orders[order]["items"][0]["name"]
    texts = [
        f"Where is my {item}? Order {order}.",
        f"{order} has not come yet. Please look into it.",
        f"I wrote before about {order}: still no {item}.",
        f"Hello? Anybody? Order {order}!",
    ]
    rng.shuffle(texts)
    same = [
        add_ticket(rng, place, owner, rng.choice(("Order", "My parcel", "Help")), text)
        for text in texts[: rng.choice((2, 3, 4))]
    ]
    strangers = [
        add_ticket(rng, place, other, "My parcel", f"Where is order {others}?"),
        add_ticket(rng, place, owner, "Another thing", f"How do I clean the {item} of order {order}?"),
    ]
    stamps = sorted(
        rng.sample(range(10, 40), len(same) + len(strangers)),
        reverse=True,
    )
    everyone = [*same, *strangers]
    rng.shuffle(everyone)
    for key, hours in zip(everyone, stamps, strict=True):
        place.tickets[key]["messages"][0]["at"] = f"{place.now.date().isoformat()}T00:{59 - hours:02}"
    by_age = sorted(same, key=lambda key: place.tickets[key]["messages"][0]["at"])
    main, doubles = by_age[0], by_age[1:]
    look = [say("list_tickets", status="open"), *(say("get_ticket", ticket=key) for key in everyone)]

    def closed(keys: list[str], keep: str) -> list[str]:
        return [
            call
            for key in keys
            for call in (
                say("add_note", ticket=key, text=f"Same as {keep}."),
                say("close_ticket", ticket=key, resolution="duplicate"),
            )
        ]

    newest = by_age[-1]
    paths = [f"/tickets/tickets/{key}" for key in doubles]
    case = Case(
        ticket=main,
        name=str(len(same)),
        closure={"status": "open", "queue": "front"},
        gold=[*look, *closed(doubles, main)],
        bad={
            "kept_the_newest": [*look, *closed([key for key in by_age if key != newest], newest)],
            "closed_all": [*look, *closed(by_age, main)],
            "closed_a_stranger": [*look, *closed([*doubles, strangers[0]], main)],
            "closed_another_matter": [*look, *closed([*doubles, strangers[1]], main)],
            "no_note": [*look, *(say("close_ticket", ticket=key, resolution="duplicate") for key in doubles)],
            "note_names_nothing": [*look, *closed(doubles, "the other one")],
            "noted_only": [*look, *(say("add_note", ticket=key, text=f"Same as {main}.") for key in doubles)],
            "wrong_code": [
                *look,
                *(call.replace('"duplicate"', '"solved"') for call in closed(doubles, main)),
            ],
        },
        checks=[
            check
            for path in paths
            for check in (
                {"path": f"{path}/status", "equals": "closed"},
                {"path": f"{path}/resolution", "equals": "duplicate"},
                {"path": f"{path}/notes/-1/text", "contains": main},
            )
        ],
        allow=[f"{path}/notes" for path in paths],
        required=[
            {"name": "close_ticket", "arguments": {"ticket": key, "resolution": "duplicate"}}
            for key in doubles
        ],
        forbidden=("reply_ticket", "tag_ticket"),
    )
    return draft(
        place, case,
        task=(
            f"{owner.name} (customer {owner.id}) wrote several times about the delivery of order {order}. "
            "Keep "
            "the oldest of these tickets open and untouched. Close the others as duplicate, each after a "
            "note "
            "that names the ticket you keep. Tickets about other matters or of other customers stay as "
            "they are."
        ),
        layout="duplicates", tools=DUPLICATE_TOOLS, turns=16,
    )  # fmt: skip


def escalation(rng: random.Random) -> Draft:
    """The right queue and priority by policy, with a note for the colleagues, and nothing promised."""
    place = world(rng)
    place.queues = QUEUES
    owner = place.people[0]
    order = add_order(rng, place, owner)
    item = place.orders[order]["items"][0]["name"]
    queue, priority, _, texts = rng.choice(CASES)
    rules = [
        f"{meaning}: queue {name}, priority {level}"
        for name, level, meaning, _ in rng.sample(CASES, len(CASES))
    ]
    place.policy = {
        "escalation": (
            "By content, the first that applies. "
            + ". ".join(rules)
            + ". Add a note that names the order. Do "
            "not answer the matter itself, admit or promise nothing: reply only that colleagues are "
            "looking at "
            "it. Leave the ticket open."
        )
    }
    text = f"{rng.choice(texts).replace('ITEM', item)} My order is {order}.\n{owner.name}"
    ticket = add_ticket(rng, place, owner, rng.choice(("Important", "Question", f"About the {item}")), text)
    looked = [say("get_ticket", ticket=ticket), say("get_policy")]
    move = [say("move_ticket", ticket=ticket, queue=queue)] if queue != "front" else []
    level = [say("set_priority", ticket=ticket, priority=priority)] if priority != "normal" else []
    note = say("add_note", ticket=ticket, text=f"Order {order}, please see the message.")
    reply = say(
        "reply_ticket", ticket=ticket, text=f"Our colleagues are looking at your message about {order}."
    )
    sorry = say(
        "reply_ticket", ticket=ticket, text="Our colleagues are looking at it. It is our fault, we will pay."
    )
    elsewhere = next(name for name, *_ in CASES if name not in (queue, "front"))
    other_level = "urgent" if priority != "urgent" else "high"
    close = say("close_ticket", ticket=ticket, resolution="answered")
    pay = say("refund_order", order=order, amount=5, reason="goodwill")
    bad = {
        "wrong_queue": [*looked, say("move_ticket", ticket=ticket, queue=elsewhere), *level, note, reply],
        "too_urgent" if priority != "urgent" else "not_urgent": [
            *looked, *move, say("set_priority", ticket=ticket, priority=other_level), note, reply,
        ],
        "no_note": [*looked, *move, *level, reply],
        "no_reply": [*looked, *move, *level, note],
        "admitted": [*looked, *move, *level, note, sorry],
        "closed": [*looked, *move, *level, note, reply, close],
        "refunded": [*looked, *move, *level, note, pay, reply],
    }  # fmt: skip
    if move:
        bad["left_at_the_front"] = [*looked, *level, note, reply]
    at = f"/tickets/tickets/{ticket}"
    case = Case(
        ticket=ticket,
        name=queue,
        closure={"status": "open", "queue": queue, "priority": priority},
        reply={
            "required": [
                mention(
                    "colleagues", "colleague", "colleagues", "team", "specialist", "department", "looking"
                )
            ],
            "forbidden": [
                {"name": "a promise", "any": [*PROMISES, "we will pay", "compensation"]},
                {"name": "an admission", "any": ["our fault", "we are liable", "our mistake"]},
            ],
        },
        gold=[*looked, *move, *level, note, reply],
        bad=bad,
        checks=[
            {"path": f"{at}/queue", "equals": queue},
            {"path": f"{at}/priority", "equals": priority},
            {"path": f"{at}/notes/-1/text", "contains": order},
        ],
        forbidden=("close_ticket", "refund_order"),
    )
    return draft(
        place, case, task=f"Ticket {ticket} of {owner.name} has just come in. Bring it to the right place.",
        layout="escalation", tools=ESCALATION_TOOLS,
    )  # fmt: skip
