"""Families of installed packs: added with tasks and gauntlet, checked, and listed with their records."""

import pytest
from django.db import connection

from apps.core.errors import Refused
from apps.core.models import Alert, AuditEvent, WorkUnit
from apps.core.units import unit_report, units_pump
from apps.feedback import pack_families, services
from apps.feedback.models import Family, TaskAsset
from apps.feedback.pack_selectors import pack_rows, packs_of
from domain.contracts import FamilyCheck, PackCheckResult
from packs.records import last_check, record_check
from packs.registry import packs

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(pack_families, "FAMILY_TASKS", 6)


def _check(name="invoice_fields", **more):
    values = {"pack": "starter", "tasks": 5, "gold_pass": 1.0, "noop_pass": 0.0, "bad_pass": 0.0}
    return FamilyCheck(name=name, checked_at="2026-11-30T10:00:00+00:00", **(values | more))


def test_a_family_comes_with_its_tasks_and_its_gauntlet_starts(project, actor, store):
    family = services.pack_family_add(project=project, name="invoice_arithmetic", by=actor)

    assert (family.pack, family.verifier.kind) == ("starter", "numeric")
    assert TaskAsset.objects.filter(family=family).count() == 6
    assert WorkUnit.objects.get(owner=f"feedback.verifier:{family.verifier_id}").kind == "verify_batch"
    assert services.pack_family_add(project=project, name="invoice_arithmetic", by=actor) == family


def test_a_family_that_no_pack_brings_is_refused(project, actor):
    with pytest.raises(Refused, match="No installed pack brings the family “nothing”"):
        services.pack_family_add(project=project, name="nothing", by=actor)


def test_a_family_that_runs_code_says_so_while_there_is_no_sandbox(project, actor, store):
    services.sandbox_state_apply(project=project, problem="User namespaces are forbidden.")

    code = services.pack_family_add(project=project, name="python_functions", by=actor)
    words = services.pack_family_add(project=project, name="invoice_fields", by=actor)

    assert (code.unavailable, words.unavailable) == ("User namespaces are forbidden.", "")


def test_families_are_marked_by_what_their_tasks_need(project, actor, store):
    for name in ("python_functions", "invoice_fields"):
        services.pack_family_add(project=project, name=name, by=actor)

    sentence = services.sandbox_state_apply(project=project, problem="No bwrap.")

    assert sentence == "No sandbox: Python functions cannot be verified"
    assert Family.objects.exclude(unavailable="").get().name == "python_functions"
    assert services.sandbox_state_apply(project=project, problem="") == ""
    assert not Family.objects.exclude(unavailable="").exists()
    assert not Alert.objects.filter(resolved_at=None).exists()


def test_a_whole_pack_is_added_family_by_family_in_the_background(
    project, actor, store, monkeypatch, django_capture_on_commit_callbacks
):
    sent = []
    monkeypatch.setattr("apps.core.dispatch.send_now", lambda task, *args, queue: sent.append((task, *args)))
    services.pack_family_add(project=project, name="invoice_fields", by=actor)

    with django_capture_on_commit_callbacks(execute=True):
        names = services.pack_add(project=project, pack="starter", by=actor)

    assert names == ["invoice_arithmetic", "tool_call", "python_functions"]
    added = [call for call in sent if call[0] == "feedback.pack_family_add"]
    assert added == [("feedback.pack_family_add", project.pk, name, actor.name) for name in names]
    assert AuditEvent.objects.filter(action="pack.add").count() == 1


def test_the_task_of_the_queue_adds_the_family_in_the_name_of_who_asked(project, store):
    from apps.feedback.tasks import pack_family_add

    pack_family_add(project.pk, "tool_call", "ada")
    pack_family_add(999_999, "tool_call", "ada")

    assert Family.objects.get().verifier.created_by == "ada"


def test_a_check_is_a_unit_of_the_eval_queue_and_its_records_are_kept(project, actor, store):
    unit = services.packs_check(project=project, families=["tool_call"], sample=2, seed=7, by=actor)
    units_pump()
    result = PackCheckResult(families=(_check("tool_call", seed=7),)).model_dump(mode="json")

    unit_report(report={"type": "UnitFinished", "unit_id": unit.pk, "attempt": 1, "result": result})

    assert (unit.kind, unit.queue) == ("pack_check", "eval")
    assert unit.payload == {"families": ["tool_call"], "sample": 2, "seed": 7}
    assert last_check(store, "tool_call").seed == 7


