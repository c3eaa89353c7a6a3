"""Verdicts about a repository, from the report of its hidden tests; and which files are graded at all."""

from typing import Any

import pytest

from domain.verifiers import InvalidVerifier, check_spec
from domain.verifiers.repo_tests import graded, importable
from domain.verifiers.repository import files_in_text, graded_files
from domain.verifiers.strict_json import NotStrictJson

FILES = {"shop/__init__.py": "", "shop/cart.py": "x = 1\n", "README.md": "Shop\n"}
SHOWN = {"tests/test_shown.py": "def test_shown(): ...\n"}
IDS = ["tests/test_h.py::test_a", "tests/test_h.py::test_b"]
REFERENCE = {
    "files": FILES,
    "shown": SHOWN,
    "tests": {"tests/test_h.py": "…"},
    "ids": IDS,
    "failing": IDS[:1],
}
SOURCES = ["shop/*.py"]


def report(*states: str, status: str = "ok", **more: Any) -> dict[str, Any]:
    tests = [{"id": name, "status": state, "reason": ""} for name, state in zip(IDS, states, strict=False)]
    return {"repo_tests": {"status": status, "tests": tests, "detail": ""} | more}


def run(judge: Any, evidence: Any) -> Any:
    return judge("repo_tests", REFERENCE, "patch", evidence, sources=SOURCES)


def test_all_tests_passed_is_a_pass(judge: Any) -> None:
    verdict = run(judge, report("passed", "passed"))

    assert verdict.state == "passed"
    assert [check.name for check in verdict.checks if check.role == "terminal"] == IDS


@pytest.mark.parametrize("state", ["failed", "skipped", "error", "xfailed", "missing", ""])
def test_row_06_anything_but_passed_is_failed(judge: Any, state: str) -> None:
    assert run(judge, report("passed", state)).state == "failed"


def test_row_05_a_missing_test_is_failed(judge: Any) -> None:
    verdict = run(judge, report("passed"))

    assert verdict.state == "failed"
    assert "did not run" in verdict.reasons[0]


def test_credit_is_for_repaired_tests_and_none_where_something_broke(judge: Any) -> None:
    reference = {**REFERENCE, "failing": IDS}

    assert judge("repo_tests", reference, "p", report("passed", "failed"), sources=SOURCES).score == 0.5
    assert run(judge, report("passed", "failed")).score == 0.0
    assert run(judge, report("failed", "passed")).score == 0.0


@pytest.mark.parametrize(
    "more",
    [
        {"extra": ["tests/test_h.py::test_c"]},
        {"controls": "A test that must fail was reported as passed."},
        {"suspicious": ["shop/cart.py: import gc (line 1)"]},
        {"status": "nonzero"},
        {"status": "timeout"},
    ],
)
def test_a_broken_guard_fails_whatever_the_tests_say(judge: Any, more: dict[str, Any]) -> None:
    verdict = run(judge, report("passed", "passed", **more))

    assert verdict.state == "failed"
    assert verdict.score == 0.0


def test_row_04_meddling_is_logged_and_the_tests_decide(judge: Any) -> None:
    verdict = run(judge, report("passed", "passed", meddling=["tests/test_shown.py"]))

    assert verdict.state == "passed"
    (check,) = [check for check in verdict.checks if check.name == "tests untouched"]
    assert check.score == 0.0
    assert "tests/test_shown.py" in check.reason


@pytest.mark.parametrize(
    "evidence",
    [
        {},
        {"repo_tests": None},
        {"repo_tests": {}},
        report(status="infra_error"),
        report(status="unavailable"),
    ],
)
def test_without_the_sandbox_s_word_nothing_is_decided(judge: Any, evidence: Any) -> None:
    assert run(judge, evidence).state == "unscored"


@pytest.mark.parametrize("forged", ["passed", [1], [{"status": "passed"}], {"a": 1}])
def test_a_malformed_report_is_no_pass(judge: Any, forged: Any) -> None:
    assert run(judge, {"repo_tests": {"status": "ok", "tests": forged}}).state == "failed"


