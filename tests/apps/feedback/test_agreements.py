"""How far a verifier agrees with people: what is asked, and what comes of it."""

from typing import Any

import pytest

from apps.core import units
from apps.core.errors import Conflict, Refused
from apps.core.models import WorkUnit
from apps.feedback import agreements, services
from apps.feedback.models import AgreementRow, VerifierAgreement
from domain.calibration import FEW
from domain.contracts import RunVerifyBatch, TaskSpec
from domain.verifiers import verify
from tests.apps.feedback.conftest import RIGHT, WRONG

pytestmark = pytest.mark.django_db


@pytest.fixture
def label(make_case: Any, actor: Any) -> Any:
    """label(id, kind) makes a case of its own source and labels it."""

    def make(external_id: str, kind: str = "wrong_value", correction: str = RIGHT, **more: Any) -> Any:
        more.setdefault("prompt", f"Invoice {external_id}: what is the total of {external_id}? JSON.")
        case = make_case(external_id, cluster=f"source-{external_id}", **more)
        good = kind == "not_a_failure"
        services.case_label(
            case=case,
            kind=kind,
            severity="" if good else "major",
            correction="" if good else correction,
            by=actor,
        )
        return case

    return make


def finish(store: Any, change: Any = None) -> VerifierAgreement:
    """What the worker would report, with some outcomes changed."""
    unit = WorkUnit.objects.open().get(kind="verify_batch")
    units.units_pump()
    outcomes = []
    for item in store.iter_jsonl(RunVerifyBatch.model_validate(unit.payload).items_digest):
        verdict = verify(TaskSpec.model_validate(item["task"]), item["answer"], {})
        outcomes.append({"states": [verdict.state], "reasons": list(verdict.reasons)})
    if change:
        change(outcomes)
    result = {"results_digest": store.put_jsonl(outcomes), "counts": {}}
    units.unit_report(report={"type": "UnitFinished", "unit_id": unit.pk, "attempt": 1, "result": result})
    return VerifierAgreement.objects.get()


def test_a_reference_made_from_a_correction_is_no_evidence_that_the_correction_passes(
    label: Any, family: Any, actor: Any, store: Any
) -> None:
    label("e1")

    agreement = services.agreement_start(verifier=family.verifier, by=actor)

    assert list(agreement.rows.values_list("text", "passes")) == [("answer", False)]


def test_with_a_reference_of_its_own_the_correction_counts_too(
    label: Any, family: Any, actor: Any, store: Any
) -> None:
    reference = {"invoice": "INV-42", "total": 120.5}
    verifier = {"kind": "json_fields", "params": {"fields": {"invoice": "text", "total": "number"}}}
    label("e1", reference=reference, verifier=verifier)
    label("e2", "not_a_failure", answer=RIGHT, reference=reference, verifier=verifier)

    services.agreement_start(verifier=family.verifier, by=actor)
    agreement = finish(store)

    rows = set(agreement.rows.values_list("text", "passes", "state"))
    assert rows == {("answer", False, "failed"), ("correction", True, "passed"), ("answer", True, "passed")}
    assert (agreement.n, agreement.caught, agreement.cleared) == (3, 1, 2)


def test_cases_that_show_nothing_are_counted_by_reason(
    label: Any, family: Any, actor: Any, store: Any, make_case: Any
) -> None:
    label("e1")
    label("e2", "not_a_failure", answer=RIGHT)
    case = label("e3")
    other = type(actor)(project=actor.project, name="other", role="admin")
    services.case_label(case=case, kind="not_a_failure", severity="", by=other)

    agreement = services.agreement_start(verifier=family.verifier, by=actor)

    assert agreement.left_out == {"no_reference": 1, "people_disagree": 1}
    assert agreement.size == 1


def test_few_answers_give_counts_and_no_figure(label: Any, family: Any, actor: Any, store: Any) -> None:
    label("e1")
    services.agreement_start(verifier=family.verifier, by=actor)

    agreement = finish(store)

    assert agreement.too_small == f"n too small: both decided 1 answers, {FEW} are the least."
    assert (agreement.agreement, agreement.kappa, agreement.f1) == (None, None, None)
    assert (agreement.n, agreement.caught) == (1, 1)


