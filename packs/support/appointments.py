"""Appointments: the first time that suits the technician, the customer and the office hours."""

import random
from datetime import date, datetime, time, timedelta
from typing import Any

from packs.seeded import Draft
from packs.starter.draft import FIRST_NAMES
from packs.support.cases import (
    CALENDAR_WRITES,
    PROMISES,
    WAITING,
    Case,
    days_written,
    draft,
    fact,
    mention,
    say,
)
from packs.support.world import (
    World,
    add_ticket,
    world,
)

TOOLS = (
    "get_ticket", "get_policy", "list_events", "find_free", "create_event", "move_event", "cancel_event",
    "reply_ticket", "tag_ticket", "close_ticket",
)  # fmt: skip
CODES = "booked, waiting"
JOBS = (("repair", 60), ("installation", 90), ("inspection", 30), ("maintenance", 45), ("advice", 30))
_STEP = timedelta(minutes=15)


def appointment_booking(rng: random.Random) -> Draft:
    place = world(rng)
    owner = place.people[0]
    technicians = rng.sample(FIRST_NAMES, 3)
    wanted, (job, minutes) = technicians[0], rng.choice(JOBS)
    day = _workday(place.now.date() + timedelta(days=rng.randint(2, 9)))
    hours = rng.choice((("08:00", "16:00"), ("09:00", "17:00"), ("10:00", "18:00")))
    after = rng.choice((None, None, "11:00", "13:00"))
    full = rng.random() < 0.2
    events = _booked_up(day, wanted, hours) if full else _busy(rng, day, technicians, hours)
    place.calendar = {"hours": {"start": hours[0], "end": hours[1]}, "people": technicians, "events": events}
    place.policy = {
        "appointments": (
            f"Visits are within office hours, {hours[0]} to {hours[1]}. "
            + ", ".join(f"{name} {length} minutes" for name, length in JOBS)
            + ". Take the earliest time that is free for the technician and suits the customer; title: the "
            "kind of visit and the ticket's id, such as repair T-100. No visit may be moved or cancelled for "
            "another. "
            f"If the day is full, book nothing, ask for another day, tag the ticket {WAITING}, leave it open."
        ),
        "closing": f"Tell the customer day, start and technician before closing. Codes: {CODES}.",
    }
    when = f"{day.isoformat()}{f', not before {after}' if after else ''}"
    text = rng.choice((
        f"Can {wanted} come for the {job} on {when}?",
        f"I need a {job}. Please send {wanted} on {when}.",
        f"{wanted} should do the {job}. {when} would suit me.",
    ))  # fmt: skip
    ticket = add_ticket(rng, place, owner, f"Appointment: {job}", f"{text}\n{owner.name}")
    start = _first_free(events, day, wanted, hours, minutes, after)
    if start is None:
        case = _day_is_full(ticket, wanted, day, hours, minutes)
    else:
        case = _booking(place, ticket, job, wanted, start, minutes)
    return draft(
        place, case, task=f"Handle ticket {ticket} of {owner.name}. Resolution codes: {CODES}.",
        layout="appointment", tools=TOOLS,
    )  # fmt: skip


def _booking(place: World, ticket: str, job: str, who: str, start: datetime, minutes: int) -> Case:
    end = start + timedelta(minutes=minutes)
    assert place.calendar is not None
    number = 1 + max((int(key[2:]) for key in place.calendar["events"]), default=0)
    title = f"{job} {ticket}"
    looked = [
        say("get_ticket", ticket=ticket),
        say("get_policy"),
        say("find_free", people=[who], day=start.date().isoformat(), minutes=minutes),
    ]

    def book(begin: datetime, *, people: list[str] | None = None, length: int = minutes) -> str:
        finish = begin + timedelta(minutes=length)
        return say("create_event", title=title, start=_said(begin), end=_said(finish), people=people or [who])

    def closing(begin: datetime) -> list[str]:
        text = f"{who} comes on {begin.date().isoformat()} at {begin:%H:%M} for the {job}."
        return [
            say("reply_ticket", ticket=ticket, text=text),
            say("close_ticket", ticket=ticket, resolution="booked"),
        ]

    late, early = start + timedelta(minutes=15), start - timedelta(minutes=15)
    path = f"/calendar/events/E-{number}"
    other = next(name for name in place.calendar["people"] if name != who)
    return Case(
        ticket=ticket,
        name="booked",
        closure={"status": "closed", "resolution": "booked"},
        reply={
            "required": [
                fact("day", *days_written(start.date().isoformat())),
                fact("start", *_clock(start)),
                mention("technician", who),
            ],
            "forbidden": [{"name": "a promise", "any": list(PROMISES)}],
        },
        gold=[*looked, book(start), *closing(start)],
        bad={
            "later": [*looked, book(late), *closing(late)],
            "earlier": [*looked, book(early), *closing(early)],
            "other_technician": [*looked, book(start, people=[other]), *closing(start)],
            "too_short": [*looked, book(start, length=minutes - 15), *closing(start)],
            "said_but_not_done": [*looked, *closing(start)],
            "booked_twice": [*looked, book(start), book(start), *closing(start)],
            "no_reply": [*looked, book(start), closing(start)[1]],
            "wrong_time_in_reply": [*looked, book(start), *closing(late)],
        },
        checks=[
            {"path": f"{path}/start", "equals": _said(start)},
            {"path": f"{path}/end", "equals": _said(end)},
            {"path": f"{path}/people", "equals": [who]},
            {"path": f"{path}/title", "contains": ticket},
        ],
        allow=[path],
        required=[{"name": "create_event"}],
        forbidden=("move_event", "cancel_event"),
        order=[("reply_ticket", "close_ticket")],
    )


