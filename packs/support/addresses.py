"""A new address for an order that is on its way, or is not."""

import random
from collections.abc import Sequence
from datetime import timedelta

from packs.seeded import Draft
from packs.support.cases import (
    NO_PROMISE,
    ORDER_WRITES,
    WAITING,
    Case,
    closed_with,
    draft,
    fact,
    mention,
    say,
)
from packs.support.world import (
    CITIES,
    STREETS,
    World,
    add_order,
    add_ticket,
    world,
)

TOOLS = (
    "get_ticket", "find_orders", "get_order", "get_customer", "get_policy", "change_address", "cancel_order",
    "send_replacement", "refund_order", "reply_ticket", "add_note", "move_ticket", "tag_ticket",
    "close_ticket",
)  # fmt: skip
CODES = "address_changed, refused, waiting"


def address_change(rng: random.Random) -> Draft:
    """Placed: change it. Shipped: too late. Not the customer's order: refuse. Incomplete: ask."""
    scenario = rng.choice(("placed", "placed", "shipped", "stranger", "incomplete"))
    place = world(rng)
    owner, other = place.people[0], place.people[1]
    place.policy = {
        "addresses": (
            "The address of an order can be changed until it is shipped, and only for the customer whose "
            "order it is. A complete address has street, number, postal code and city; where something is "
            f"missing, ask for it, tag the ticket {WAITING} and leave it open. Refuse in all other cases "
            "and say why."
        ),
        "closing": f"Reply before closing. Name the order. Resolution codes: {CODES}.",
    }
    holder = other if scenario == "stranger" else owner
    order = add_order(
        rng, place, holder,
        status="shipped" if scenario == "shipped" else "placed", delivered_on=None,
        placed_on=place.now.date() - timedelta(days=rng.randint(1, 6)),
        **({} if scenario == "shipped" else {"shipped_on": None}),
    )  # fmt: skip
    add_order(rng, place, owner, status=rng.choice(("placed", "delivered")))
    (city, code), street, number = rng.choice(CITIES), rng.choice(STREETS), rng.randint(1, 99)
    new = f"{street} {number}, {code} {city}"
    written = f"{street}, {city}" if scenario == "incomplete" else new
    text = rng.choice((
        f"I have moved. Please send {order} to {written}.",
        f"Could you change the address of {order}? It should go to {written}.",
        f"Wrong address, sorry! {order} has to go to: {written}",
    ))  # fmt: skip
    ticket = add_ticket(rng, place, owner, f"Address of {order}", f"{text}\n{owner.name}")
    case = {
        "placed": _changed, "shipped": _shipped, "stranger": _stranger, "incomplete": _incomplete,
    }[scenario](place, ticket, order, new)  # fmt: skip
    return draft(
        place, case, task=f"Handle ticket {ticket} of {owner.name}. Resolution codes: {CODES}.",
        layout="address", tools=TOOLS,
    )  # fmt: skip


def _looked(ticket: str, order: str) -> list[str]:
    return [say("get_ticket", ticket=ticket), say("get_order", order=order), say("get_policy")]


def _changed(place: World, ticket: str, order: str, new: str) -> Case:
    looked = _looked(ticket, order)
    change = say("change_address", order=order, address=new)
    closing = closed_with(ticket, f"Order {order} now goes to {new}.", "address_changed")
    elsewhere = next(key for key in place.orders if key != order)
    return Case(
        ticket=ticket,
        name="placed",
        closure={"status": "closed", "resolution": "address_changed"},
        reply={"required": [mention("order", order), fact("address", new)], "forbidden": [NO_PROMISE]},
        gold=[*looked, change, *closing],
        bad={
            "said_but_not_done": [*looked, *closing],
            "shortened": [*looked, say("change_address", order=order, address=new.split(",")[0]), *closing],
            "other_order": [*looked, say("change_address", order=elsewhere, address=new), *closing],
            "cancelled": [*looked, change, say("cancel_order", order=order, reason="new address"), *closing],
            "no_reply": [*looked, change, closing[1]],
            "refused": [*looked, *closed_with(ticket, f"We cannot change {order}.", "refused")],
        },
        checks=[{"path": f"/orders/orders/{order}/address", "equals": new}],
        required=[{"name": "change_address", "arguments": {"order": order, "address": new}}],
        forbidden=[name for name in ORDER_WRITES if name != "change_address"],
        order=[("get_order", "change_address"), ("reply_ticket", "close_ticket")],
    )


def _shipped(place: World, ticket: str, order: str, new: str) -> Case:
    return _refused(ticket, order, "shipped", "it was already shipped.", ["shipped", "on its way"], new)


def _stranger(place: World, ticket: str, order: str, new: str) -> Case:
    why = "this order belongs to another customer."
    return _refused(
        ticket, order, "stranger", why,
        ["another customer", "someone else", "not your order", "different customer", "other customer"], new,
    )  # fmt: skip


def _refused(ticket: str, order: str, name: str, why: str, reasons: Sequence[str], new: str) -> Case:
    looked = _looked(ticket, order)
    closing = closed_with(ticket, f"We cannot change the address of {order}: {why}", "refused")
    change = say("change_address", order=order, address=new)
    return Case(
        ticket=ticket,
        name=name,
        closure={"status": "closed", "resolution": "refused"},
        reply={
            "required": [mention("order", order), mention("reason", *reasons)],
            "forbidden": [NO_PROMISE, {"name": "a change", "any": ["now goes to", "have changed the"]}],
        },
        gold=[*looked, *closing],
        bad={
            "changed": [
                *looked,
                change,
                *closed_with(ticket, f"{order} now goes to {new}.", "address_changed"),
            ],
            "tried_and_refused": [*looked, change, *closing],
            "no_reason": [*looked, *closed_with(ticket, f"Sorry, we cannot do that for {order}.", "refused")],
            "refunded": [*looked, say("refund_order", order=order, amount=1, reason="kind"), *closing],
            "left_open": [*looked, closing[0]],
        },
        forbidden=ORDER_WRITES,
        order=[("get_order", "close_ticket"), ("reply_ticket", "close_ticket")],
    )


def _incomplete(place: World, ticket: str, order: str, new: str) -> Case:
    looked = _looked(ticket, order)
    text = f"To change order {order} we need the house number and the postal code as well."
    reply, tag = say("reply_ticket", ticket=ticket, text=text), say("tag_ticket", ticket=ticket, tag=WAITING)
    change = say("change_address", order=order, address=new)
    return Case(
        ticket=ticket,
        name="incomplete",
        closure={"status": "open", "queue": "front", "tags": [WAITING]},
        reply={
            "required": [
                mention("order", order),
                mention("what is missing", "postal code", "house number", "zip", "postcode", "full address"),
            ],
            "forbidden": [NO_PROMISE],
        },
        gold=[*looked, reply, tag],
        bad={
            "invented": [
                *looked,
                change,
                *closed_with(ticket, f"{order} now goes to {new}.", "address_changed"),
            ],
            "closed": [*looked, reply, tag, say("close_ticket", ticket=ticket, resolution="waiting")],
            "no_tag": [*looked, reply],
            "no_question": [*looked, tag],
        },
        checks=[{"path": f"/tickets/tickets/{ticket}/tags", "equals": [WAITING]}],
        forbidden=(*ORDER_WRITES, "close_ticket"),
        order=[("get_order", "reply_ticket")],
    )