def test_enough_answers_give_agreement_kappa_and_f1_with_intervals(
    label: Any, family: Any, actor: Any, store: Any, project: Any
) -> None:
    verifier = services.verifier_create(
        project=project, name="invoice_fields", kind="contains", params={"texts": ["120.50"]}, by=actor
    )
    services.family_use_verifier(family=family, verifier=verifier, by=actor)
    for index in range(FEW // 2 + 1):
        label(f"e{index}")

    services.agreement_start(verifier=verifier, by=actor)

    def spoil(outcomes: Any) -> None:
        outcomes[0]["states"] = ["passed"]  # a failure let through
        outcomes[1]["states"] = ["failed"]  # a good answer refused
        outcomes[2]["states"] = ["unscored"]
        outcomes[3]["states"] = ["error"]

    agreement = finish(store, spoil)

    assert agreement.n == FEW + 2 - 2
    assert (agreement.missed, agreement.accused, agreement.unscored, agreement.errors) == (1, 1, 1, 1)
    assert agreement.clusters == FEW // 2  # both answers of the third case are undecided
    assert agreement.agreement["value"] == pytest.approx((agreement.n - 2) / agreement.n)
    for figure in (agreement.agreement, agreement.kappa, agreement.f1):
        assert figure["low"] < figure["value"] < figure["high"]
    wrong = list(agreements.disagreements(agreement))
    assert [(row.passes, row.state) for row in wrong] == [(False, "passed"), (True, "failed")]
    assert [row.state for row in agreements.undecided(agreement)] == ["unscored", "error"]


def test_one_measurement_of_a_version_runs_at_a_time(label: Any, family: Any, actor: Any, store: Any) -> None:
    label("e1")
    services.agreement_start(verifier=family.verifier, by=actor)

    with pytest.raises(Conflict, match="being measured already"):
        services.agreement_start(verifier=family.verifier, by=actor)
    assert VerifierAgreement.objects.count() == 1
    assert AgreementRow.objects.count() == 1


def test_a_case_deleted_meanwhile_is_left_out(label: Any, family: Any, actor: Any, store: Any) -> None:
    gone = label("e1")
    label("e2")
    services.agreement_start(verifier=family.verifier, by=actor)
    gone.delete()

    assert finish(store).n == 1


def test_nothing_labelled_is_said_with_what_to_do(family: Any, actor: Any, project: Any, store: Any) -> None:
    with pytest.raises(Refused, match="No case of invoice_fields is labelled yet"):
        services.agreement_start(verifier=family.verifier, by=actor)
    alone = services.verifier_create(
        project=project, name="alone", kind="contains", params={"texts": ["a"]}, by=actor
    )
    with pytest.raises(Refused, match="No family is judged by this verifier"):
        services.agreement_start(verifier=alone, by=actor)


def test_an_undone_label_counts_no_more(label: Any, family: Any, actor: Any, store: Any) -> None:
    case = label("e1")
    services.label_undo(label=case.labels.get(), by=actor)

    with pytest.raises(Refused, match="No case"):
        services.agreement_start(verifier=family.verifier, by=actor)


def test_what_cannot_be_judged_says_nothing_about_the_verifier(
    label: Any, family: Any, actor: Any, store: Any
) -> None:
    label("e1")
    agreement = services.agreement_start(verifier=family.verifier, by=actor)
    unit = WorkUnit.objects.get(kind="verify_batch")

    agreements.agreement_failed(unit, "no worker")

    agreement.refresh_from_db()
    assert agreement.error == "no worker"
    assert agreement.agreement is None
    assert WRONG not in agreement.error


def test_starting_asks_the_database_a_constant_number_of_times(
    label: Any, family: Any, actor: Any, store: Any, django_assert_max_num_queries: Any
) -> None:
    for index in range(6):
        label(f"e{index}")

    with django_assert_max_num_queries(30):
        services.agreement_start(verifier=family.verifier, by=actor)
