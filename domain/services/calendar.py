"""A calendar with people and rooms.

State under ``calendar``: ``hours`` {start, end} as "HH:MM", ``people`` [name], ``rooms`` {id: {seats}},
``events`` {id: {title, start, end, people, room, status}}; times are ISO 8601 without a zone, status is
planned or cancelled. People may be double-booked and called at night (it is for the caller to avoid);
a room cannot be in two meetings at once, and nothing can be planned in the past.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import Any

from domain.services.base import TEXT, Json, Refused, Service, Tool, entry, next_id

_STEP = timedelta(minutes=15)


def _list_events(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    return [
        {"event": key, **event}
        for key, event in _planned(state)
        if arguments.get("day") in (None, event["start"][:10])
        and arguments.get("person") in (None, *event["people"])
    ]


def _find_free(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    """Starts on a day at which all are free for so long within office hours, in steps of 15 minutes."""
    hours = state["calendar"].get("hours", {"start": "09:00", "end": "17:00"})
    _known(state, arguments["people"])
    day = _moment(arguments["day"]).date()
    start = datetime.combine(day, time.fromisoformat(hours["start"]))
    close = datetime.combine(day, time.fromisoformat(hours["end"]))
    length = timedelta(minutes=arguments["minutes"])
    taken = [
        (_moment(event["start"]), _moment(event["end"]))
        for _, event in _planned(state)
        if set(event["people"]) & set(arguments["people"])
    ]
    found = []
    while start + length <= close:
        if all(start + length <= begin or end <= start for begin, end in taken):
            found.append(_said(start))
        start += _STEP
    return found


def _create_event(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    start, end = _span(state, arguments["start"], arguments["end"])
    _known(state, arguments["people"])
    room = arguments.get("room")
    _room_is_free(state, room, start, end, people=arguments["people"])
    events = state["calendar"].setdefault("events", {})
    name = next_id("E-", events)
    events[name] = {
        "title": arguments["title"],
        "start": _said(start),
        "end": _said(end),
        "people": list(arguments["people"]),
        "room": room,
        "status": "planned",
    }
    return {"event": name}


def _move_event(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    event = _event(state, arguments)
    start, end = _span(state, arguments["start"], arguments["end"])
    _room_is_free(state, event.get("room"), start, end, people=event["people"], own=arguments["event"])
    event["start"], event["end"] = _said(start), _said(end)
    return {"start": event["start"], "end": event["end"]}


def _cancel_event(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    _event(state, arguments)["status"] = "cancelled"
    return {"status": "cancelled"}


def _planned(state: dict[str, Json]) -> Iterator[tuple[str, dict[str, Any]]]:
    events = state["calendar"].get("events", {})
    yield from ((key, event) for key, event in events.items() if event["status"] == "planned")


def _event(state: dict[str, Json], arguments: Mapping[str, Json]) -> dict[str, Any]:
    found: dict[str, Any] = entry(state["calendar"].get("events", {}), arguments["event"], "event")
    if found["status"] == "cancelled":
        raise Refused(f"Event {arguments['event']} is cancelled.")
    return found


def _known(state: dict[str, Json], people: Sequence[str]) -> None:
    missing = [name for name in people if name not in state["calendar"]["people"]]
    if missing:
        raise Refused(f"There is no {', '.join(missing)} in this calendar.")


def _span(state: dict[str, Json], start: str, end: str) -> tuple[datetime, datetime]:
    begin, finish = _moment(start), _moment(end)
    if finish <= begin:
        raise Refused("The end must be after the start.")
    if begin < _moment(state["now"]):
        raise Refused(f"It is {state['now']}: the past cannot be planned.")
    return begin, finish


def _room_is_free(
    state: dict[str, Json],
    room: str | None,
    start: datetime,
    end: datetime,
    *,
    people: Sequence[str],
    own: str = "",
) -> None:
    if room is None:
        return
    seats = entry(state["calendar"].get("rooms", {}), room, "room")["seats"]
    if len(people) > seats:
        raise Refused(f"Room {room} has {seats} seats.")
    for key, event in _planned(state):
        meets = _moment(event["start"]) < end and start < _moment(event["end"])
        if key != own and event.get("room") == room and meets:
            raise Refused(f"Room {room} is taken by {key} from {event['start']} to {event['end']}.")


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(f"{text!r} is no time. Write 2026-03-02T09:00.") from None
    if found.tzinfo is not None:
        raise Refused("Times have no zone here.")
    return found


def _said(moment: datetime) -> str:
    return moment.isoformat(timespec="minutes")


_TIMES = {"start": TEXT, "end": TEXT}
_PEOPLE = {"people": {"type": "array", "items": TEXT, "minItems": 1, "uniqueItems": True}}
_EVENT = {"event": {**TEXT, "description": "the event's id"}}

SERVICE = Service(
    "calendar",
    (
        Tool(
            "list_events",
            "Planned events, all or those of one day (2026-03-02) or person.",
            _list_events,
            {"day": TEXT, "person": TEXT},
            optional=frozenset({"day", "person"}),
        ),
        Tool(
            "find_free",
            "Starts on a day at which all these people are free for so many minutes.",
            _find_free,
            {**_PEOPLE, "day": TEXT, "minutes": {"type": "integer", "minimum": 5, "maximum": 1440}},
        ),
        Tool(
            "create_event",
            "Plan an event, in a room or without one.",
            _create_event,
            {"title": TEXT, **_TIMES, **_PEOPLE, "room": TEXT},
            optional=frozenset({"room"}),
            changes=True,
        ),
        Tool(
            "move_event",
            "Move an event to another time.",
            _move_event,
            {**_EVENT, **_TIMES},
            changes=True,
        ),
        Tool("cancel_event", "Cancel an event.", _cancel_event, _EVENT, changes=True),
    ),
)
