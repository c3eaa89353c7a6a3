"""Entries of a gauntlet: where they come from, how they leave, and what every run said of them."""

import pytest

from apps.core.errors import Conflict, Refused
from apps.core.models import AuditEvent, WorkUnit
from apps.feedback import gauntlet_runs, services
from apps.feedback.models import GauntletEntry, GauntletRun, TaskAsset
from domain.contracts import RunVerifyBatch, TaskSpec
from domain.verifiers import verify
from packs.starter.tasks import generate

pytestmark = pytest.mark.django_db


@pytest.fixture
def verifier(project, actor, store):
    made = services.family_ensure(
        project=project, name="invoice_arithmetic", pack="starter", verifier_kind="numeric", by=actor
    )
    services.assets_import(
        project=project, family=made, tasks=generate("invoice_arithmetic", seed=3, count=4), by=actor
    )
    return made.verifier


def run(store, verifier, actor, change=None):
    """One run of the gauntlet as a worker would judge it, with one item's states changed by name."""
    unit = services.verifier_check(verifier=verifier, by=actor)
    message = RunVerifyBatch.model_validate(unit.payload)
    results = []
    for item in store.iter_jsonl(message.items_digest):
        verdict = verify(TaskSpec.model_validate(item["task"]), item["answer"], {})
        name = GauntletEntry.objects.get(pk=item["entry"]).name
        states = (change or {}).get(name, [verdict.state] * message.repeats)
        results.append({"states": states, "reasons": list(verdict.reasons)[:3]})
    gauntlet_runs.check_finished(unit, {"results_digest": store.put_jsonl(results), "counts": {}})
    WorkUnit.objects.filter(pk=unit.pk).update(state="done")
    verifier.refresh_from_db()
    return GauntletRun.objects.get(verifier=verifier, number=verifier.checks)


def test_entries_of_the_catalogue_say_their_row_and_their_source(verifier, store, actor):
    run(store, verifier, actor)

    key = verifier.entries.filter(name__endswith="judge key: colon").first()
    nothing = verifier.entries.filter(origin="no_op").first()
    assert (key.row, key.source, key.added_by) == (21, "arXiv 2507.08794", "")
    assert (nothing.row, nothing.must_pass) == (19, False)


def test_every_run_keeps_what_it_said_of_every_entry(verifier, store, actor):
    first = run(store, verifier, actor)
    name = verifier.entries.get(name__endswith="not a number", task__id=first_task(verifier)).name
    second = run(store, verifier, actor, {name: ["passed"] * 3})

    entry = verifier.entries.get(name=name)
    said = [(outcome.run.number, outcome.states[0], outcome.right) for outcome in entry.outcomes.all()]
    assert said == [(2, "passed", False), (1, "failed", True)]
    assert (first.admission, first.wrong, first.size) == ("admitted", 0, verifier.entries.count())
    assert (second.admission, second.wrong, second.started_by) == ("refused", 1, actor.name)
    assert second.counts["passed"] == first.counts["passed"] + 3


def first_task(verifier):
    return TaskAsset.objects.filter(verifier=verifier).order_by("pk").first().key


def test_a_run_that_could_not_run_says_why_and_decides_nothing(verifier, store, actor):
    unit = services.verifier_check(verifier=verifier, by=actor)

    gauntlet_runs.check_failed(unit, "no sandbox")

    run_row = GauntletRun.objects.get(verifier=verifier)
    assert (run_row.admission, run_row.error) == ("", "no sandbox")
    assert run_row.finished_at is not None


def test_a_retired_entry_is_judged_no_more_and_keeps_its_history(verifier, store, actor):
    run(store, verifier, actor)
    entry = verifier.entries.filter(name__endswith="infinity").first()

    services.entry_retire(entry=entry, reason="Infinity is asked for in this family.", by=actor)
    verifier.refresh_from_db()
    assert verifier.admission == "unchecked"
    run(store, verifier, actor)

    entry.refresh_from_db()
    assert (entry.retired_by, entry.retired_reason) == (actor.name, "Infinity is asked for in this family.")
    assert [outcome.run.number for outcome in entry.outcomes.all()] == [1]
    assert verifier.admission == "admitted"
    assert AuditEvent.objects.filter(action="gauntlet.retire").count() == 1


