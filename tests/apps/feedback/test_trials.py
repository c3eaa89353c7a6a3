"""Verifiers tried on answers before anybody relies on them."""

import json
from typing import Any

import pytest

from apps.core import units
from apps.core.errors import Refused
from apps.core.models import AuditEvent, WorkUnit
from apps.feedback import services
from apps.feedback.models import VerifierTrial
from apps.feedback.trials import answers_of

pytestmark = pytest.mark.django_db
GRADER = {"source": "def grade(sample, item):\n    return 1.0\n"}


@pytest.fixture
def attempt(project: Any, actor: Any, store: Any) -> Any:
    def run(kind: str, params: Any, *answers: str, **more: Any) -> Any:
        return services.verifier_try(
            project=project, kind=kind, params=params, answers=answers, by=actor, **more
        )

    return run


def test_a_pure_verifier_answers_at_once_with_checks_and_reasons(attempt: Any) -> None:
    tried = attempt("contains", {"texts": ["a", "b"]}, "a b", "a")

    assert [result["state"] for result in tried.results] == ["passed", "failed"]
    assert tried.results[1]["reasons"] == ["'b' does not stand in the answer."]
    assert tried.results[1]["checks"][0]["role"] == "terminal"
    assert not WorkUnit.objects.exists()


@pytest.mark.parametrize(
    ("kind", "params", "reference", "answer"),
    [
        ("exact", {}, "42", "42"),
        ("numeric", {}, "42", "It is 42."),
        ("json_fields", {"fields": {"a": "number"}}, '{"a": 1}', '{"a": 1}'),
        ("similarity", {"metric": "bleu", "threshold": 0.9}, '["one two", "three"]', "three"),
        ("contains", {"texts": ["x"]}, "", "x"),
    ],
)
def test_a_typed_reference_is_read_as_the_kind_needs_it(
    attempt: Any, kind: str, params: Any, reference: str, answer: str
) -> None:
    (result,) = attempt(kind, params, answer, reference=reference).results

    assert result["state"] == "passed"


@pytest.mark.parametrize(
    ("kind", "params", "answers", "more", "field"),
    [
        ("contains", {}, ["x"], {}, "texts"),
        ("contains", {"texts": ["x"]}, [], {}, "answers"),
        ("contains", {"texts": ["x"]}, ["x"] * 21, {}, "answers"),
        ("contains", {"texts": ["x"]}, ["x" * 3_000_001], {}, "answers"),
        ("exact", {}, ["x"], {}, "reference"),
        ("numeric", {}, ["x"], {"reference": "many"}, "reference"),
        ("regex", {"pattern": "(a+)+"}, ["x"], {}, "pattern"),
        ("contains", {"texts": ["x"]}, ["x"], {"reference": json.loads("[" * 200 + "]" * 200)}, "reference"),
    ],
)
def test_what_cannot_be_tried_says_where(
    attempt: Any, kind: str, params: Any, answers: Any, more: Any, field: str
) -> None:
    with pytest.raises(Refused) as caught:
        attempt(kind, params, *answers, **more)

    assert caught.value.detail["field"] == field


def test_three_megabytes_are_tried(attempt: Any) -> None:
    (result,) = attempt("contains", {"texts": ["x"]}, "y" * 3_000_000).results

    assert result["state"] == "failed"


def test_a_case_brings_question_answers_and_reference(attempt: Any, labelled: Any) -> None:
    fields = {"fields": {"invoice": "text", "total": "number"}}

    tried = attempt("json_fields", fields, case=labelled)

    assert [result["state"] for result in tried.results] == ["failed", "passed"]


def test_what_needs_a_sandbox_is_judged_by_a_worker(attempt: Any, project: Any, store: Any) -> None:
    tried = attempt("grader_python", GRADER, "x", "y")
    (unit,) = WorkUnit.objects.all()
    units.units_pump()
    outcomes = [
        {
            "states": ["passed"],
            "reasons": [],
            "evidence": {"grader_python": {"status": "ok", "result": 0.75}},
        },
        {"states": ["error"], "reasons": ["grader_python: lost"], "evidence": {}},
    ]
    result = {"results_digest": store.put_jsonl(outcomes), "counts": {}}

    units.unit_report(report={"type": "UnitFinished", "unit_id": unit.pk, "attempt": 1, "result": result})

    trial = VerifierTrial.objects.get(pk=tried.trial.pk)
    assert unit.payload["keep_evidence"] is True
    assert [(row["state"], row["score"]) for row in trial.results] == [("passed", 0.75), ("error", None)]
    assert trial.results[0]["checks"][0]["name"] == "grade"
    assert answers_of(trial) == ["x", "y"]
    assert AuditEvent.objects.filter(action="verifier.try").count() == 1


def test_a_trial_that_cannot_run_says_so(attempt: Any) -> None:
    tried = attempt("grader_python", GRADER, "x")
    (unit,) = WorkUnit.objects.all()
    units.units_pump()

    for attempt_number in (1, 2):
        WorkUnit.objects.filter(pk=unit.pk).update(attempt=attempt_number, state="running")
        units.unit_report(
            report={
                "type": "UnitFailed",
                "unit_id": unit.pk,
                "attempt": attempt_number,
                "error": "no sandbox",
                "retryable": False,
            }
        )

    tried.trial.refresh_from_db()
    assert "no sandbox" in tried.trial.error
    assert tried.trial.finished_at is not None
