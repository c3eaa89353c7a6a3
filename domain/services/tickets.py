"""A help desk.

State under ``tickets``: ``tickets`` {id: {subject, customer, status, priority, queue, tags, messages
[{from, text, at}], notes [{text, at}], resolution}}, ``queues`` [name]. Status: open, pending, closed.
"""

from collections.abc import Mapping
from typing import Any

from domain.services.base import TEXT, Json, Refused, Service, Tool, entry

PRIORITIES = ("low", "normal", "high", "urgent")
_STATUSES = ("open", "pending", "closed")


def _list_tickets(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    return [
        {"ticket": key, **{name: ticket.get(name) for name in ("subject", "status", "priority", "queue")}}
        for key, ticket in state["tickets"]["tickets"].items()
        if all(ticket.get(name) == wanted for name, wanted in arguments.items())
    ]


def _get_ticket(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    return {"ticket": arguments["ticket"], **_ticket(state, arguments)}


def _reply(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    ticket = _open(state, arguments)
    message = {"from": "agent", "text": arguments["text"], "at": state["now"]}
    ticket.setdefault("messages", []).append(message)
    return {"messages": len(ticket["messages"])}


def _note(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    ticket = _ticket(state, arguments)
    ticket.setdefault("notes", []).append({"text": arguments["text"], "at": state["now"]})
    return {"notes": len(ticket["notes"])}


def _set_priority(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    ticket = _open(state, arguments)
    ticket["priority"] = arguments["priority"]
    return {"priority": ticket["priority"]}


def _move(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    ticket, queues = _open(state, arguments), state["tickets"].get("queues", [])
    if arguments["queue"] not in queues:
        raise Refused(f"There is no queue {arguments['queue']!r}. Queues: {', '.join(queues)}.")
    ticket["queue"] = arguments["queue"]
    return {"queue": ticket["queue"]}


def _tag(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    ticket = _ticket(state, arguments)
    tags = ticket.setdefault("tags", [])
    if arguments["tag"] not in tags:
        tags.append(arguments["tag"])
    return {"tags": tags}


def _close(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    ticket = _open(state, arguments)
    ticket["status"], ticket["resolution"] = "closed", arguments["resolution"]
    return {"status": "closed"}


def _ticket(state: dict[str, Json], arguments: Mapping[str, Json]) -> dict[str, Any]:
    found: dict[str, Any] = entry(state["tickets"]["tickets"], arguments["ticket"], "ticket")
    return found


def _open(state: dict[str, Json], arguments: Mapping[str, Json]) -> dict[str, Any]:
    ticket = _ticket(state, arguments)
    if ticket["status"] == "closed":
        raise Refused(f"Ticket {arguments['ticket']} is closed.")
    return ticket


_TICKET = {"ticket": {**TEXT, "description": "the ticket's id"}}

SERVICE = Service(
    "tickets",
    (
        Tool(
            "list_tickets",
            "Tickets, all or those of one status or queue.",
            _list_tickets,
            {"status": {"enum": list(_STATUSES)}, "queue": TEXT},
            optional=frozenset({"status", "queue"}),
        ),
        Tool("get_ticket", "One ticket with its messages and notes.", _get_ticket, _TICKET),
        Tool(
            "reply_ticket",
            "Write to the customer in an open ticket.",
            _reply,
            {**_TICKET, "text": TEXT},
            changes=True,
        ),
        Tool(
            "add_note",
            "Add a note that only colleagues see.",
            _note,
            {**_TICKET, "text": TEXT},
            changes=True,
        ),
        Tool(
            "set_priority",
            "Set how urgent an open ticket is.",
            _set_priority,
            {**_TICKET, "priority": {"enum": list(PRIORITIES)}},
            changes=True,
        ),
        Tool(
            "move_ticket",
            "Move an open ticket to another queue.",
            _move,
            {**_TICKET, "queue": TEXT},
            changes=True,
        ),
        Tool("tag_ticket", "Add a tag to a ticket.", _tag, {**_TICKET, "tag": TEXT}, changes=True),
        Tool(
            "close_ticket",
            "Close an open ticket and say how it was resolved.",
            _close,
            {**_TICKET, "resolution": TEXT},
            changes=True,
        ),
    ),
)
