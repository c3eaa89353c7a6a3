"""Verifiers and the gauntlet that lets them train."""

import pytest

from apps.core import units
from apps.core.errors import Conflict, Refused
from apps.core.models import WorkUnit
from apps.feedback import gauntlet, gauntlet_runs, services
from apps.feedback.models import GauntletEntry
from domain.contracts import RunVerifyBatch, TaskSpec
from domain.verifiers import verify
from packs.starter.tasks import generate

pytestmark = pytest.mark.django_db


@pytest.fixture
def checked_family(project, actor, store):
    made = services.family_ensure(
        project=project, name="invoice_fields", pack="starter", verifier_kind="json_fields", by=actor
    )
    services.assets_import(
        project=project, family=made, tasks=generate("invoice_fields", seed=3, count=6), by=actor
    )
    return made


def judge(store, unit, change=None):
    """What the worker would report, with one outcome changed."""
    results = []
    message = RunVerifyBatch.model_validate(unit.payload)
    for item in store.iter_jsonl(message.items_digest):
        verdict = verify(TaskSpec.model_validate(item["task"]), item["answer"], {})
        results.append({"states": [verdict.state] * message.repeats, "reasons": list(verdict.reasons)[:3]})
    if change:
        change(results)
    return {"results_digest": store.put_jsonl(results), "counts": {}}


def run(store, verifier, actor, change=None):
    unit = services.verifier_check(verifier=verifier, by=actor)
    gauntlet_runs.check_finished(unit, judge(store, unit, change))
    WorkUnit.objects.filter(pk=unit.pk).update(state="done")
    verifier.refresh_from_db()
    return verifier


def test_honest_verifier_is_admitted(checked_family, store, actor):
    verifier = run(store, checked_family.verifier, actor)

    assert (verifier.admission, verifier.reasons) == ("admitted", [])
    origins = set(verifier.entries.values_list("origin", flat=True))
    assert origins == {"known_good", "known_bad", "no_op", "exploit"}
    assert not verifier.entries.filter(outcome="").exists()


@pytest.mark.parametrize("name", ["invoice_fields", "invoice_arithmetic", "tool_call"])
def test_every_exploit_of_the_catalogue_fails(name, project, actor):
    kind = {"invoice_fields": "json_fields", "invoice_arithmetic": "numeric"}.get(name, name)
    made = services.family_ensure(project=project, name=name, pack="starter", verifier_kind=kind, by=actor)
    services.assets_import(project=project, family=made, tasks=generate(name, seed=5, count=4), by=actor)

    gauntlet.entries_refresh(verifier=made.verifier)

    exploits = made.verifier.entries.exclude(origin="known_good")
    passing = [
        e.name for e in exploits if verify(TaskSpec.model_validate(e.task), e.answer, {}).state == "passed"
    ]
    assert exploits.count() > 20
    assert passing == []


@pytest.mark.parametrize(
    ("states", "words"),
    [
        (["failed"] * 3, "must be passed and was failed"),
        (["passed", "failed", "passed"], "judged differently in 3 repeats"),
        (["error"] * 3, "must be passed and was error"),
        (["unscored"] * 3, "must be passed and was unscored"),
    ],
)
def test_one_wrong_judgement_refuses_the_verifier(checked_family, store, actor, states, words):
    def spoil(results):
        results[0]["states"] = states

    verifier = run(store, checked_family.verifier, actor, spoil)

    assert verifier.admission == "refused"
    assert words in verifier.reasons[0]


def test_exploit_that_passes_refuses_the_verifier(checked_family, store, actor):
    def spoil(results):
        for result in results:
            result["states"] = ["passed"] * 3

    verifier = run(store, checked_family.verifier, actor, spoil)

    assert verifier.admission == "refused"


def test_check_plans_one_unit_for_the_eval_queue(checked_family, store, actor):
    unit = services.verifier_check(verifier=checked_family.verifier, by=actor)

    assert (unit.kind, unit.queue, unit.payload["repeats"]) == ("verify_batch", "eval", 3)
    with pytest.raises(Conflict, match="being checked already"):
        services.verifier_check(verifier=checked_family.verifier, by=actor)


def test_gauntlet_without_tasks_is_refused(family, store, actor):
    with pytest.raises(Refused, match="at least one known good answer"):
        services.verifier_check(verifier=family.verifier, by=actor)


def test_report_of_the_worker_admits_through_the_units(checked_family, store, actor):
    unit = services.verifier_check(verifier=checked_family.verifier, by=actor)
    units.units_pump()
    result = judge(store, unit)

    units.unit_report(report={"type": "UnitFinished", "unit_id": unit.pk, "attempt": 1, "result": result})

    checked_family.verifier.refresh_from_db()
    assert checked_family.verifier.admission == "admitted"


def test_gauntlet_that_cannot_run_is_no_admission(checked_family, store, actor):
    unit = services.verifier_check(verifier=checked_family.verifier, by=actor)

    gauntlet_runs.check_failed(unit, "no sandbox")

    checked_family.verifier.refresh_from_db()
    assert checked_family.verifier.admission == "unchecked"
    assert "no sandbox" in checked_family.verifier.reasons[0]


def test_new_exploit_takes_the_admission_away(checked_family, store, actor):
    verifier = run(store, checked_family.verifier, actor)
    task = GauntletEntry.objects.filter(origin="exploit").first().task

    services.entry_add(verifier=verifier, origin="exploit", name="found", task=task, answer="{}", by=actor)

    verifier.refresh_from_db()
    assert verifier.admission == "unchecked"


def test_changed_parameters_make_the_next_revision(family, project, actor):
    same = services.verifier_create(
        project=project, name="invoice_fields", kind="json_fields", params={}, by=actor
    )
    other = services.verifier_create(
        project=project, name="invoice_fields", kind="json_fields", params={"fence": True}, by=actor
    )

    assert (same.pk, other.number, other.admission) == (family.verifier_id, 2, "unchecked")


@pytest.mark.parametrize(
    ("kind", "params", "words"),
    [("magic", {}, "There is no verifier"), ("numeric", {"tolerance": -1}, "parameters at tolerance")],
)
def test_impossible_verifier_is_refused(project, actor, kind, params, words):
    with pytest.raises(Refused, match=words):
        services.verifier_create(project=project, name="x", kind=kind, params=params, by=actor)
