"""The ways a refund case ends: paid back, refused, replaced, handed to the supervisors."""

from packs.support.cases import (
    ORDER_WRITES,
    PROMISES,
    Case,
    fact,
    mention,
    money,
    say,
)
from packs.support.refund_terms import Setting
from packs.support.world import add_ticket


def asked(at: Setting, *texts: str) -> str:
    """The id of a new ticket with one of these texts."""
    name, order = at.item["name"], at.order
    named = at.rng.random() < 0.6
    text = (
        at.rng.choice(texts)
        .replace("ITEM", name)
        .replace("ORDER", f"order {order}" if named else f"the {name}")
    )
    return add_ticket(at.rng, at.place, at.owner, f"About my {name}", f"{text}\n{at.owner.name}")


def looked_up(at: Setting, ticket: str) -> list[str]:
    """What an agent reads before deciding."""
    return [
        say("get_ticket", ticket=ticket),
        say("find_orders", customer=at.owner.id),
        say("get_order", order=at.order),
        say("get_policy"),
    ]


def paid_back(
    at: Setting, ticket: str, amount: int, name: str, code: str, wrong: dict[str, int], why: str
) -> Case:
    """A refund of ``amount``; ``wrong`` are amounts that other readings of the policy would give."""
    reply = f"We have refunded {amount / 100:.2f} for order {at.order}: {why}."
    closing = [
        say("reply_ticket", ticket=ticket, text=reply),
        say("close_ticket", ticket=ticket, resolution=code),
    ]
    pay = say("refund_order", order=at.order, amount=amount / 100, reason=name)
    looked = looked_up(at, ticket)
    bad: dict[str, list[str]] = {
        f"amount_{label}": [
            *looked,
            say("refund_order", order=at.order, amount=value / 100, reason=name),
            *closing,
        ]
        for label, value in wrong.items()
        if 0 < value <= round(at.record["paid"] * 100) and value != amount
    }
    promise = say("reply_ticket", ticket=ticket, text=f"{reply} We guarantee that it arrives by tomorrow.")
    bad |= {
        "said_but_not_done": [*looked, *closing],
        "refused": [*looked, say("reply_ticket", ticket=ticket, text="We cannot refund this, sorry."),
                    say("close_ticket", ticket=ticket, resolution="refused")],
        "no_reply": [*looked, pay, closing[1]],
        "left_open": [*looked, pay, closing[0]],
        "promise": [*looked, pay, promise, closing[1]],
        "without_looking": [pay, *closing],
        "unneeded_change": [*looked, pay, say("set_priority", ticket=ticket, priority="urgent"), *closing],
        "replaced_too": [
            *looked, pay, say("send_replacement", order=at.order, sku=at.item["sku"], reason="x"), *closing,
        ],
    }  # fmt: skip
    return Case(
        ticket=ticket,
        name=name,
        closure={"status": "closed", "resolution": code},
        reply={
            "required": [mention("order", at.order), fact("amount", *money(amount))],
            "forbidden": [{"name": "a promise", "any": list(PROMISES)}],
        },
        gold=[*looked, pay, *closing],
        bad=bad,
        checks=[
            {
                "path": f"/orders/orders/{at.order}/refunded",
                "equals": amount / 100,
                "name": "refunded amount",
            },
            {"path": "/orders/refunds", "count": 1, "name": "refunds"},
        ],
        required=[{"name": "refund_order", "arguments": {"order": at.order, "amount": amount / 100}}],
        forbidden=[name for name in ORDER_WRITES if name != "refund_order"],
        order=[("get_order", "refund_order"), ("reply_ticket", "close_ticket")],
    )


def refused(at: Setting, ticket: str, name: str, why: str, reason: list[str], code: str = "refused") -> Case:
    """No refund, with the rule named in the reply."""
    looked = looked_up(at, ticket)
    reply = say("reply_ticket", ticket=ticket, text=f"We cannot refund order {at.order}: {why}")
    close = say("close_ticket", ticket=ticket, resolution=code)
    pay = say("refund_order", order=at.order, amount=at.price / 100, reason=name)
    paid = say(
        "reply_ticket", ticket=ticket, text=f"We have refunded {at.price / 100:.2f} for order {at.order}."
    )
    return Case(
        ticket=ticket,
        name=name,
        closure={"status": "closed", "resolution": code},
        reply={
            "required": [mention("order", at.order), mention("rule", *reason)],
            "forbidden": [
                {"name": "a promise", "any": list(PROMISES)},
                {"name": "a refund", "any": ["we have refunded", "we refunded", "has been refunded to you"]},
            ],
        },
        gold=[*looked, reply, close],
        bad={
            "refunded": [*looked, pay, paid, say("close_ticket", ticket=ticket, resolution="refunded")],
            "refunded_secretly": [*looked, pay, reply, close],
            "no_rule": [
                *looked,
                say("reply_ticket", ticket=ticket, text=f"Sorry, not for {at.order} this time."),
                close,
            ],
            "no_reply": [*looked, close],
            "wrong_code": [*looked, reply, say("close_ticket", ticket=ticket, resolution="replaced")],
            "left_open": [*looked, reply],
            "replaced": [
                *looked,
                say("send_replacement", order=at.order, sku=at.item["sku"], reason="kind"),
                reply,
                close,
            ],
        },
        forbidden=ORDER_WRITES,
        order=[("get_order", "close_ticket"), ("reply_ticket", "close_ticket")],
    )


