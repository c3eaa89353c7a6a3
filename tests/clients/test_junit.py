"""JUnit reports: what CI systems see of a run. The structure is that of Jenkins' junit-10.xsd."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.flywheel.junit import clean, junit_write

GATE: Any = {
    "id": 3, "decision": "undecided", "sentence": "x", "run_id": 6, "baseline_id": None, "revision": 2,
    "url": "/evals/gates/3/",
    "rules": [
        {"kind": "coverage", "words": "w1", "state": "passed", "sentence": "s1", "figures": {}},
        {"kind": "floor", "words": "w2", "state": "failed", "sentence": "s2", "figures": {}},
        {"kind": "latency", "words": "w3", "state": "undecided", "sentence": "s3", "figures": {}},
    ],
}  # fmt: skip


def row(case: str, state: str, *reasons: str, error: str = "", **fields: Any) -> dict[str, Any]:
    return {
        "case": case, "family": "sums", "state": state, "latency_ms": 1500.0, "error": error,
        "verdict": {"reasons": list(reasons)} if reasons else None, **fields,
    }  # fmt: skip


def write(tmp_path: Path, rows: list[dict[str, Any]], **changes: Any) -> ElementTree.Element:
    run: Any = {"id": 6, "state": "done", "total": len(rows), "error": "", "suite_digest": "ab"}
    fields = {"suite": "sums", "run": run, "target": "1.1", "results": rows, "gate": None, **changes}
    junit_write(tmp_path / "report.xml", **fields)
    root = ElementTree.parse(tmp_path / "report.xml").getroot()
    check(root)
    return root


def check(root: ElementTree.Element) -> None:
    """The rules of junit-10.xsd that a report can break, and that counts are true."""
    allowed = {
        "testsuites": {"name", "time", "tests", "failures", "errors"},
        "testsuite": {
            "name",
            "tests",
            "failures",
            "errors",
            "time",
            "skipped",
            "timestamp",
            "hostname",
            "id",
        },
        "testcase": {"name", "time", "classname", "group"},
        "failure": {"type", "message"},
        "error": {"type", "message"},
        "property": {"name", "value"},
        "properties": set(),
        "system-out": set(),
    }
    children = {
        "testsuites": {"testsuite"},
        "testsuite": {"properties", "testcase"},
        "testcase": {"failure", "error", "system-out"},
        "properties": {"property"},
    }
    for at in root.iter():
        assert set(at.attrib) <= allowed[at.tag], at.attrib
        assert {child.tag for child in at} <= children.get(at.tag, set())
    for suite in root:
        assert {"name", "tests", "failures", "errors"} <= set(suite.attrib)
        for tag, name in (("testcase", "tests"), ("failure", "failures"), ("error", "errors")):
            assert int(suite.attrib[name]) == len(list(suite.iter(tag)))
    assert int(root.attrib["tests"]) == len(list(root.iter("testcase")))


def states(root: ElementTree.Element) -> dict[str, str]:
    return {
        case.attrib["name"]: next((at.attrib["type"] for at in case if "type" in at.attrib), "passed")
        for case in root.iter("testcase")
    }


def test_every_case_is_one_test_case_with_its_state(tmp_path):
    root = write(
        tmp_path,
        [
            row("a", "passed"),
            row("b", "failed", "Said 3, not 4."),
            row("c", "error", error="The engine went away."),
            row("d", "unscored", "The judge disagreed."),
            row("e", "cancelled"),
        ],
    )

    assert states(root) == {
        "a": "passed", "b": "failed", "c": "error", "d": "unscored", "e": "cancelled",
    }  # fmt: skip
    failure = next(root.iter("failure"))
    assert failure.attrib["message"] == failure.text == "Said 3, not 4."
    assert next(root.iter("testcase")).attrib["time"] == "1.500"


def test_what_was_not_scored_never_looks_passed_or_skipped(tmp_path):
    root = write(tmp_path, [row("a", state) for state in ("unscored", "passed")])

    assert states(root) == {"a": "unscored"}
    assert not list(root.iter("skipped"))
    assert root.attrib["errors"] == "1"


def test_samples_of_a_case_are_one_test_case_that_says_how_many_passed(tmp_path):
    root = write(tmp_path, [row("a", "passed"), row("a", "failed", "No."), row("a", "error", error="x")])

    assert states(root) == {"a": "failed"}
    assert next(root.iter("failure")).attrib["message"] == "1 of 3 samples passed. No."


def test_samples_without_a_result_are_an_error(tmp_path):
    run: Any = {"id": 6, "state": "cancelled", "total": 40, "error": ""}

    root = write(tmp_path, [row("a", "passed")], run=run)

    assert states(root)["(samples not run)"] == "cancelled"
    assert next(root.iter("error")).attrib["message"] == "39 of 40 samples have no result."


def test_a_run_without_results_is_an_error(tmp_path):
    run: Any = {"id": 6, "state": "failed", "total": 4, "error": "No engine."}

    assert write(tmp_path, [], run=run).attrib["errors"] == "1"


def test_rules_are_test_cases_of_their_own(tmp_path):
    root = write(tmp_path, [row("a", "passed")], gate=GATE)

    gate = root[1]
    assert gate.attrib["name"] == "gate of sums, rules 2"
    assert (gate.attrib["failures"], gate.attrib["errors"]) == ("1", "1")
    assert states(root)["w3"] == "undecided"


@settings(deadline=None)
@given(st.text())
def test_any_text_survives_as_xml(text):
    element = ElementTree.Element("a", b=clean(text))
    element.text = clean(text)

    again = ElementTree.fromstring(ElementTree.tostring(element))

    assert again.attrib["b"] == clean(text)


def test_forbidden_characters_are_written_out(tmp_path):
    root = write(tmp_path, [row("a\x00", "failed", "\x1b[31mred\ud800\uffff")])

    assert next(root.iter("testcase")).attrib["name"] == "a\\x00"
    assert next(root.iter("failure")).text == "\\x1b[31mred\\xd800\\xffff"


def test_long_reasons_are_cut(tmp_path):
    root = write(tmp_path, [row("a", "failed", "x" * 50_000)])

    failure = next(root.iter("failure"))
    assert len(failure.attrib["message"]) == 300
    assert len(failure.text or "") == 4000


def test_a_report_is_replaced_whole(tmp_path):
    write(tmp_path, [row("a", "passed")])
    with pytest.raises(RuntimeError):
        write(tmp_path, _breaking())  # type: ignore[arg-type]

    assert states(ElementTree.parse(tmp_path / "report.xml").getroot()) == {"a": "passed"}
    assert [path.name for path in tmp_path.iterdir()] == ["report.xml"]


class _breaking(list):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        yield row("b", "passed")
        raise RuntimeError