def _day_is_full(ticket: str, who: str, day: date, hours: tuple[str, str], minutes: int) -> Case:
    looked = [
        say("get_ticket", ticket=ticket),
        say("get_policy"),
        say("find_free", people=[who], day=day.isoformat(), minutes=minutes),
    ]
    reply = say(
        "reply_ticket", ticket=ticket, text=f"{who} has no free time that day. Which other day suits you?"
    )
    tag = say("tag_ticket", ticket=ticket, tag=WAITING)
    begin = datetime.combine(day, time.fromisoformat(hours[1]))
    after = say(
        "create_event", title=f"visit {ticket}", start=_said(begin),
        end=_said(begin + timedelta(minutes=minutes)), people=[who],
    )  # fmt: skip
    return Case(
        ticket=ticket,
        name="full",
        closure={"status": "open", "queue": "front", "tags": [WAITING]},
        reply={
            "required": [mention("another day", "other day", "another day", "different day", "other date")],
            "forbidden": [{"name": "a promise", "any": list(PROMISES)}],
        },
        gold=[*looked, reply, tag],
        bad={
            "after_hours": [*looked, after, reply, tag],
            "cancelled_another": [*looked, say("cancel_event", event="E-1"), after, reply, tag],
            "closed": [*looked, reply, tag, say("close_ticket", ticket=ticket, resolution="waiting")],
            "no_tag": [*looked, reply],
            "no_question": [*looked, tag],
        },
        checks=[{"path": f"/tickets/tickets/{ticket}/tags", "equals": [WAITING]}],
        forbidden=(*CALENDAR_WRITES, "close_ticket"),
    )


def _workday(day: date) -> date:
    return day + timedelta(days=(0, 0, 0, 0, 0, 2, 1)[day.weekday()])


def _busy(rng: random.Random, day: date, people: list[str], hours: tuple[str, str]) -> dict[str, Any]:
    events = {}
    first = datetime.combine(day, time.fromisoformat(hours[0]))
    for number in range(1, rng.randint(4, 8)):
        # The first of them holds the technician at the very start of the day, so that it must be looked up.
        begin = first if number == 1 else first + _STEP * rng.randrange(0, 26)
        end = begin + _STEP * rng.choice((2, 3, 4, 6))
        events[f"E-{number}"] = {
            "title": rng.choice([name for name, _ in JOBS]),
            "start": _said(begin),
            "end": _said(end),
            "people": [people[0] if number == 1 else rng.choice(people)],
            "room": None,
            "status": "planned" if number == 1 or rng.random() < 0.85 else "cancelled",
        }
    return events


def _booked_up(day: date, who: str, hours: tuple[str, str]) -> dict[str, Any]:
    span = {"start": f"{day.isoformat()}T{hours[0]}", "end": f"{day.isoformat()}T{hours[1]}"}
    return {"E-1": {"title": "training", **span, "people": [who], "room": None, "status": "planned"}}


def _first_free(
    events: dict[str, Any], day: date, who: str, hours: tuple[str, str], minutes: int, after: str | None
) -> datetime | None:
    """The earliest start in steps of a quarter of an hour; None when the day is full."""
    start = datetime.combine(day, time.fromisoformat(max(hours[0], after or "")))
    close = datetime.combine(day, time.fromisoformat(hours[1]))
    taken = [
        (datetime.fromisoformat(event["start"]), datetime.fromisoformat(event["end"]))
        for event in events.values()
        if who in event["people"] and event["status"] == "planned"
    ]
    length = timedelta(minutes=minutes)
    while start + length <= close:
        if all(start + length <= begin or end <= start for begin, end in taken):
            return start
        start += _STEP
    return None


def _clock(moment: datetime) -> list[str]:
    """A time as replies write it."""
    half, hour = ("am" if moment.hour < 12 else "pm"), moment.hour % 12 or 12
    forms = [f"{moment:%H:%M}", f"{moment:%H.%M}", f"{moment.hour}:{moment:%M}"]
    forms += [f"{hour}:{moment:%M} {half}", f"{hour}:{moment:%M}{half}", f"{hour}:{moment:%M} {half[0]}.m."]
    return forms + ([f"{hour} {half}", f"{hour}{half}"] if moment.minute == 0 else [])


def _said(moment: datetime) -> str:
    return moment.isoformat(timespec="minutes")