def test_only_allow_listed_sources_are_graded() -> None:
    answer = {
        **FILES,
        **SHOWN,
        "shop/cart.py": "x = 2\n",
        "shop/new.py": "y = 1\n",
        "shop/deep/er.py": "z = 1\n",
        "README.md": "changed",
        "notes.txt": "mine",
    }

    files = graded_files(FILES, SHOWN, answer, SOURCES).files

    assert files == {**FILES, "shop/cart.py": "x = 2\n", "shop/new.py": "y = 1\n"}


@pytest.mark.parametrize(
    "path",
    [
        "shop/conftest.py",
        "shop/sitecustomize.py",
        "shop/test_x.py",
        "shop/x_test.py",
        "shop/checks.py",
        "shop/../tests/test_h.py",
        "/shop/x.py",
    ],
)
def test_row_02_files_that_steer_a_runner_are_never_sources(path: str) -> None:
    changed = {**FILES, **SHOWN, path: "raise SystemExit(0)"}

    assert path not in graded_files(FILES, SHOWN, changed, ["shop/*.py", "shop/*/*.py", "/shop/*.py"]).files


def test_row_04_what_was_done_to_tests_and_configuration_is_named() -> None:
    answer = {**FILES, "tests/test_shown.py": "pass", "conftest.py": "", "README.md": "changed"}

    assert graded_files(FILES, SHOWN, answer, SOURCES).meddling == (
        "README.md",
        "conftest.py",
        "tests/test_shown.py",
    )
    assert graded_files(FILES, SHOWN, FILES, SOURCES).meddling == ("tests/test_shown.py",)
    assert graded_files(FILES, SHOWN, {**FILES, **SHOWN, "tests/test_mine.py": ""}, SOURCES).meddling == ()


def test_a_deleted_source_is_deleted_and_a_deleted_test_is_put_back() -> None:
    graded = graded_files(FILES, SHOWN, {"shop/__init__.py": "", "README.md": "Shop\n"}, SOURCES)

    assert "shop/cart.py" not in graded.files
    assert graded.meddling == ("tests/test_shown.py",)


def test_a_repository_that_became_too_large_is_not_graded() -> None:
    many = {f"shop/m{number}.py": "" for number in range(300)}

    assert graded_files(FILES, SHOWN, {**FILES, **SHOWN, **many}, SOURCES).trouble
    assert graded_files(FILES, SHOWN, {**FILES, **SHOWN, "shop/big.py": "#" * (3 << 20)}, SOURCES).trouble


def test_files_are_read_from_text_strictly() -> None:
    assert files_in_text("```python\nx = 1\n```", "a.py") == {"a.py": "x = 1\n"}
    assert files_in_text('{"files": {"a.py": "x = 1"}}') == {"a.py": "x = 1"}
    for text in ("", "x = 1", '{"files": {"a.py": 1}}', '{"files": []}', '{"files": {}, "files": {}}'):
        with pytest.raises(NotStrictJson):
            files_in_text(text)


def test_a_workspace_counts_before_the_text(task: Any) -> None:
    one = task("repo_tests", REFERENCE, sources=SOURCES)
    workspace = {"status": "ok", "files": {**FILES, **SHOWN, "shop/cart.py": "x = 3\n"}}

    assert graded(one, "ignored", workspace).files["shop/cart.py"] == "x = 3\n"
    assert graded(one, "", None).trouble
    assert importable(one, FILES) == ("shop",)


@pytest.mark.parametrize(
    "changed", [{"ids": ["tests/test_other.py::test_a"]}, {"ids": []}, {"failing": ["x::y"]}, {"tests": {}}]
)
def test_an_unsound_reference_is_refused(task: Any, changed: dict[str, Any]) -> None:
    unsound = task("repo_tests", {**REFERENCE, **changed}, sources=SOURCES)

    with pytest.raises(InvalidVerifier):
        check_spec(unsound.verifier, unsound.reference)
