"""Plain lines of questions and answers, and which format a file has."""

import gzip
import json

import pytest

from apps.evals.formats import Unreadable
from tests.apps.evals.reading import format_of, judged, read, reasons

TASK = {
    "id": "a",
    "family": "sums",
    "messages": [{"role": "user", "content": "1 + 1?"}],
    "verifier": {"kind": "numeric"},
    "reference": 2,
}


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.jsonl", json.dumps(TASK), "tasks"),
        ("a.json", json.dumps([TASK]), "tasks"),
        ("a.jsonl", '{"input": "q", "expected": "a"}', "jsonl"),
        ("a.jsonl", '{"input": "q", "ideal": "a"}', "openai_registry"),
        (
            "a.yaml",
            "prompts: ['{{x}}']\ntests: [{vars: {x: 1}, assert: [{type: contains, value: a}]}]",
            "promptfoo",
        ),
        (
            "a.json",
            json.dumps(
                {"object": "eval", "testing_criteria": [], "rows": [{"item": {"input": "q"}}], "name": "n"}
            ),
            "openai_hosted",
        ),
        (
            "a.jsonl",
            json.dumps(
                {
                    "task_id": "x/1",
                    "prompt": "def f():\n",
                    "test": "def check(c):\n    pass\n",
                    "entry_point": "f",
                }
            ),
            "humaneval",
        ),
    ],
)
def test_a_format_is_known_by_its_content(name, data, expected):
    assert format_of((name, data)) == expected
    assert format_of((f"{name}.gz", gzip.compress(data.encode()))) == expected


@pytest.mark.parametrize("data", [b"\x00\x01\x02", b"PK\x03\x04broken", b"just words"])
def test_an_unknown_format_is_refused_with_what_can_be_read(data):
    with pytest.raises(Unreadable, match="its format is not known; it may be one of: JSONL"):
        read(("a.bin", data))


def test_a_gzip_bomb_is_refused(monkeypatch):
    monkeypatch.setattr("apps.evals.formats.values.MAX_BYTES", 1000)

    with pytest.raises(Unreadable, match="unpacked, the files are larger"):
        read(("a.jsonl.gz", gzip.compress(b" " * 5000)))


@pytest.mark.parametrize(
    ("expected", "right", "wrong"),
    [
        ("Paris", "paris", "Rome"),
        (0, "0", "1"),
        (2.5, "2.50", "3"),
        (["yes", "sure"], "Sure", "no"),
        ({"a": [1, None]}, '{"a": [1, null]}', '{"a": [1]}'),
        (True, "true", "1"),
    ],
)
def test_an_expected_value_finds_its_verifier(expected, right, wrong):
    (task,) = read(("a.jsonl", json.dumps({"input": "q", "expected": expected}))).tasks

    assert judged(task, right) == "passed"
    assert judged(task, wrong) == "failed"


def test_messages_source_split_and_further_keys_are_kept():
    row = {
        "id": 7,
        "input": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}],
        "expected": "a",
        "source": "shop",
        "split": "test",
        "level": 3,
    }

    (task,) = read(("a.jsonl", json.dumps(row))).tasks

    assert task.id == "7"
    assert [message.role for message in task.messages] == ["system", "user"]
    assert (task.source, task.tags) == ("shop", {"level": 3, "split": "held_out"})


def test_a_line_without_a_question_is_left_out_and_a_damaged_one_refuses_the_file():
    found = read(("a.jsonl", '{"input": "q", "expected": 1}\n{"expected": 2}\n{"input": "r"}'))

    assert len(found.tasks) == 1
    assert [each.where for each in found.left_out] == ["line 2", "line 3"]
    assert "nothing that is expected" in reasons(found)["case"]
    with pytest.raises(Unreadable, match=r"a\.jsonl, line 2: NaN is not a number"):
        read(("a.jsonl", '{"input": "q", "expected": 1}\n{"input": "q", "expected": NaN}'))
