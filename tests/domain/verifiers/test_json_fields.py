import json
from typing import Any

import pytest

FIELDS = {"invoice": "text", "total": "number", "date": "date"}
REFERENCE = {"invoice": "INV-7", "total": 1234.5, "date": "2024-05-01"}


def answer(**changes: Any) -> str:
    return json.dumps(REFERENCE | changes)


def test_all_fields_right_passes(judge: Any) -> None:
    verdict = judge("json_fields", REFERENCE, answer(), fields=FIELDS)

    assert verdict.state == "passed"
    assert [check.name for check in verdict.checks] == ["json", "invoice", "total", "date"]


@pytest.mark.parametrize(
    "changes",
    [
        {"total": "1.234,50 EUR"},
        {"total": "$1,234.50"},
        {"date": "1 May 2024"},
        {"date": "01.05.2024"},
        {"date": "May 1, 2024"},
        {"invoice": " INV-7 "},
    ],
)
def test_numbers_and_dates_are_compared_by_value(judge: Any, changes: Any) -> None:
    assert judge("json_fields", REFERENCE, answer(**changes), fields=FIELDS).state == "passed"


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"total": 1234}, "total"),
        ({"total": True}, "total"),
        ({"total": None}, "total"),
        ({"total": "1234.5 1300"}, "total"),
        ({"date": "2024-01-05"}, "date"),
        ({"date": "01/05/2024"}, "date"),
        ({"date": 20240501}, "date"),
        ({"invoice": "inv-7"}, "invoice"),
        ({"invoice": ["INV-7"]}, "invoice"),
    ],
)
def test_the_deviating_field_is_named_and_the_score_is_the_share_of_right_fields(
    judge: Any, changes: Any, name: str
) -> None:
    verdict = judge("json_fields", REFERENCE, answer(**changes), fields=FIELDS)

    assert verdict.state == "failed"
    assert verdict.score == pytest.approx(2 / 3)
    assert len(verdict.reasons) == 1
    assert repr(name) in verdict.reasons[0]


def test_a_missing_field_fails_by_name(judge: Any) -> None:
    verdict = judge("json_fields", REFERENCE, '{"invoice": "INV-7", "total": 1234.5}', fields=FIELDS)

    assert verdict.reasons == ("Field 'date' is missing.",)


def test_extra_fields_fail_and_lower_the_score(judge: Any) -> None:
    verdict = judge("json_fields", REFERENCE, answer(other=1), fields=FIELDS)

    assert verdict.state == "failed"
    assert verdict.score == pytest.approx(3 / 4)


def test_the_order_of_day_and_month_can_be_given(judge: Any) -> None:
    given = answer(date="05/01/2024")

    assert judge("json_fields", REFERENCE, given, fields=FIELDS, date_order="mdy").state == "passed"
    assert judge("json_fields", REFERENCE, given, fields=FIELDS, date_order="dmy").state == "failed"


def test_a_field_that_is_absent_from_the_document_is_null(judge: Any) -> None:
    reference = REFERENCE | {"total": None}

    assert judge("json_fields", reference, answer(total=None), fields=FIELDS).state == "passed"
    assert judge("json_fields", reference, answer(total=0), fields=FIELDS).state == "failed"


def test_a_code_fence_passes_only_where_the_task_allows_it(judge: Any) -> None:
    fenced = f"```json\n{answer()}\n```"

    assert judge("json_fields", REFERENCE, fenced, fields=FIELDS).state == "failed"
    assert judge("json_fields", REFERENCE, fenced, fields=FIELDS, fence=True).state == "passed"
    two = f"{fenced}\n{fenced}"
    assert judge("json_fields", REFERENCE, two, fields=FIELDS, fence=True).state == "failed"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("Here it is: " + answer(), "not JSON"),
        (answer() + " I hope this helps", "goes on"),
        (answer() + answer(), "goes on"),
        ("[" + answer() + "]", "not an object"),
        ('{"total": 1, "total": 1234.5}', "appears twice"),
        ('{"total": NaN}', "NaN"),
        ('{"total": -Infinity}', "Infinity"),
        ('{"total": 1e999}', "out of range"),
        ('{"total": ' + "9" * 5000 + "}", "out of range"),
        ("[" * 100_000, "nested too deeply"),
        ("{'total': 1}", "not JSON"),
    ],
)
def test_anything_but_one_strict_object_fails_with_the_reason(judge: Any, text: str, reason: str) -> None:
    verdict = judge("json_fields", REFERENCE, text, fields=FIELDS)

    assert verdict.state == "failed"
    assert verdict.score == 0.0
    assert reason in verdict.reasons[0]