@pytest.mark.parametrize(
    ("values", "words"),
    [({"families": ["nothing"]}, "No installed pack"), ({"sample": 0}, "between 1 and 1,000")],
)
def test_an_impossible_check_is_refused(project, actor, values, words):
    with pytest.raises(Refused, match=words):
        services.packs_check(project=project, by=actor, **values)


def test_rows_say_what_was_checked_and_what_the_project_has(project, actor, store):
    record_check(store, _check("invoice_fields"))
    record_check(store, _check("tool_call", bad_pass=0.2))
    services.pack_family_add(project=project, name="tool_call", by=actor)

    rows = {row.family.name: (row.state, bool(row.added)) for row in pack_rows(project, pack="starter")}

    assert rows == {
        "invoice_fields": ("sound", False),
        "invoice_arithmetic": ("unchecked", False),
        "tool_call": ("unsound", True),
        "python_functions": ("unchecked", False),
    }


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"q": "python"}, ["python_functions"]),
        ({"kind": "numeric"}, ["invoice_arithmetic"]),
        ({"state": "sound"}, ["invoice_fields"]),
        ({"state": "added"}, []),
        ({"environment": "coding"}, []),
    ],
)
def test_rows_are_filtered(project, store, filters, names):
    record_check(store, _check("invoice_fields"))

    assert [row.family.name for row in pack_rows(project, pack="starter", **filters)] == names


def test_every_installed_family_is_listed_with_one_query(project, store, django_assert_num_queries):
    with django_assert_num_queries(1):
        listed = packs_of(project)

    assert {pack["name"] for pack in listed} == {name for name, pack in packs().items() if pack.families}


def test_a_family_may_hold_tasks_of_every_kind_that_its_pack_declares(project, actor, store, monkeypatch):
    from dataclasses import replace

    starter = packs()["starter"]
    mixed = replace(starter.families[1], verifier_kinds=("numeric", "exact"))
    pack = replace(starter, families=(mixed,))
    for place in ("apps.feedback.assets.pack_named", "apps.feedback.gauntlet.pack_named"):
        monkeypatch.setattr(place, lambda name: pack)
    family = services.pack_family_add(project=project, name="invoice_arithmetic", by=actor)
    (task,) = starter.generate("invoice_arithmetic", seed=99, count=1)
    spec = {"verifier": {"kind": "exact", "params": {}}, "reference": "42", "id": "starter.other.1.1"}
    words = type(task).model_validate(task.model_dump() | spec)

    services.assets_import(project=project, family=family, tasks=[words], by=actor)
    entry = services.entry_add(
        verifier=family.verifier, origin="exploit", name="x", task=words.model_dump(mode="json"), by=actor
    )

    assert TaskAsset.objects.filter(family=family, key="starter.other.1.1").exists()
    assert entry.task["verifier"]["kind"] == "exact"
    call = starter.generate("tool_call", seed=1, count=1)[0]
    other = words.model_copy(update={"verifier": call.verifier, "reference": call.reference})
    with pytest.raises(Refused, match="judged by “tool_call”"):
        services.assets_import(project=project, family=family, tasks=[other], by=actor)


def test_solutions_are_worked_out_before_anybody_is_kept_from_writing(project, actor, store, monkeypatch):
    inside = []

    def watched(pack: str, tasks):
        inside.append(bool(connection.savepoint_ids))
        return {}

    monkeypatch.setattr(pack_families, "solutions_of", watched)

    services.pack_family_add(project=project, name="part_impossible", by=actor)

    assert inside == [False]


@pytest.mark.parametrize(("pack", "why"), [("json", "not installed"), ("finance", "brings no family")])
def test_a_pack_that_does_not_bring_the_family_is_refused(project, actor, pack, why):
    with pytest.raises(Refused, match=why):
        services.pack_family_add(project=project, name="part_block", pack_name=pack, by=actor)