def replaced(at: Setting) -> Case:
    ticket = asked(
        at, "The ITEM arrived broken. Please send me a new one for ORDER.",
        "My ITEM was damaged on arrival. I need a replacement (ORDER), not money.",
    )  # fmt: skip
    looked = looked_up(at, ticket)
    send = say("send_replacement", order=at.order, sku=at.item["sku"], reason="damaged on arrival")
    text = f"We are sending you a replacement of the {at.item['name']} of order {at.order}."
    closing = [
        say("reply_ticket", ticket=ticket, text=text),
        say("close_ticket", ticket=ticket, resolution="replaced"),
    ]
    pay = say("refund_order", order=at.order, amount=at.price / 100, reason="damaged")
    return Case(
        ticket=ticket,
        name="replacement",
        closure={"status": "closed", "resolution": "replaced"},
        reply={
            "required": [
                mention("order", at.order),
                fact("replacement", "replacement", "new one", "replace", "replaced", "replacing"),
            ],
            "forbidden": [{"name": "a promise", "any": list(PROMISES)}],
        },
        gold=[*looked, send, *closing],
        bad={
            "refunded_instead": [*looked, pay, *closing],
            "both": [*looked, send, pay, *closing],
            "twice": [*looked, send, send, *closing],
            "said_but_not_done": [*looked, *closing],
            "no_reply": [*looked, send, closing[1]],
            "wrong_code": [
                *looked,
                send,
                closing[0],
                say("close_ticket", ticket=ticket, resolution="refunded"),
            ],
        },
        checks=[{"path": f"/orders/orders/{at.order}/replacements", "count": 1, "name": "replacements"}],
        required=[{"name": "send_replacement", "arguments": {"order": at.order, "sku": at.item["sku"]}}],
        forbidden=[name for name in ORDER_WRITES if name != "send_replacement"],
        order=[("get_order", "send_replacement"), ("reply_ticket", "close_ticket")],
    )


def escalated(at: Setting) -> Case:
    ticket = asked(
        at, "I return the ITEM unopened. Please refund ORDER.", "The ITEM (ORDER) goes back, sealed."
    )
    looked = looked_up(at, ticket)
    moved = [
        say("move_ticket", ticket=ticket, queue="supervisors"),
        say("set_priority", ticket=ticket, priority="high"),
    ]
    text = f"Your request for order {at.order} is with our supervisors now. They decide about it."
    reply = say("reply_ticket", ticket=ticket, text=text)
    pay = say("refund_order", order=at.order, amount=at.price / 100, reason="return")
    half = say("refund_order", order=at.order, amount=at.terms.limit / 100, reason="return")
    close = say("close_ticket", ticket=ticket, resolution="refunded")
    at_path = f"/tickets/tickets/{ticket}"
    return Case(
        ticket=ticket,
        name="above_limit",
        closure={"status": "open", "queue": "supervisors", "priority": "high"},
        reply={
            "required": [mention("order", at.order), fact("supervisors", "supervisors", "supervisor")],
            "forbidden": [
                {"name": "a promise", "any": list(PROMISES)},
                {"name": "a refund", "any": ["we have refunded", "we refunded", "you will get a refund"]},
            ],
        },
        gold=[*looked, *moved, reply],
        bad={
            "refunded": [
                *looked,
                pay,
                say("reply_ticket", ticket=ticket, text=f"We have refunded {at.order}."),
                close,
            ],
            "up_to_the_limit": [*looked, half, *moved, reply],
            "closed": [*looked, *moved, reply, say("close_ticket", ticket=ticket, resolution="refused")],
            "no_priority": [*looked, moved[0], reply],
            "not_moved": [*looked, moved[1], reply],
            "no_reply": [*looked, *moved],
        },
        checks=[
            {"path": f"{at_path}/queue", "equals": "supervisors"},
            {"path": f"{at_path}/priority", "equals": "high"},
        ],
        required=[{"name": "move_ticket", "arguments": {"ticket": ticket, "queue": "supervisors"}}],
        forbidden=(*ORDER_WRITES, "close_ticket"),
        order=[("get_order", "move_ticket")],
    )
