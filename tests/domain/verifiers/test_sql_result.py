"""Rows compared: as bags, in order only where asked, numbers by value."""

from typing import Any

import pytest

from domain.verifiers import InvalidVerifier, check_spec
from domain.verifiers.sql_result import query_text

SHOWN = {"name": "shown", "script": "…", "rows": [["pen", 1], ["mug", 2]]}
HIDDEN = {"name": "hidden", "script": "…", "rows": [["bag", 3]]}
REFERENCE = {"databases": [SHOWN, HIDDEN]}


def report(*results: Any, status: str = "ok") -> dict[str, Any]:
    found = [{"columns": 2, "rows": rows, "truncated": False, "error": ""} for rows in results]
    return {"sql": {"status": status, "results": found, "detail": ""}}


def run(judge: Any, evidence: Any, **params: Any) -> Any:
    return judge("sql_result", REFERENCE, "SELECT …", evidence, **params)


def test_rows_in_any_order_pass_where_no_order_was_asked_for(judge: Any) -> None:
    turned = report([["mug", 2], ["pen", 1]], [["bag", 3]])

    assert run(judge, turned).state == "passed"
    assert run(judge, turned, ordered=True).state == "failed"
    assert run(judge, report(SHOWN["rows"], HIDDEN["rows"]), ordered=True).state == "passed"


@pytest.mark.parametrize("value", [3.0, 3.0000000001])
def test_numbers_agree_by_value(judge: Any, value: Any) -> None:
    assert run(judge, report(SHOWN["rows"], [["bag", value]])).state == "passed"


@pytest.mark.parametrize("value", ["3", None, 4, 3.001, True])
def test_other_values_do_not(judge: Any, value: Any) -> None:
    verdict = run(judge, report(SHOWN["rows"], [["bag", value]]))

    assert verdict.state == "failed"
    assert verdict.reasons[0].startswith("On hidden")


@pytest.mark.parametrize("rows", [[], [["bag"]], [["bag", 3], ["bag", 3]], [["bag", 3, 1]], "bag", [3], None])
def test_other_rows_or_columns_fail(judge: Any, rows: Any) -> None:
    assert run(judge, report(SHOWN["rows"], rows)).state == "failed"


def test_row_07_the_rows_of_the_database_shown_do_not_do_for_the_hidden_one(judge: Any) -> None:
    verdict = run(judge, report(SHOWN["rows"], SHOWN["rows"]))

    assert verdict.state == "failed"
    assert verdict.score == 0.0


def test_an_error_or_too_many_rows_fail(judge: Any) -> None:
    evidence = report(SHOWN["rows"], HIDDEN["rows"])
    evidence["sql"]["results"][1]["error"] = "no such table"
    cut = report(SHOWN["rows"], HIDDEN["rows"])
    cut["sql"]["results"][1]["truncated"] = True

    assert run(judge, evidence).state == "failed"
    assert run(judge, cut).state == "failed"


@pytest.mark.parametrize("status", ["cpu", "timeout", "oom", "nonzero"])
def test_a_query_that_ended_its_process_has_failed(judge: Any, status: str) -> None:
    assert run(judge, report(SHOWN["rows"], HIDDEN["rows"], status=status)).state == "failed"


@pytest.mark.parametrize(
    "evidence", [{}, {"sql": None}, report(status="infra_error"), report(status="unavailable")]
)
def test_without_the_sandbox_s_word_nothing_is_decided(judge: Any, evidence: Any) -> None:
    assert run(judge, evidence).state == "unscored"


def test_the_query_is_the_one_fence_or_the_whole_text() -> None:
    assert query_text("So:\n```sql\nSELECT 1\n```\n") == "SELECT 1"
    assert query_text("  SELECT 1 ") == "SELECT 1"


def test_a_task_of_which_no_database_gives_rows_is_refused(task: Any) -> None:
    unsound = task("sql_result", {"databases": [{"script": "…", "rows": []}]})

    with pytest.raises(InvalidVerifier):
        check_spec(unsound.verifier, unsound.reference)
