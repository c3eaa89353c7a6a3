"""The support pack."""

from pathlib import Path

from packs.registry import PackFamily
from packs.seeded import SeededFamily, SeededPack
from packs.support import addresses, appointments, desk, orders, reading, refunds

_JUDGED = ("all", "ticket", "end_state", "trace")
_FAMILIES = (
    SeededFamily(
        PackFamily(
            "ticket_routing",
            "Ticket routing",
            "The queue that a short ticket belongs to. Simple.",
            ("exact",),
        ),
        reading.ticket_routing,
        max_tokens=16,
    ),
    SeededFamily(
        PackFamily(
            "policy_question",
            "Policy questions",
            "A customer's question answered from numbered rules, with citations.",
            ("rules",),
        ),
        reading.policy_question,
        max_tokens=160,
    ),
    SeededFamily(
        PackFamily(
            "ticket_closure",
            "Ticket closure",
            "A finished case closed as one object: status, code, tags and the reply.",
            ("ticket",),
        ),
        reading.ticket_closure,
        max_tokens=200,
    ),
    SeededFamily(
        PackFamily(
            "refund_request",
            "Refund requests",
            "Read a ticket, look the order up, refund, replace, refuse or escalate as the policy says.",
            _JUDGED,
            environment="tools",
        ),
        refunds.refund_request,
        max_tokens=200,
    ),
    SeededFamily(
        PackFamily(
            "address_change",
            "Address changes",
            "Change the address of an order that may be changed; refuse or ask where it may not.",
            _JUDGED,
            environment="tools",
        ),
        addresses.address_change,
        max_tokens=200,
    ),
    SeededFamily(
        PackFamily(
            "order_status",
            "Order status",
            "Say where an order is, from its record and without promises; send a lost parcel again.",
            _JUDGED,
            environment="tools",
        ),
        orders.order_status,
        max_tokens=200,
    ),
    SeededFamily(
        PackFamily(
            "appointment_booking",
            "Appointments",
            "Book the first time that suits technician, customer and office hours, or ask for another day.",
            _JUDGED,
            environment="tools",
        ),
        appointments.appointment_booking,
        max_tokens=200,
    ),
    SeededFamily(
        PackFamily(
            "duplicate_tickets",
            "Duplicate tickets",
            "Find the tickets that say the same thing, keep the oldest, close the others with a note.",
            _JUDGED,
            environment="tools",
        ),
        desk.duplicate_tickets,
        max_tokens=200,
    ),
    SeededFamily(
        PackFamily(
            "escalation",
            "Escalation",
            "Bring a ticket to the right queue and priority, with a note and without a promise.",
            _JUDGED,
            environment="tools",
        ),
        desk.escalation,
        max_tokens=200,
    ),
)

SEEDED = SeededPack("support", _FAMILIES)
PACK = SEEDED.pack(
    title="Support",
    description="Tickets worked on with tools under a policy, judged by end state, trace and closure.",
    folder=str(Path(__file__).parent),
)
