"""Tasks made of labelled cases, and pack tasks."""

import json

import pytest

from apps.core.errors import Conflict, Refused
from apps.core.lineage import lineage_strip
from apps.feedback import services
from apps.feedback.models import FailureCase, TaskAsset
from domain.contracts import TaskSpec
from domain.splits import split_of
from domain.verifiers import verify
from packs.starter.tasks import PACK, generate
from tests.apps.feedback.conftest import PROMPT, RIGHT, WRONG

pytestmark = pytest.mark.django_db


def labelled_case(make_case, actor, correction, **more):
    case = make_case(**more)
    services.case_label(case=case, kind="wrong_value", severity="major", correction=correction, by=actor)
    return FailureCase.objects.select_related("project", "capture").get(pk=case.pk)


def test_task_passes_the_correction_and_fails_the_answer(labelled, family, actor):
    asset = services.asset_create(case=labelled, family=family, by=actor)

    task = TaskSpec.model_validate(asset.task)
    assert task.reference == {"invoice": "INV-42", "total": 120.5}
    assert task.verifier.params == {"fields": {"invoice": "text", "total": "number"}}
    assert task.messages[0].content == PROMPT
    assert verify(task, RIGHT, {}).state == "passed"
    assert verify(task, WRONG, {}).state == "failed"
    labelled.refresh_from_db()
    assert labelled.state == "asset"


def test_making_the_task_again_returns_it(labelled, family, actor):
    first = services.asset_create(case=labelled, family=family, by=actor)

    assert services.asset_create(case=labelled, family=family, by=actor) == first
    assert TaskAsset.objects.count() == 1


def test_pseudonyms_become_one_surrogate_everywhere(make_case, actor, project):
    tools = services.family_ensure(project=project, name="tool_call", verifier_kind="tool_call", by=actor)
    mail = "omar@kumar.example"
    call = json.dumps({"name": "send_mail", "arguments": {"to": mail, "amount": 5}})
    case = labelled_case(
        make_case,
        actor,
        call,
        prompt=f"Write to Omar Kumar at {mail} that 5 EUR are due.",
        answer=json.dumps({"name": "send_mail", "arguments": {"to": mail, "amount": 50}}),
    )

    asset = services.asset_create(case=case, family=tools, by=actor)

    stored = json.dumps(asset.task) + asset.correction
    address = asset.task["reference"]["arguments"]["to"]
    assert "<" not in stored
    assert mail not in stored
    assert "@example.com" in address
    assert address in asset.task["messages"][0]["content"]
    assert address in asset.correction


def test_split_follows_the_source_so_near_duplicates_share_a_side(make_case, actor, family):
    for i in range(4):
        case = labelled_case(make_case, actor, RIGHT, external_id=f"e{i}", cluster="mail/Norden Tools")
        services.asset_create(case=case, family=family, by=actor)

    side = {"train": "train", "heldout": "held_out"}[split_of("mail/Norden Tools")]
    assert set(TaskAsset.objects.values_list("source", "split")) == {("mail/Norden Tools", side)}


def test_task_needs_a_label(make_case, family, actor):
    with pytest.raises(Conflict, match="Label the case"):
        services.asset_create(case=make_case(), family=family, by=actor)


@pytest.mark.parametrize(
    ("correction", "words"),
    [("", "Write the right answer first"), ("INV-42", "cannot be read"), (WRONG, "passes the verifier")],
)
def test_refusal_says_why(make_case, actor, family, correction, words):
    case = labelled_case(make_case, actor, correction)

    with pytest.raises(Refused, match=words):
        services.asset_create(case=case, family=family, by=actor)

    case.refresh_from_db()
    assert case.state == "labelled"


