import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.contracts import ChatMessage, TaskSpec, VerifierSpec
from domain.verifiers import InvalidVerifier, check_spec, verify

PARAMS = {"key": ["date", "text"], "columns": {"date": "date", "text": "text", "amount": "number"}}
ROWS = [
    {"date": "2026-03-01", "text": "Rent", "amount": -1200.0},
    {"date": "2026-03-02", "text": "Alpine Paper", "amount": 310.5},
    {"date": "2026-03-02", "text": "Metro Taxi", "amount": -18.4},
]


def changed(index: int, **values: Any) -> list[dict[str, Any]]:
    return [{**row, **values} if place == index else row for place, row in enumerate(ROWS)]


def test_rows_are_found_by_key_in_any_order_and_cells_compared_by_value(judge: Any) -> None:
    written = [
        {"date": "02.03.2026", "text": "metro  taxi", "amount": "(18.40)"},
        {"date": "March 2, 2026", "text": "Alpine Paper", "amount": "310.50 EUR"},
        {"date": "2026-03-01", "text": "Rent", "amount": "-1,200.00"},
    ]

    assert judge("table", ROWS, json.dumps(written), **PARAMS).state == "passed"
    assert judge("table", ROWS, json.dumps(written), ordered=True, **PARAMS).state == "failed"


def test_the_deviating_cell_and_its_source_are_named(judge: Any) -> None:
    sources = {"2026-03-02 / Metro Taxi": "02.03. METRO TAXI 18.40 D"}

    verdict = judge("table", ROWS, json.dumps(changed(2, amount=18.4)), sources=sources, **PARAMS)

    assert verdict.state == "failed"
    assert verdict.score == pytest.approx(8 / 9)
    assert "Metro Taxi: amount is '18.4'" in verdict.reasons[0]
    assert "02.03. METRO TAXI 18.40 D" in verdict.reasons[0]


def test_missing_and_foreign_rows_are_named_and_cost(judge: Any) -> None:
    foreign = {"date": "2026-03-09", "text": "Fees", "amount": -3}

    missing = judge("table", ROWS, json.dumps(ROWS[:2]), **PARAMS)
    extra = judge("table", ROWS, json.dumps([*ROWS, foreign]), **PARAMS)

    assert missing.score == pytest.approx(6 / 9)
    assert "Metro Taxi is missing" in missing.reasons[0]
    assert extra.score == pytest.approx(9 / 12)
    assert "Fees" in extra.reasons[0]


def test_a_row_given_twice_counts_once(judge: Any) -> None:
    verdict = judge("table", ROWS, json.dumps([*ROWS, ROWS[0]]), **PARAMS)

    assert verdict.state == "failed"
    assert verdict.score == pytest.approx(9 / 12)


def test_equal_keys_are_matched_by_what_is_most_alike(judge: Any) -> None:
    twice = [{"id": "a", "n": 1}, {"id": "a", "n": 2}]
    params = {"key": ["id"], "columns": {"id": "text", "n": "number"}}

    assert judge("table", twice, json.dumps(twice[::-1]), **params).state == "passed"
    half = judge("table", twice, json.dumps([{"id": "a", "n": 2}, {"id": "a", "n": 7}]), **params)
    assert half.score == pytest.approx(3 / 4)


def test_listing_everything_earns_nothing(judge: Any) -> None:
    flood = [
        {"date": f"2026-03-{day:02}", "text": row["text"], "amount": row["amount"]}
        for day in range(1, 29)
        for row in ROWS
    ]

    assert judge("table", ROWS, json.dumps(flood), **PARAMS).score == 0.0


def test_an_empty_table_is_passed_by_an_empty_list_only(judge: Any) -> None:
    assert judge("table", [], "[]", **PARAMS).state == "passed"
    assert judge("table", [], "", **PARAMS).state == "failed"
    assert judge("table", [], "null", **PARAMS).state == "failed"
    assert judge("table", [], json.dumps(ROWS[:1]), **PARAMS).state == "failed"


def test_markdown_and_csv_are_read_as_tables(judge: Any) -> None:
    lines = [f"| {row['date']} | {row['text']} | {row['amount']} |" for row in ROWS]
    markdown = "\n".join(["Here it is:", "| date | text | amount |", "|---|:--|--:|", *lines])
    csv = "date;text;amount\n" + "\n".join(f"{row['date']};{row['text']};{row['amount']}" for row in ROWS)

    assert judge("table", ROWS, markdown, format="markdown", **PARAMS).state == "passed"
    assert judge("table", ROWS, markdown + "\n\n" + markdown, format="markdown", **PARAMS).state == "failed"
    assert judge("table", ROWS, csv, format="csv", **PARAMS).state == "passed"
    assert judge("table", ROWS, csv + ";9", format="csv", **PARAMS).state == "failed"


@pytest.mark.parametrize("text", ["", "{}", '[{"date": "2026-03-01"', "[1, 2]", '{"rows": []}', "[NaN]"])
def test_what_is_no_table_fails(judge: Any, text: str) -> None:
    assert judge("table", ROWS, text, **PARAMS).score == 0.0


def test_a_table_may_lie_inside_an_object(judge: Any) -> None:
    assert judge("table", ROWS, json.dumps({"a": {"rows": ROWS}}), path="a.rows", **PARAMS).state == "passed"
    assert judge("table", ROWS, json.dumps({"a": {}}), path="a.rows", **PARAMS).state == "failed"


def test_columns_that_were_not_asked_for_fail(judge: Any) -> None:
    assert judge("table", ROWS, json.dumps(changed(0, note="x")), **PARAMS).state == "failed"


rows = st.lists(
    st.fixed_dictionaries({"id": st.sampled_from("abcd"), "n": st.integers(-99, 99)}), min_size=1, max_size=8
)


@given(rows, st.randoms(use_true_random=False))
def test_any_order_of_the_right_rows_passes_and_any_lost_row_fails(found: Any, rng: random.Random) -> None:
    params = {"key": ["id"], "columns": {"id": "text", "n": "number"}}
    task = TaskSpec(
        id="t", family="f", messages=(ChatMessage(role="user", content="?"),),
        verifier=VerifierSpec(kind="table", params=params), reference=found,
    )  # fmt: skip
    mixed = rng.sample(found, len(found))

    assert verify(task, json.dumps(mixed), {}).state == "passed"
    lost = verify(task, json.dumps(mixed[1:]), {})
    assert lost.state == "failed"
    assert lost.score == pytest.approx((len(found) - 1) / len(found))


@pytest.mark.parametrize(
    ("params", "reference", "sentence"),
    [
        ({"key": ["x"], "columns": {"a": "text"}}, [], "key column"),
        ({"key": ["a"], "columns": {"a": "text"}, "format": "csv", "path": "x"}, [], "path"),
        ({"key": ["a"], "columns": {"a": "text"}}, [{"b": "x"}], "differ"),
        ({"key": ["a"], "columns": {"a": "date"}}, [{"a": "soon"}], "no date"),
    ],
)
def test_a_specification_that_cannot_judge_is_refused(params: Any, reference: Any, sentence: str) -> None:
    with pytest.raises(InvalidVerifier, match=sentence):
        check_spec(VerifierSpec(kind="table", params=params), reference)
