"""Questions over two tables, each with the query that answers it and one that does not quite."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from packs.coding.databases import Schema


@dataclass(frozen=True)
class Question:
    """``ordered``: the order of rows was asked for, and ties are broken."""

    text: str
    query: str
    wrong: tuple[str, ...]
    ordered: bool = False


def question(schema: Schema, rng: random.Random) -> tuple[str, Question]:
    layout = rng.choice(tuple(_QUESTIONS))
    return layout, _QUESTIONS[layout](schema, rng)


def _totals(s: Schema, rng: random.Random) -> Question:
    m, least = s.many, rng.randint(4, 24) * 5
    query = (
        f"SELECT o.name, SUM(m.{m.number}) FROM {s.one} o JOIN {m.name} m ON m.{s.key} = o.id "
        f"GROUP BY o.id HAVING SUM(m.{m.number}) >= {least}"
    )
    return Question(
        f"For each {s.one_row} whose {m.rows} have a total {m.number_text} of at least {least}: the name and "
        "that total.",
        query,
        (query.replace("HAVING SUM(", "HAVING MAX("), query.replace(">=", "<")),
    )


def _without(s: Schema, rng: random.Random) -> Question:
    m, year = s.many, rng.choice((2023, 2024))
    query = (
        f"SELECT name, {s.group} FROM {s.one} WHERE id NOT IN (SELECT {s.key} FROM {m.name} "
        f"WHERE {m.day} LIKE '{year}-%')"
    )
    return Question(
        f"Name and {s.group} of the {s.one_rows} that have no {m.rows} in {year} ({m.day}).",
        query,
        (query.replace("NOT IN", "IN"), query.replace(f" WHERE {m.day} LIKE '{year}-%'", "")),
    )


def _count_groups(s: Schema, rng: random.Random) -> Question:
    m = s.many
    query = (
        f"SELECT o.{s.group}, COUNT(m.id) FROM {s.one} o LEFT JOIN {m.name} m ON m.{s.key} = o.id "
        f"GROUP BY o.{s.group} ORDER BY COUNT(m.id) DESC, o.{s.group}"
    )
    return Question(
        f"How many {m.rows} does each {s.group} have? The {s.group} and the count, 0 included, the largest "
        f"count first, equal counts by {s.group}.",
        query,
        (query.replace("LEFT JOIN", "JOIN").replace("COUNT(m.id)", "COUNT(DISTINCT o.id)"),
         query.replace(" DESC", "")),
        ordered=True,
    )  # fmt: skip


def _top(s: Schema, rng: random.Random) -> Question:
    m, count = s.many, rng.randint(2, 5)
    query = (
        f"SELECT m.id, o.name, m.{m.number} FROM {m.name} m JOIN {s.one} o ON o.id = m.{s.key} "
        f"ORDER BY m.{m.number} DESC, m.id LIMIT {count}"
    )
    return Question(
        f"The {count} {m.rows} with the largest {m.number_text} (equals by id): their id, the name of the "
        f"{s.one_row} and the {m.number_text}, in that order.",
        query,
        (query.replace(" DESC", ""), query.replace(f"LIMIT {count}", f"LIMIT {count + 1}")),
        ordered=True,
    )


def _above_mean(s: Schema, rng: random.Random) -> Question:
    m, factor = s.many, rng.choice((1, 1.25, 1.5, 0.5))
    times = "" if factor == 1 else f"{factor} times "
    query = (
        f"SELECT id, {m.number} FROM {m.name} WHERE {m.number} > {factor} * "
        f"(SELECT AVG({m.number}) FROM {m.name})"
    )
    return Question(
        f"Id and {m.number_text} of the {m.rows} whose {m.number_text} is above {times}the mean of all.",
        query,
        (query.replace("AVG", "MIN"), query.replace("> ", "< ", 1)),
    )


def _largest_of_each(s: Schema, rng: random.Random) -> Question:
    m, best = s.many, rng.choice(("MAX", "MIN"))
    word = {"MAX": "largest", "MIN": "smallest"}[best]
    query = (
        f"SELECT o.{s.group}, {best}(m.{m.number}) FROM {s.one} o JOIN {m.name} m ON m.{s.key} = o.id "
        f"GROUP BY o.{s.group}"
    )
    return Question(
        f"For each {s.group} that has {m.rows}: the {s.group} and the {word} {m.number_text} among them.",
        query,
        (query.replace(best, "MIN" if best == "MAX" else "MAX"), query.replace(f"{best}(", "AVG(")),
    )


def _months(s: Schema, rng: random.Random) -> Question:
    m, year = s.many, rng.choice((2023, 2024))
    query = (
        f"SELECT substr({m.day}, 6, 2), COUNT(*), SUM({m.number}) FROM {m.name} "
        f"WHERE {m.day} LIKE '{year}-%' GROUP BY 1 ORDER BY 1"
    )
    return Question(
        f"For every month of {year} with {m.rows}: the month as two digits, how many there were and their "
        f"total {m.number_text}, by month.",
        query,
        (query.replace(f" WHERE {m.day} LIKE '{year}-%'", ""), query.replace("SUM(", "MAX(")),
        ordered=True,
    )


def _buckets(s: Schema, rng: random.Random) -> Question:
    m, low = s.many, rng.randint(4, 8) * 5
    high = low + rng.randint(3, 8) * 5
    query = (
        f"SELECT CASE WHEN {m.number} < {low} THEN 'low' WHEN {m.number} <= {high} THEN 'middle' "
        f"ELSE 'high' END AS class, COUNT(*) FROM {m.name} GROUP BY class"
    )
    return Question(
        f"Sort the {m.rows} into three classes by {m.number_text}: 'low' below {low}, 'middle' from {low} to "
        f"{high}, 'high' above. The class and how many {m.rows} it has, for classes that have any.",
        query,
        (query.replace(f"< {low}", f"<= {low}").replace(f"<= {high}", f"< {high}"),
         query.replace("'middle'", "'mid'")),
    )  # fmt: skip


def _several(s: Schema, rng: random.Random) -> Question:
    m, least, floor = s.many, rng.randint(2, 4), rng.randint(2, 10) * 5
    query = (
        f"SELECT o.name FROM {s.one} o JOIN {m.name} m ON m.{s.key} = o.id WHERE m.{m.number} >= {floor} "
        f"GROUP BY o.id HAVING COUNT(*) >= {least} ORDER BY o.name"
    )
    return Question(
        f"Names of the {s.one_rows} with at least {least} {m.rows} whose {m.number_text} is {floor} or more, "
        "in alphabetical order.",
        query,
        (query.replace(f" WHERE m.{m.number} >= {floor}", ""), query.replace("COUNT(*) >=", "COUNT(*) >")),
        ordered=True,
    )


def _share(s: Schema, rng: random.Random) -> Question:
    m, digits = s.many, rng.choice((1, 2))
    query = (
        f"SELECT o.{s.group}, ROUND(100.0 * SUM(m.{m.number}) / (SELECT SUM({m.number}) FROM {m.name}), "
        f"{digits}) FROM {m.name} m JOIN {s.one} o ON o.id = m.{s.key} GROUP BY o.{s.group}"
    )
    return Question(
        f"The share of each {s.group} in the total {m.number_text} of all {m.rows}, in per cent rounded to "
        f"{digits} decimals: {s.group} and share, only those that have {m.rows}.",
        query,
        (query.replace("100.0 * ", ""), query.replace(f"SUM(m.{m.number})", "COUNT(*)")),
    )


def _latest(s: Schema, rng: random.Random) -> Question:
    m, ends = s.many, rng.choice(("MAX", "MIN"))
    word = {"MAX": "latest", "MIN": "earliest"}[ends]
    group = rng.choice(s.groups)
    query = (
        f"SELECT o.name, {ends}(m.{m.day}) FROM {s.one} o LEFT JOIN {m.name} m ON m.{s.key} = o.id "
        f"WHERE o.{s.group} = '{group}' GROUP BY o.id"
    )
    return Question(
        f"For each {s.one_row} with {s.group} '{group}': the name and the day ({m.day}) of the {word} of its "
        f"{m.rows}, NULL where it has none.",
        query,
        (query.replace("LEFT JOIN", "JOIN").replace(ends, "MIN" if ends == "MAX" else "MAX"),
         query.replace(f" WHERE o.{s.group} = '{group}'", "")),
    )  # fmt: skip


_QUESTIONS: dict[str, Callable[[Schema, random.Random], Question]] = {
    "totals": _totals,
    "without": _without,
    "count_groups": _count_groups,
    "top": _top,
    "above_mean": _above_mean,
    "largest_of_each": _largest_of_each,
    "months": _months,
    "buckets": _buckets,
    "several": _several,
    "share": _share,
    "latest": _latest,
}
