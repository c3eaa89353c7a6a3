"""Files made to break what reads them: each is refused in words, at once, in bounded memory."""

import gzip
import io
import json
import struct
import zipfile

import pytest

from apps.evals.formats import Options, Unreadable, Upload, base, promptfoo, read_files
from apps.evals.formats.values import value_problem
from tests.apps.evals.reading import read, reasons


def refused(*files: tuple[str, bytes | str], **options: str) -> str:
    with pytest.raises(Unreadable) as error:
        read(*files, **options)
    return str(error.value)


EVAL = {"object": "eval", "name": "e", "testing_criteria": [{"type": "string_check"}]}
ROWS = [{"item": {"q": "1"}}]
LOG = {"eval": {"scorers": [{"name": "match"}]}, "version": 2, "status": "success"}


@pytest.mark.parametrize(
    "content",
    [
        {"eval": EVAL | {"testing_criteria": 5}, "rows": ROWS},
        {"eval": EVAL, "run": {"object": "eval.run", "data_source": [1]}, "rows": ROWS},
        {"eval": EVAL, "run": {"data_source": {"sampling_params": "warm"}}, "rows": ROWS},
        {
            "eval": EVAL
            | {"testing_criteria": [{"type": "multi", "graders": ["a"], "calculate_output": "a"}]},
            "rows": ROWS,
        },
        {"prompts": ["a"], "tests": [{"vars": {}, "assert": 3}]},
        {"prompts": ["a"], "tests": [{}], "defaultTest": {"options": "none"}},
        {"prompts": ["a"], "tests": [{}], "defaultTest": {"metadata": 4}},
        {"prompts": ["a"], "tests": [{}], "scenarios": 7},
        {"prompts": ["a"], "tests": [{}], "providers": [{"config": [1]}]},
        LOG | {"samples": 3},
        LOG | {"samples": ["a"]},
        LOG | {"samples": [{"id": 1, "messages": ["hello"], "target": "a"}]},
        LOG | {"eval": {"scorers": [{"name": "match", "options": [2]}]}, "samples": [{"target": "a"}]},
    ],
)
def test_a_file_whose_parts_are_other_things_than_its_format_has_is_refused(content):
    assert "has not the shape of" in refused(("file.json", json.dumps(content)))


def test_a_whole_number_that_no_float_holds_is_out_of_range_in_every_format():
    huge = "1" + 400 * "0"
    assert "out of range" in refused(("a.jsonl", f'{{"input": "q", "expected": {huge}}}'), format="jsonl")
    assert "out of range" in refused(
        ("a.yaml", f"prompts: [a]\ntests: [{{assert: [{{type: equals, value: {huge}}}]}}]")
    )
    found = read(("a.csv", f"input,expected\nq,{huge}\nr,2\n"))
    assert [task.reference for task in found.tasks] == [2]
    assert reasons(found) == {"row": "a number is out of range"}


@pytest.mark.parametrize("written", ["!!binary aGk=", "!!set {a, b}", "!!timestamp 2026-01-01"])
def test_a_yaml_tag_that_makes_no_plain_data_is_refused(written):
    said = refused(("a.yaml", f"prompts: [a]\ntests: [{{vars: {{x: {written}}}}}]"))
    assert "no plain data" in said


def test_a_gzip_file_with_a_broken_body_is_refused_as_damaged():
    packed = bytearray(gzip.compress(b'{"input": "q", "expected": "a"}\n' * 50))
    packed[12:20] = b"\xff" * 8
    assert "damaged" in refused(("a.jsonl.gz", bytes(packed)))


def test_many_small_gzip_files_together_may_unpack_to_no_more_than_one():
    packed = gzip.compress(bytes(4 * 2**20))
    assert "larger than 64 MB" in refused(*[(f"{at}.gz", packed) for at in range(17)])


