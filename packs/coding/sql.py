"""``sql_query``: a question over two tables; the answer is one SELECT, judged on the database that is
shown and on one that is not. ``sql_simple``: one table, one condition, made for very small models.
"""

import random
from collections.abc import Mapping
from typing import Any

from domain.contracts.tasks import HiddenCheck, VerifierSpec
from packs.coding.databases import SCHEMAS, rows, rows_or_none, script
from packs.coding.draft import Draft
from packs.coding.questions import question

_ROUNDS = 40  # databases drawn for one question before another one is asked


def draft(rng: random.Random) -> Draft:
    """Some questions have no rows, or the same as a wrong one, in nearly every database: another then."""
    while (made := _draft(rng)) is None:
        pass
    return made


def _draft(rng: random.Random) -> Draft | None:
    schema = rng.choice(SCHEMAS)
    layout, asked = question(schema, rng)
    for _ in range(_ROUNDS):
        visible = script(schema, rng, ones=6, many=10)
        unseen = [script(schema, rng, ones=12, many=40) for _ in range(2)]
        judged = {"the database shown": visible, "a hidden database": unseen[0]}
        wrong = {f"other_rule_{n}": query for n, query in enumerate(asked.wrong, start=1)}
        wrong["constants"] = _constants(rows(visible, asked.query))
        wrong["writes"] = f"DELETE FROM {schema.many.name}"
        wrong["two"] = f"{asked.query}; SELECT 1"
        told = {
            name: query for name, query in wrong.items() if _told(judged, asked.query, query, asked.ordered)
        }
        given = all(rows(text, asked.query) for text in (visible, *unseen))
        if "constants" in told and len(told) >= 4 and given:
            break
    else:
        return None
    verifier = VerifierSpec(kind="sql_result", params={"ordered": asked.ordered})
    return Draft(
        prompt=(
            f"An SQLite database:\n\n{visible}\n\n{asked.text}\n\nAnswer with one SELECT statement, with "
            "the columns in the order asked for."
        ),
        verifier=verifier,
        reference=_reference(asked.query, judged),
        gold=asked.query,
        bad={**told, "prose": f"The {schema.one_rows} are listed above."},
        origin=f"{schema.one}-{layout}",
        hidden=HiddenCheck(verifier=verifier, reference=_reference(asked.query, {"another": unseen[1]})),
        max_tokens=200,
    )


def simple(rng: random.Random) -> Draft:
    while (made := _simple_draft(rng)) is None:
        pass
    return made


def _simple_draft(rng: random.Random) -> Draft | None:
    table, columns, values = rng.choice(_TABLES)
    first, number = columns[0], columns[1]
    layout, text, query, wrong = rng.choice(_simple(rng, table, first, number, columns[2], values))
    for _ in range(_ROUNDS):
        judged = {f"database {n}": _one_table(rng, table, columns, values) for n in (1, 2)}
        hidden = {"another": _one_table(rng, table, columns, values)}
        bad = {"other_rule": wrong, "everything": f"SELECT * FROM {table}", "words": text}
        bad["constants"] = _constants(rows(judged["database 1"], query))
        told = {name: other for name, other in bad.items() if _told(judged, query, other, "ORDER" in query)}
        given = all(rows(text, query) for text in (*judged.values(), *hidden.values()))
        if "other_rule" in told and "constants" in told and given:
            break
    else:
        return None
    verifier = VerifierSpec(kind="sql_result", params={"ordered": "ORDER" in query})
    return Draft(
        prompt=f"SQL {table}({', '.join(columns)}): {text}",
        verifier=verifier,
        reference=_reference(query, judged),
        gold=query,
        bad=told,
        origin=f"{table}-{layout}",
        hidden=HiddenCheck(verifier=verifier, reference=_reference(query, hidden)),
        max_tokens=48,
    )


