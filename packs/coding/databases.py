"""Small databases with made-up rows, and queries run on them to know what a task expects."""

import random
import sqlite3
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

NAMES = (
    "Ada", "Ben", "Cleo", "Dora", "Emil", "Fay", "Gus", "Hana", "Ivo", "Jana", "Kai", "Lea", "Max", "Nora",
    "Otto", "Pia", "Quinn", "Rosa", "Sam", "Tess",
)  # fmt: skip
CITIES = ("Oslo", "Rome", "Lima", "Cairo", "Delhi", "Quito")


@dataclass(frozen=True)
class Many:
    """The table with the rows that are counted and summed: each belongs to one row of ``one``."""

    name: str
    rows: str  # what a row is called, many of them
    number: str
    number_text: str
    day: str


@dataclass(frozen=True)
class Schema:
    """Two tables: ``one`` has a name and a group, ``many`` points at it."""

    one: str
    one_row: str
    one_rows: str
    group: str
    groups: tuple[str, ...]
    key: str
    many: Many

    def tables(self) -> str:
        many = self.many
        return (
            f"CREATE TABLE {self.one} (id INTEGER PRIMARY KEY, name TEXT, {self.group} TEXT);\n"
            f"CREATE TABLE {many.name} (id INTEGER PRIMARY KEY, {self.key} INTEGER REFERENCES "
            f"{self.one}(id), {many.number} INTEGER, {many.day} TEXT);"
        )


SCHEMAS = (
    Schema("customers", "customer", "customers", "city", CITIES, "customer_id",
           Many("orders", "orders", "amount", "amount", "ordered_on")),
    Schema("employees", "employee", "employees", "team", ("sales", "design", "legal", "care"), "employee_id",
           Many("shifts", "shifts", "hours", "hours", "worked_on")),
    Schema("books", "book", "books", "genre", ("crime", "poetry", "travel", "science"), "book_id",
           Many("loans", "loans", "days", "days", "lent_on")),
    Schema("machines", "machine", "machines", "site", ("north", "south", "harbour", "airport"), "machine_id",
           Many("repairs", "repairs", "cost", "cost", "repaired_on")),
    Schema("players", "player", "players", "club", ("Hawks", "Bears", "Foxes", "Owls"), "player_id",
           Many("matches", "matches", "points", "points", "played_on")),
    Schema("rooms", "room", "rooms", "building", ("A", "B", "C", "D"), "room_id",
           Many("bookings", "bookings", "guests", "guests", "booked_on")),
)  # fmt: skip


def script(schema: Schema, rng: random.Random, *, ones: int, many: int) -> str:
    """Tables and rows; some rows of ``one`` stay without any of ``many``, numbers repeat."""
    names = rng.sample(NAMES, ones)
    lines = [schema.tables()]
    for number, name in enumerate(names, start=1):
        lines.append(f"INSERT INTO {schema.one} VALUES ({number}, '{name}', '{rng.choice(schema.groups)}');")
    for number in range(1, many + 1):
        owner, amount = rng.randint(1, max(1, ones - 1)), rng.randint(1, 20) * 5
        day = f"{rng.choice((2023, 2024))}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
        lines.append(f"INSERT INTO {schema.many.name} VALUES ({number}, {owner}, {amount}, '{day}');")
    return "\n".join(lines)


def rows(script: str, query: str) -> list[list[Any]]:
    """What ``query`` gives on the database that ``script`` makes. Raises ``sqlite3.Error``, also for
    what would change the database."""
    return [list(row) for row in _database(script).execute(query)]


def rows_or_none(script: str, query: str) -> list[list[Any]] | None:
    """As ``rows``; None for a query that is none."""
    try:
        return rows(script, query)
    except (sqlite3.Error, sqlite3.Warning):
        return None


@lru_cache(maxsize=16)
def _database(script: str) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:", check_same_thread=False)
    database.executescript(script)
    database.execute("PRAGMA query_only = ON")
    return database