@pytest.mark.parametrize(
    ("kind", "wrong", "right", "reference"),
    [
        ("numeric", "12", "It is 14.", 14),
        ("numeric", "12", "1,204.50 EUR", 1204.5),
        ("exact", "yes", "no", "no"),
        ("tool_call", "x", '{"name": "f", "arguments": {"a": 1.5}}', {"name": "f", "arguments": {"a": 1.5}}),
    ],
)
def test_reference_follows_from_the_correction(make_case, actor, project, kind, wrong, right, reference):
    made = services.family_ensure(project=project, name="some", verifier_kind=kind, by=actor)
    case = labelled_case(make_case, actor, right, answer=wrong, prompt="What now?")

    asset = services.asset_create(case=case, family=made, by=actor)

    assert asset.task["reference"] == reference


def test_two_numbers_are_no_reference(make_case, actor, project):
    made = services.family_ensure(project=project, name="sums", verifier_kind="numeric", by=actor)
    case = labelled_case(make_case, actor, "14 or 15", prompt="What now?")

    with pytest.raises(Refused, match="exactly one number; it holds 2"):
        services.asset_create(case=case, family=made, by=actor)


def test_python_task_needs_a_reference(make_case, actor, project):
    made = services.family_ensure(
        project=project,
        name="code",
        verifier_kind="python_tests",
        verifier_params={"entry_point": "f"},
        by=actor,
    )
    bare = labelled_case(make_case, actor, "def f(x):\n    return x", prompt="Write f(x): x")
    calls = {"calls": [{"args": [1], "expected": 1}]}
    carried = labelled_case(
        make_case, actor, "def f(x):\n    return x", prompt="Write f(x): x", external_id="e2", reference=calls
    )

    with pytest.raises(Refused, match="needs calls with expected results"):
        services.asset_create(case=bare, family=made, by=actor)
    asset = services.asset_create(case=carried, family=made, by=actor)

    assert asset.task["reference"] == calls


def test_lineage_leads_from_capture_over_case_to_task(labelled, family, actor):
    asset = services.asset_create(case=labelled, family=family, by=actor)

    strip = [node.key.partition(":")[0] for node in lineage_strip(asset.lineage_key)]
    assert strip == ["feedback.capture", "feedback.case", "feedback.asset"]


def test_pack_tasks_are_imported_once_with_their_answers(project, actor):
    made = services.family_ensure(
        project=project, name="invoice_fields", pack="starter", verifier_kind="json_fields", by=actor
    )
    tasks = generate("invoice_fields", seed=3, count=5)

    first = services.assets_import(project=project, family=made, tasks=tasks, by=actor)
    again = services.assets_import(project=project, family=made, tasks=tasks, by=actor)

    assert (len(first), len(again)) == (5, 0)
    assert first[0].correction == PACK.gold_answer(tasks[0])
    assert {row.split for row in first} <= {"train", "held_out"}


def test_task_of_another_kind_is_refused_and_nothing_imported(project, actor, family):
    tasks = [*generate("invoice_fields", seed=3, count=1), *generate("tool_call", seed=3, count=1)]

    with pytest.raises(Refused, match="is judged by “tool_call”"):
        services.assets_import(project=project, family=family, tasks=tasks, by=actor)

    assert not TaskAsset.objects.exists()


@pytest.mark.parametrize("name", ["invoice_fields", "invoice_arithmetic", "tool_call"])
def test_pack_tasks_survive_anonymization(name, project, actor, make_case):
    """A captured task of the starter pack stays solvable: its good answer still makes a task."""
    kind = {"invoice_fields": "json_fields", "invoice_arithmetic": "numeric"}.get(name, name)
    made = services.family_ensure(project=project, name=name, pack="starter", verifier_kind=kind, by=actor)

    for at, task in enumerate(generate(name, seed=11, count=12)):
        bad = next(iter(PACK.bad_answers(task).values()))
        case = labelled_case(
            make_case,
            actor,
            PACK.gold_answer(task),
            external_id=f"{name}-{at}",
            prompt=task.messages[-1].content,
            answer=bad,
            tools=list(task.tools),
            family=name,
        )
        asset = services.asset_create(case=case, family=made, by=actor)

        assert asset.task["reference"] == task.model_dump(mode="json")["reference"]
