"""Scores of data sets: only the full one passes, and guards hold before any scorer."""

from collections.abc import Callable
from typing import Any

import pytest

from domain.contracts import Verdict
from domain.verifiers.scorer_guards import GUARDS, guard, marked

Judge = Callable[..., Verdict]


def entry(dataset: str = "chain_sum", answer: str = "42") -> dict[str, Any]:
    return {"dataset": dataset, "seed": 1, "entry": "0" * 16, "answer": answer}


def scored(score: Any, **more: Any) -> dict[str, Any]:
    return {"scorer": {"status": "ok", "score": score, **more}}


def test_only_the_full_score_passes(judge: Judge) -> None:
    assert judge("scorer", entry(), "42", scored(1.0)).state == "passed"
    for score in (0.999, 0.5, 0.0, 1.2, -1.0):
        verdict = judge("scorer", entry(), "42", scored(score))
        assert verdict.state == "failed"
        assert verdict.score == 0.0


@pytest.mark.parametrize("score", [None, "1.0", True, [1.0]])
def test_what_is_no_number_decides_nothing(judge: Judge, score: Any) -> None:
    assert judge("scorer", entry(), "42", scored(score)).state == "unscored"


def test_silence_and_many_answers_fail_even_with_a_full_score(judge: Judge) -> None:
    for answer in ("", "  ", "<answer></answer>", "<answer>42</answer> or <answer>43</answer>"):
        assert judge("scorer", entry(), answer, scored(1.0)).state == "failed"


def test_a_scorer_that_dies_fails_the_answer_and_a_sandbox_that_breaks_decides_nothing(judge: Judge) -> None:
    for status in ("cpu", "oom", "timeout", "nonzero"):
        assert judge("scorer", entry(), "42", {"scorer": {"status": status}}).state == "failed"
    for status in ("infra_error", "unavailable", "?"):
        assert judge("scorer", entry(), "42", {"scorer": {"status": status}}).state == "unscored"
    assert judge("scorer", entry(), "42").state == "unscored"


def test_the_marked_answer_is_what_counts() -> None:
    assert marked("So <answer> 42 </answer>, I think.") == "42"
    assert marked("42\n") == "42"
    assert marked("<answer>1</answer><answer>2</answer>") == ""


@pytest.mark.parametrize(
    ("dataset", "known", "right"),
    [
        ("gsm_symbolic", "42", "$42"),
        ("coin_flip", "0.25", "1/4"),
        ("number_sorting", "['1.0', '2.5']", '["1", "2.50"]'),
        ("figlet_font", "cat", "C A T"),
        ("codeio", '{"a": 1, "b": 2}', '{"b": 2, "a": 1}'),
        ("quantum_lock", "A → B", "A, B"),
        ("countdown", "(1 + 2)*3", "3 * (2 + 1)"),
        ("simple_integration", "x**2/2 + C", "C + 0.5*x**2"),
        ("intermediate_integration", "sin(x)", "sin(x) + exp(1)*0"),
        ("polynomial_equations", "-0.04, 0.0", "0.0, -0.04"),
    ],
)
def test_guards_let_right_answers_of_another_form_through(dataset: str, known: str, right: str) -> None:
    assert guard(dataset, right, known) == ""


@pytest.mark.parametrize(
    ("dataset", "known", "wrong"),
    [
        ("gsm_symbolic", "42", "42 43 44"),
        ("coin_flip", "0.25", "0"),
        ("number_sorting", "['1.0', '2.5']", "[NaN, NaN]"),
        ("number_sorting", "['1.0', '2.5']", "['1.9', '2.5']"),
        ("figlet_font", "understanding", "understandings"),
        ("game_of_life_halting", "True", "False"),
        ("codeio", '{"a": 1}', '{"a": 1.5}'),
        ("word_sorting", "ant, bee", "ant, bee, cat"),
        ("time_intervals", "44 days, 19:40:00", "44 days, 19:40:00, 12:00:00"),
        ("advanced_geometry", "(16.000, -4.000)", "(16.000, -4.000), (3, 2)"),
        ("countdown", "(1 + 2)*3", "__import__('os')"),
        ("countdown", "(1 + 2)*3", "3 ** 2"),
        ("puzzle24", "1*2*3*4", "25 // 1"),
        ("simple_integration", "x**2", "Integral(x, x)"),
        ("simple_integration", "x**2", "x.__class__"),
        ("polynomial_multiplication", "x**2", "eval(x)"),
        ("polynomial_multiplication", "x**2", "lambda: 1"),
        ("complex_arithmetic", "1 + 2i", "nan"),
        ("pool_matrix", "1 2", "nan nan"),
        ("sokoban", "UDLR", "UDLR and so on"),
        ("chain_sum", "42", "4" * 1000),
        ("survo", "1 2\n3 4", "It is not 1 2\n3 4"),
        ("kakurasu", "0 1\n1 0", "It is not 0 1\n1 0"),
        ("knights_knaves", "Ann is a fool, and Bo is a sage.", "Not Ann is a fool, and Bo is a sage."),
    ],
)
def test_guards_stop_what_fools_a_scorer_or_runs_in_it(dataset: str, known: str, wrong: str) -> None:
    assert guard(dataset, wrong, known)


@pytest.mark.parametrize(
    ("dataset", "known", "endless"),
    [
        ("number_sorting", '["1", "2"]', '["1e999999999"]'),
        ("number_sorting", '["1", "2"]', '["1E-9_9999999"]'),
        ("coin_flip", "1/2", "1e999999999"),
        ("coin_flip", "1/2", "1e-99,9999999"),
    ],
)
def test_a_number_of_a_billion_digits_is_never_written_out(dataset: str, known: str, endless: str) -> None:
    assert guard(dataset, endless, known)


def test_every_guarded_data_set_is_a_family() -> None:
    from packs.reasoning.catalogue import DATA_SETS

    assert set(GUARDS) <= {one.name for one in DATA_SETS}