def test_a_zip_file_with_a_million_entries_is_refused_before_they_become_objects():
    entry = struct.pack("<4s42x", b"PK\x01\x02")
    listed = entry * 100_001
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 0, 0, len(listed), 4, 0)
    said = refused(("a.eval", b"PK\x03\x04" + listed + end))
    assert "not known" in said
    with pytest.raises(Unreadable, match="more than 100,000 entries"):
        read_files([Upload("a.eval", b"PK\x03\x04" + listed + end)], Options(format="inspect"))


def test_a_zip_entry_that_unpacks_without_end_is_refused():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(LOG))
        archive.writestr("samples/1.json", bytes(17 * 2**20))
    assert "unpacks to more" in refused(("a.eval", packed.getvalue()))


def test_yaml_aliases_of_a_long_text_count_as_its_length():
    text = "x" * 2**20
    aliases = ", ".join(["*long"] * 65)
    assert "larger than" in refused(("a.yaml", f"prompts: [&long {text}, {aliases}]\ntests: []\n"))


def test_prompts_times_tests_that_never_end_are_refused(monkeypatch):
    monkeypatch.setattr(promptfoo, "MAX_CASES", 100)
    content = {"prompts": ["a"] * 1_000, "tests": [{"assert": [{"type": "similar"}] * 10_000}]}
    assert "too many cases" in refused(("a.json", json.dumps(content)))
    scenarios = [
        {"config": [{"vars": {"x": 1}}] * 1_000, "tests": [{"assert": []}] * 1_000}
    ]  # a million tests
    said = refused(("a.json", json.dumps({"prompts": ["a"], "tests": [], "scenarios": scenarios})))
    assert "more than 100 tests" in said


def test_templates_may_not_make_far_more_of_a_file_than_it_holds(monkeypatch):
    monkeypatch.setattr(base, "MAX_TEXT", 1_000_000)
    run = {"data_source": {"input_messages": {"template": [{"role": "user", "content": "x" * 50_000}]}}}
    criteria = [
        {
            "type": "string_check", "operation": "eq",
            "input": "{{sample.output_text}}", "reference": "{{item.q}}",
        }
    ]  # fmt: skip
    content = {"eval": EVAL | {"testing_criteria": criteria}, "run": run, "rows": ROWS * 30}
    assert "more than" in refused(("a.json", json.dumps(content)))
    content["rows"] = ROWS * 10
    assert len(read(("a.json", json.dumps(content))).tasks) == 10


def test_a_template_is_too_long_also_where_it_asks_for_nothing():
    run = {"data_source": {"input_messages": {"template": [{"role": "user", "content": "x" * 200_001}]}}}
    found = read_files(
        [Upload("a.json", json.dumps({"eval": EVAL, "run": run, "rows": ROWS}).encode())], Options()
    )[1]
    assert any("longer than 200,000 characters" in each.reason for each in found.left_out)


def test_parts_left_out_without_end_are_refused(monkeypatch):
    monkeypatch.setattr(base, "MAX_CASES", 20)
    lines = "\n".join(["{}"] * 21)
    assert "parts cannot be taken" in refused(("a.jsonl", lines), format="jsonl")


def test_a_table_of_thousands_of_columns_is_refused():
    header = ",".join(f"c{at}" for at in range(1_001))
    assert "more than 1,000 columns" in refused(("a.csv", f"{header}\n{header}\n"))


def test_a_hundred_thousand_criteria_are_refused():
    content = {"eval": EVAL | {"testing_criteria": [{"type": "x"}] * 101}, "rows": ROWS}
    assert "more than 100 criteria" in refused(("a.json", json.dumps(content)))
    log = LOG | {"eval": {"scorers": [{"name": "match"}] * 101}, "samples": []}
    assert "more than 100 scorers" in refused(("a.json", json.dumps(log)))


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, object()])
def test_what_json_cannot_say_is_no_value(value):
    assert "no plain data" in value_problem({"a": [value]})