def _simple(
    rng: random.Random, table: str, first: str, number: str, kind: str, values: tuple[str, ...]
) -> list[tuple[str, str, str, str]]:
    """(layout, question, query, wrong query) about one table."""
    k, value = rng.randint(2, 95), rng.choice(values)
    more, less = f"{number} > {k}", f"{number} < {k}"
    return [
        ("above", f"{first} with {number} over {k}", *_where(table, first, more, less)),
        ("below", f"{first} with {number} under {k}", *_where(table, first, less, more)),
        (
            "equal",
            f"{first} where {kind} is {value}",
            *_where(table, first, f"{kind} = '{value}'", f"{kind} != '{value}'"),
        ),
        ("count", f"count {kind} {value}", *_where(table, "COUNT(*)", f"{kind} = '{value}'", more)),
        ("count_above", f"count {number} over {k}", *_where(table, "COUNT(*)", more, less)),
        (
            "sum",
            f"sum of {number} for {kind} {value}",
            *_where(table, f"SUM({number})", f"{kind} = '{value}'", more),
        ),
        ("max", f"largest {number} under {k}", *_where(table, f"MAX({number})", less, more)),
        (
            "sorted",
            f"{first} with {number} over {k}, sorted",
            f"SELECT {first} FROM {table} WHERE {more} ORDER BY {first}",
            f"SELECT {first} FROM {table} WHERE {more} ORDER BY {first} DESC",
        ),
        (
            "both",
            f"{first} where {kind} is {value}, {number} over {k}",
            *_where(table, first, f"{kind} = '{value}' AND {more}", f"{kind} = '{value}' OR {more}"),
        ),
    ]


def _where(table: str, what: str, right: str, wrong: str) -> tuple[str, str]:
    return f"SELECT {what} FROM {table} WHERE {right}", f"SELECT {what} FROM {table} WHERE {wrong}"


def _one_table(rng: random.Random, table: str, columns: tuple[str, ...], values: tuple[str, ...]) -> str:
    first, number, kind = columns
    lines = [f"CREATE TABLE {table} ({first} TEXT, {number} INTEGER, {kind} TEXT);"]
    for row in range(1, rng.randint(14, 20)):
        text = f"{first}{rng.randint(10, 99)}{row}"
        lines.append(f"INSERT INTO {table} VALUES ('{text}', {rng.randint(0, 99)}, '{rng.choice(values)}');")
    return "\n".join(lines)


_TABLES: tuple[tuple[str, tuple[str, str, str], tuple[str, ...]], ...] = (
    ("items", ("name", "price", "color"), ("red", "blue", "green")),
    ("bills", ("number", "total", "state"), ("open", "paid", "late")),
    ("staff", ("name", "age", "team"), ("sales", "legal", "care")),
    ("trips", ("city", "days", "mode"), ("bus", "train", "plane")),
    ("games", ("title", "score", "level"), ("easy", "mid", "hard")),
)


def _reference(query: str, scripts: Mapping[str, str]) -> dict[str, Any]:
    databases = [{"name": name, "script": text, "rows": rows(text, query)} for name, text in scripts.items()]
    return {"query": query, "databases": databases}


def _constants(found: list[list[Any]]) -> str:
    """The rows of the database shown, written down: right there, wrong anywhere else."""
    if not found:
        return "SELECT 1 WHERE 0"
    return " UNION ALL ".join(f"SELECT {', '.join(map(_literal, row))}" for row in found)


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else repr(value)


def _told(scripts: Mapping[str, str], right: str, wrong: str, ordered: bool) -> bool:
    """Whether ``wrong`` gives other rows on one of the databases, or is no query."""
    return any(
        _bag(rows_or_none(text, wrong), ordered) != _bag(rows(text, right), ordered)
        for text in scripts.values()
    )


def _bag(found: list[list[Any]] | None, ordered: bool) -> list[str] | None:
    if found is None:
        return None
    shown = [repr(row) for row in found]
    return shown if ordered else sorted(shown)
