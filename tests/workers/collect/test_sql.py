"""Queries run for real: what reads is answered, everything else is refused."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from domain.contracts import ChatMessage, TaskSpec, Verdict, VerifierSpec
from domain.verifiers import verify
from domain.verifiers.sql_result import sandbox_databases
from tests.workers.collect.conftest import LIMITS
from workers.collect.sql import collect_sql
from workers.evidence import collect_evidence, sandbox_collectors
from workers.sandbox.bubblewrap import BubblewrapBackend

SHOWN = """CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price REAL, note BLOB);
INSERT INTO items VALUES (1, 'pen', 2.5, NULL), (2, 'mug', 7, x'00ff'), (3, 'bag', 31, NULL);"""
HIDDEN = SHOWN.replace("'bag', 31", "'bag', 3").replace("'pen', 2.5", "'pen', 25")


def report(backend: BubblewrapBackend, query: str, *scripts: str, **limits: Any) -> dict[str, Any]:
    bounds = replace(LIMITS, **limits)
    return asyncio.run(collect_sql(backend, query=query, scripts=scripts or (SHOWN,), limits=bounds))


@pytest.fixture
def judge(backend: BubblewrapBackend) -> Any:
    task = TaskSpec(
        id="task-1",
        family="test",
        messages=(ChatMessage(role="user", content="Which items cost more than 20?"),),
        verifier=VerifierSpec(kind="sql_result"),
        reference={
            "query": "SELECT name FROM items WHERE price > 20",
            "databases": [
                {"name": "shown", "script": SHOWN, "rows": [["bag"]]},
                {"name": "hidden", "script": HIDDEN, "rows": [["pen"]]},
            ],
        },
    )

    def run(answer: str) -> Verdict:
        collectors = sandbox_collectors(backend, limits=LIMITS)
        return verify(task, answer, asyncio.run(collect_evidence(task, answer, collectors)))

    run.task = task  # type: ignore[attr-defined]
    return run


@pytest.mark.parametrize(
    "answer",
    [
        "SELECT name FROM items WHERE price > 20",
        "```sql\nselect i.name from items i where i.price > 20.0;\n```",
        "WITH dear AS (SELECT * FROM items WHERE price > 20) SELECT name FROM dear -- done",
    ],
)
def test_any_query_with_the_right_rows_passes(judge: Any, answer: str) -> None:
    assert judge(answer).state == "passed"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("SELECT name FROM items WHERE price < 20", "rows"),
        ("SELECT name, price FROM items WHERE price > 20", "columns"),
        ("SELECT 'bag'", "hidden"),
        ("SELECT name FROM items WHERE id = 3", "hidden"),
        ("The bag.", "syntax error"),
        ("", "no query"),
        ("SELECT colour FROM items", "no such column"),
    ],
)
def test_wrong_rows_fail_and_the_reason_says_where(judge: Any, answer: str, why: str) -> None:
    verdict = judge(answer)

    assert verdict.state == "failed"
    assert why in " ".join(verdict.reasons)


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM items",
        "INSERT INTO items (name) VALUES ('x') RETURNING name",
        "UPDATE items SET price = 21",
        "DROP TABLE items",
        "CREATE TEMP TABLE t AS SELECT 1",
        "PRAGMA table_info(items)",
        "SELECT name FROM pragma_table_info('items')",
        "SELECT sql FROM sqlite_master",
        "ATTACH DATABASE '/etc/passwd' AS other",
        "VACUUM INTO '/workspace/copy.db'",
        "SELECT load_extension('/workspace/x.so')",
        "SELECT name FROM items; DELETE FROM items",
        "SELECT hex(randomblob(10))",
    ],
)
def test_what_does_more_than_read_the_tables_is_refused(backend: BubblewrapBackend, query: str) -> None:
    (result,) = report(backend, query)["results"]

    assert result["error"]
    assert result["rows"] == []


def test_one_database_never_sees_what_a_query_did_to_another(backend: BubblewrapBackend) -> None:
    found = report(backend, "SELECT count(*), sum(price) FROM items", SHOWN, HIDDEN)

    assert found["status"] == "ok"
    assert [result["rows"] for result in found["results"]] == [[[3, 40.5]], [[3, 35.0]]]


def test_values_cross_with_their_types(backend: BubblewrapBackend) -> None:
    (result,) = report(backend, "SELECT id, price, name, note FROM items ORDER BY id LIMIT 2")["results"]

    assert result["rows"] == [[1, 2.5, "pen", None], [2, 7.0, "mug", {"t": "bytes", "v": "AP8="}]]


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT "


@pytest.mark.parametrize("what", ["count(*) FROM n", "max(x) FROM n WHERE x < 0"])
def test_a_query_without_end_is_stopped(backend: BubblewrapBackend, what: str) -> None:
    found = report(backend, ENDLESS + what, cpu_s=1)

    assert found["status"] != "ok" or "interrupted" in found["results"][0]["error"]


def test_endless_rows_are_cut_and_fail(judge: Any, backend: BubblewrapBackend) -> None:
    (result,) = report(backend, ENDLESS + "x FROM n")["results"]

    assert result["truncated"]
    assert judge(ENDLESS + "x FROM n").state == "failed"


def test_a_value_too_large_is_an_error(backend: BubblewrapBackend) -> None:
    (result,) = report(backend, "SELECT length(zeroblob(1000000000))")["results"]

    assert "too big" in result["error"]


def test_row_10_expected_rows_never_enter_the_sandbox(judge: Any) -> None:
    assert sandbox_databases(judge.task) == [SHOWN, HIDDEN]


def test_without_a_sandbox_nothing_is_decided(judge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.sandbox.bubblewrap.bwrap_candidates", list)

    found = report(BubblewrapBackend(), "SELECT 1")

    assert found["status"] == "unavailable"
    assert verify(judge.task, "SELECT 1", {"sql": found}).state == "unscored"