def test_retiring_needs_a_reason_and_happens_once(verifier, store, actor):
    run(store, verifier, actor)
    entry = verifier.entries.first()

    with pytest.raises(Refused, match="why this entry"):
        services.entry_retire(entry=entry, reason="  ", by=actor)
    services.entry_retire(entry=entry, reason="wrong", by=actor)
    with pytest.raises(Conflict, match="retired already"):
        services.entry_retire(entry=entry, reason="wrong", by=actor)


def test_adding_a_retired_entry_again_brings_it_back(verifier, store, actor):
    task = TaskAsset.objects.filter(verifier=verifier).first().task
    entry = services.entry_add(
        verifier=verifier, origin="exploit", name="found", task=task, answer="1 or 2", by=actor
    )
    services.entry_retire(entry=entry, reason="a mistake", by=actor)

    again = services.entry_add(
        verifier=verifier, origin="exploit", name="found", task=task, answer="1 or 2", by=actor
    )

    assert (again.pk, again.retired_at, again.added_by) == (entry.pk, None, actor.name)


def test_turns_travel_to_the_worker_in_place_of_an_answer(verifier, store, actor):
    task = TaskAsset.objects.filter(verifier=verifier).first().task

    services.entry_add(
        verifier=verifier, origin="exploit", name="loop", task=task, turns=["one", "two"], row=23, by=actor
    )
    unit = services.verifier_check(verifier=verifier, by=actor)

    items = store.iter_jsonl(RunVerifyBatch.model_validate(unit.payload).items_digest)
    assert next(item for item in items if item["turns"]) | {"task": 0} == {
        "entry": verifier.entries.get(name="loop").pk, "task": 0, "answer": "", "turns": ["one", "two"],
    }  # fmt: skip


def test_an_entry_that_changed_while_the_gauntlet_ran_is_no_admission(verifier, store, actor):
    unit = services.verifier_check(verifier=verifier, by=actor)
    items = list(store.iter_jsonl(RunVerifyBatch.model_validate(unit.payload).items_digest))
    entry = verifier.entries.order_by("pk").first()
    GauntletEntry.objects.filter(pk=entry.pk).update(answer="something else")
    states = {True: ["passed"] * 3, False: ["failed"] * 3}
    results = [
        {"states": states[GauntletEntry.objects.get(pk=item["entry"]).must_pass], "reasons": []}
        for item in items
    ]

    gauntlet_runs.check_finished(unit, {"results_digest": store.put_jsonl(results), "counts": {}})

    verifier.refresh_from_db()
    assert verifier.admission == "refused"
    assert "was added meanwhile" in verifier.reasons[0]


def test_a_row_outside_the_catalogue_is_refused(verifier, actor):
    task = TaskAsset.objects.filter(verifier=verifier).first().task

    with pytest.raises(Refused, match="rows 1 to 25"):
        services.entry_add(
            verifier=verifier, origin="exploit", name="x", task=task, answer="", row=99, by=actor
        )


def test_impossible_tasks_need_no_good_answer_and_every_answer_to_them_must_fail(
    project, actor, store, monkeypatch
):
    family = services.family_ensure(
        project=project, name="invoice_arithmetic", pack="starter", verifier_kind="numeric", by=actor
    )
    tasks = [
        task.model_copy(update={"tags": {"canary": True}})
        for task in generate("invoice_arithmetic", seed=3, count=3)
    ]
    services.assets_import(project=project, family=family, tasks=tasks, by=actor)

    run(store, family.verifier, actor, dict.fromkeys(_all_names(tasks), ["failed"] * 3))

    assert family.verifier.entries.filter(must_pass=True).count() == 0
    assert family.verifier.entries.filter(origin="known_bad").exists()
    assert not TaskAsset.objects.exclude(correction="").exists()
    family.verifier.refresh_from_db()
    assert family.verifier.admission == "admitted"


def _all_names(tasks):
    return [f"{task.id}: nothing" for task in tasks]
