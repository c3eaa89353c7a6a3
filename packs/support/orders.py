"""Where an order is: told from its record, or sent again when it is lost."""

import random
from datetime import timedelta
from typing import Any

from packs.seeded import Draft
from packs.support.addresses import TOOLS
from packs.support.cases import (
    NO_PROMISE,
    ORDER_WRITES,
    Case,
    closed_with,
    days_written,
    draft,
    fact,
    mention,
    say,
)
from packs.support.world import (
    CARRIERS,
    Person,
    World,
    add_order,
    add_ticket,
    world,
)

CODES = "answered, replaced"


def order_status(rng: random.Random) -> Draft:
    """Where is my order: said from the record, without a promise; a lost parcel is sent again."""
    scenario = rng.choice(("placed", "shipped", "delivered", "lost"))
    place = world(rng)
    owner = place.people[0]
    lost_after = rng.choice((10, 14, 20))
    place.policy = {
        "status": (
            "Say what the record says: status and its date; for shipped parcels also carrier and tracking "
            f"number. A parcel that was shipped more than {lost_after} days ago and is not delivered counts "
            "as lost: send a replacement of every item and close as replaced. Otherwise change nothing and "
            "close as answered."
        ),
        "closing": f"Reply before closing, name the order, promise no date. Codes: {CODES}.",
    }
    sent = place.now.date() - timedelta(
        days=lost_after + rng.randint(1, 20) if scenario == "lost" else rng.randint(1, lost_after - 1)
    )
    track, carrier = f"{rng.randint(10**9, 10**10 - 1)}", rng.choice(CARRIERS)
    fields: dict[str, Any] = {"placed_on": sent - timedelta(days=1), "status": scenario}
    if scenario == "placed":
        fields |= {"placed_on": sent, "shipped_on": None, "delivered_on": None}
    else:
        fields |= {"carrier": carrier, "tracking": track, "shipped_on": sent.isoformat()}
        arrived = place.now.date() - timedelta(days=rng.randint(0, 1))
        fields["delivered_on"] = max(sent, arrived).isoformat() if scenario == "delivered" else None
    if scenario == "lost":
        fields["status"] = "shipped"
    order = add_order(rng, place, owner, **fields)
    add_order(rng, place, owner, status="delivered")
    add_order(rng, place, place.people[1], status="shipped", carrier=rng.choice(CARRIERS), tracking="1")
    first = place.orders[order]["items"][0]["name"]
    named = order if rng.random() < 0.6 else f"my {first} ordered on {place.orders[order]['placed_on']}"
    text = rng.choice(
        (f"Where is {named}?", f"Any news about {named}? I need it soon.", f"Has {named} been sent?")
    )
    ticket = add_ticket(rng, place, owner, "Where is my order?", f"{text}\n{owner.name}")
    judged = _lost if scenario == "lost" else _told
    case = judged(place, ticket, order, owner)
    return draft(
        place, case, task=f"Handle ticket {ticket} of {owner.name}. Resolution codes: {CODES}.",
        layout="status", tools=TOOLS,
    )  # fmt: skip


def _found(ticket: str, order: str, owner: Person) -> list[str]:
    return [
        say("get_ticket", ticket=ticket),
        say("find_orders", customer=owner.id),
        say("get_order", order=order),
        say("get_policy"),
    ]


def _told(place: World, ticket: str, order: str, owner: Person) -> Case:
    record = place.orders[order]
    scenario = record["status"]
    looked = _found(ticket, order, owner)
    when = record[{"placed": "placed_on", "shipped": "shipped_on", "delivered": "delivered_on"}[scenario]]
    facts = [mention("order", order), fact("date", *days_written(when))]
    text = f"Order {order} was {scenario} on {when}"
    if scenario == "shipped":
        facts += [fact("tracking number", record["tracking"]), fact("carrier", record["carrier"])]
        text += f" with {record['carrier']}, tracking number {record['tracking']}"
    else:
        facts.append(fact("status", scenario))
    other = next(key for key in place.orders if key != order)
    wrong = closed_with(ticket, f"{text.replace(order, other)}.", "answered")
    promise = closed_with(ticket, f"{text}. It arrives by tomorrow.", "answered")
    closing = closed_with(ticket, f"{text}.", "answered")
    sku = record["items"][0]["sku"]
    return Case(
        ticket=ticket,
        name=scenario,
        closure={"status": "closed", "resolution": "answered"},
        reply={"required": facts, "forbidden": [NO_PROMISE]},
        gold=[*looked, *closing],
        bad={
            "other_order": [*looked, *wrong],
            "promise": [*looked, *promise],
            "without_looking": closed_with(ticket, f"{text}.", "answered"),
            "no_facts": [*looked, *closed_with(ticket, f"Order {order} is on its way to you.", "answered")],
            "replaced": [*looked, say("send_replacement", order=order, sku=sku, reason="x"), *closing],
            "left_open": [*looked, closing[0]],
        },
        required=[{"name": "get_order", "arguments": {"order": order}, "more": True}],
        forbidden=ORDER_WRITES,
        order=[("get_order", "reply_ticket"), ("reply_ticket", "close_ticket")],
    )


def _lost(place: World, ticket: str, order: str, owner: Person) -> Case:
    looked = _found(ticket, order, owner)
    skus = [item["sku"] for item in place.orders[order]["items"]]
    sends = [say("send_replacement", order=order, sku=sku, reason="lost parcel") for sku in skus]
    text = f"The parcel of order {order} counts as lost. We are sending a replacement."
    closing = closed_with(ticket, text, "replaced")
    bad = {
        "answered_only": [
            *looked,
            *closed_with(ticket, f"Order {order} was shipped, please wait.", "answered"),
        ],
        "said_but_not_done": [*looked, *closing],
        "twice": [*looked, *sends, sends[0], *closing],
        "refunded_too": [
            *looked,
            *sends,
            say("refund_order", order=order, amount=1, reason="kind"),
            *closing,
        ],
        "no_reply": [*looked, *sends, closing[1]],
    }
    if len(sends) > 1:
        bad["one_item_only"] = [*looked, sends[0], *closing]
    return Case(
        ticket=ticket,
        name="lost",
        closure={"status": "closed", "resolution": "replaced"},
        reply={
            "required": [mention("order", order), fact("replacement", "replacement", "again", "new parcel")],
            "forbidden": [NO_PROMISE],
        },
        gold=[*looked, *sends, *closing],
        bad=bad,
        checks=[{"path": f"/orders/orders/{order}/replacements", "count": len(skus), "name": "replacements"}],
        required=[{"name": "send_replacement", "arguments": {"order": order, "sku": sku}} for sku in skus],
        forbidden=[name for name in ORDER_WRITES if name != "send_replacement"],
        order=[("get_order", "send_replacement"), ("reply_ticket", "close_ticket")],
    )
