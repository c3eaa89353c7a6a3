"""CSV: encodings, delimiters, columns, and rows that cannot be a case."""

import pytest

from apps.evals.formats import Unreadable
from apps.evals.formats.splits import split_named
from tests.apps.evals.reading import format_of, judged, read, reasons

SMALL = "id,question,expected\na,1 + 1?,2\nb,2 + 2?,4\n"


def test_promptfoo_2230_a_byte_order_mark_leaves_the_first_header_clean():
    found = read(("a.csv", b"\xef\xbb\xbf" + SMALL.encode()))

    assert [(column.name, column.role) for column in found.columns] == [
        ("id", "id"), ("question", "input"), ("expected", "expected"),
    ]  # fmt: skip
    assert [task.id for task in found.tasks] == ["a", "b"]


def test_phoenix_7965_nan_and_infinity_are_rejected_with_their_line():
    found = read(("a.csv", "question,expected\nq,1\nr,NaN\ns,-Infinity\nt,2\n"))

    assert [(each.where, each.reason) for each in found.left_out] == [
        ("line 3", "expected: NaN is no value"),
        ("line 4", "expected: -Infinity is no value"),
    ]
    assert [task.reference for task in found.tasks] == [1, 2]


def test_phoenix_7367_a_zero_stays_a_zero():
    found = read(("a.csv", "question,expected,tags.score\nq,0,0\nr,1,0.0\n"))

    assert found.tasks[0].reference == 0
    assert found.tasks[0].tags == {"score": 0}
    assert found.tasks[1].tags == {"score": "0.0"}
    assert judged(found.tasks[0], "0") == "passed"
    assert judged(found.tasks[0], "1") == "failed"


@pytest.mark.parametrize(
    ("data", "note"),
    [
        ("frage;prompt;expected\n1;Grüße;ja\n".encode(), "Cells are parted by “;”."),
        ("prompt\texpected\nGrüße\tja\n".encode("utf-16"), "Cells are parted by tabs."),
        ("prompt,expected\nGrüße,ja\n".encode("cp1252"), "a.csv is not UTF-8; it was read as Windows-1252."),
    ],
)
def test_delimiter_and_encoding_are_found_out_and_said(data, note):
    found = read(("a.csv", data))

    assert found.tasks[0].messages[0].content == "Grüße"
    assert note in found.notes


def test_a_quoted_cell_goes_over_lines_and_the_next_row_keeps_its_own():
    found = read(("a.csv", 'question,expected\n"one\ntwo, three",x\nq,NaN\n'))

    assert found.tasks[0].messages[0].content == "one\ntwo, three"
    assert found.left_out[0].where == "line 4"


def test_ragged_rows_are_left_out_by_line():
    found = read(("a.csv", "question,expected\nq,1\nr\ns,2,3\n"))

    assert [(each.where, each.reason) for each in found.left_out] == [
        ("line 3", "the row has 1 cells, the header has 2"),
        ("line 4", "the row has 3 cells, the header has 2"),
    ]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("q,expected,q\n1,2,3\n", "two columns are called “q”: 1 and 3"),
        ("a,b\n1,2\n", "no column holds what is asked; choose one of: a, b"),
        ("question,b\n1,2\n", "no column holds what is expected"),
        ('question,expected\n"never closed,1\n', "line 2: a quoted cell that begins here is never closed"),
        ("", "the file holds no case"),
        ("question,expected\n", "the file holds no case"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_with_the_reason(data, reason):
    with pytest.raises(Unreadable) as caught:
        read(("a.csv", data))

    assert reason in str(caught.value)
    assert str(caught.value).endswith("Nothing was imported.")


def test_columns_can_be_chosen_and_what_is_not_read_is_said():
    columns = {"what": "input", "right": "expected", "where": "source", "level": "tags"}

    found = read(("a.csv", "what,right,where,level,rest\nq,yes,shop,3,x\n"), columns=columns)

    task = found.tasks[0]
    assert (task.messages[0].content, task.source, task.tags) == ("q", "shop", {"level": 3})
    assert "Columns that are not read: rest." in found.notes
    with pytest.raises(Unreadable, match="there is no column “gone”"):
        read(("a.csv", SMALL), columns={"gone": "input"})
    with pytest.raises(Unreadable, match="two columns are read as input"):
        read(("a.csv", SMALL), columns={"id": "input", "question": "input"})


def test_the_verifier_follows_the_expected_values_or_the_choice():
    assert {task.verifier.kind for task in read(("a.csv", SMALL)).tasks} == {"numeric"}
    words = read(("a.csv", "question,expected\nq,Yes\n")).tasks[0]
    assert judged(words, " yes ") == "passed"
    held = read(("a.csv", "question,expected\nq,Yes\n"), verifier="contains").tasks[0]
    assert judged(held, "Oh Yes indeed") == "passed"
    exact = read(("a.csv", "question,expected\nq,Yes\n"), verifier="exact").tasks[0]
    assert judged(exact, "yes") == "failed"


@pytest.mark.parametrize(
    ("word", "split"),
    [
        ("test", "held_out"), ("Held-out", "held_out"), ("hold out", "held_out"), ("dev", "validation"),
        ("TRAIN", "train"), ("other", ""), (3, ""),
    ],
)  # fmt: skip
def test_a_split_has_many_words(word, split):
    assert split_named(word) == split


def test_a_split_is_read_from_its_column_and_an_unknown_one_is_left_out():
    found = read(("a.csv", "question,expected,split\nq,1,test\nr,2,elsewhere\n"))

    assert found.tasks[0].tags == {"split": "held_out"}
    assert reasons(found) == {"row": "“elsewhere” is no split: train, validation, held_out"}


def test_rows_without_ids_keep_theirs_wherever_they_stand():
    one = read(("a.csv", "question,expected\nq,1\nr,2\n"))
    two = read(("a.csv", "question,expected\nnew,0\nr,2\nq,5\nq,6\n"))

    assert one.tasks[0].id == two.tasks[2].id
    assert one.tasks[1].id == two.tasks[1].id
    assert two.tasks[3].id == f"{two.tasks[2].id}-2"


def test_a_table_is_known_by_its_content_too():
    assert format_of(("export.txt", SMALL)) == "csv"
