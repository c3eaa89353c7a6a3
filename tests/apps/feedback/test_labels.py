"""Decisions about cases."""

import pytest

from apps.core.errors import Conflict, Refused
from apps.core.models import AuditEvent
from apps.core.permissions import Actor
from apps.feedback import schemas, selectors, services
from apps.feedback.models import FailureCase, Label
from tests.apps.feedback.conftest import RIGHT

pytestmark = pytest.mark.django_db


@pytest.fixture
def key_actor(project) -> Actor:
    """Acts without a person behind it, as an API key does."""
    return Actor(project=project, name="key:fw_abc", role="admin")


def test_label_moves_the_case_and_leaves_an_audit_row(make_case, actor):
    case = make_case()

    label = services.case_label(case=case, kind="wrong_value", severity="major", correction=RIGHT, by=actor)

    case.refresh_from_db()
    assert (case.state, case.kind, case.severity) == ("labelled", "wrong_value", "major")
    assert (label.correction, label.by, label.schema_number) == (RIGHT, "ada", 1)
    assert AuditEvent.objects.filter(action="case.label", object_id=str(case.pk)).exists()


def test_key_without_a_person_may_label(make_case, key_actor):
    label = services.case_label(case=make_case(), kind="wrong_value", severity="minor", by=key_actor)

    assert label.by == "key:fw_abc"


def test_text_typed_by_people_is_anonymized_like_the_case(make_case, actor):
    case = make_case(prompt="Dear Karen Lewis, invoice INV-7 over 55.00 EUR is open.")

    label = services.case_label(
        case=case,
        kind="wrong_value",
        severity="major",
        correction="Karen Lewis owes 55.00 EUR.",
        note="Omar Kumar (omar@kumar.example) told me.",
        by=actor,
    )

    assert label.correction == "<PERSON_1> owes 55.00 EUR."
    assert label.note == "<PERSON_2> (<EMAIL_ADDRESS_1>) told me."


def test_second_decision_replaces_the_first_and_keeps_it_in_history(make_case, actor):
    case = make_case()
    first = services.case_label(case=case, kind="wrong_value", severity="minor", by=actor)

    services.case_label(case=case, kind="wrong_format", severity="major", by=actor)

    first.refresh_from_db()
    case.refresh_from_db()
    assert first.undone_at is not None
    assert case.kind == "wrong_format"
    assert Label.objects.filter(case=case).count() == 2


def test_undo_puts_the_case_back_into_the_queue(labelled, actor):
    services.label_undo(label=Label.objects.get(), by=actor)

    labelled.refresh_from_db()
    assert (labelled.state, labelled.kind) == ("new", "")
    assert services.queue_next(project=labelled.project, by=actor).case == labelled


def test_undo_falls_back_to_the_label_of_another_person(make_case, actor, key_actor):
    case = make_case()
    services.case_label(case=case, kind="wrong_value", severity="minor", by=key_actor)
    mine = services.case_label(case=case, kind="wrong_format", severity="major", by=actor)

    services.label_undo(label=mine, by=actor)

    case.refresh_from_db()
    assert (case.state, case.kind) == ("labelled", "wrong_value")


def test_undo_happens_once(labelled, actor):
    label = Label.objects.get()
    services.label_undo(label=label, by=actor)

    with pytest.raises(Conflict, match="undone or replaced"):
        services.label_undo(label=label, by=actor)


def test_only_author_or_admin_may_undo(labelled, viewer):
    with pytest.raises(Refused, match="Only its author"):
        services.label_undo(label=Label.objects.get(), by=viewer)


def test_not_a_failure_dismisses_and_can_be_changed(make_case, actor):
    case = make_case()

    services.case_label(case=case, kind="not_a_failure", severity="", by=actor)
    case.refresh_from_db()
    assert case.state == "dismissed"
    services.case_label(case=case, kind="wrong_value", severity="minor", by=actor)

    case.refresh_from_db()
    assert case.state == "labelled"


def test_case_that_became_a_task_cannot_be_relabelled(labelled, family, actor):
    services.asset_create(case=labelled, family=family, by=actor)

    with pytest.raises(Conflict, match="became a task"):
        services.case_label(case=labelled, kind="wrong_format", severity="minor", by=actor)
    with pytest.raises(Conflict, match="became a task"):
        services.label_undo(label=Label.objects.get(), by=actor)


@pytest.mark.parametrize(
    ("kind", "severity", "words"),
    [
        ("", "minor", "Choose a kind before saving"),
        ("wrong_value", "", "Choose a severity before saving"),
        ("strange", "minor", "not a kind here"),
        ("wrong_value", "strange", "not a severity here"),
    ],
)
def test_label_needs_known_choices(make_case, actor, kind, severity, words):
    with pytest.raises(Refused, match=words):
        services.case_label(case=make_case(), kind=kind, severity=severity, by=actor)


def test_last_ten_decisions_are_listed_newest_first(make_case, actor, project):
    for i in range(12):
        services.case_label(case=make_case(f"e{i}"), kind="wrong_value", severity="minor", by=actor)

    rows = selectors.last_decisions(project, actor.name)

    assert [row.pk for row in rows] == sorted((row.pk for row in rows), reverse=True)
    assert len(rows) == 10


def test_used_label_cannot_vanish(labelled, project, actor):
    kinds = [row for row in schemas.default_kinds() if row["slug"] != "wrong_value"]

    with pytest.raises(Conflict, match="is used by labels"):
        services.schema_revise(
            project=project, kinds=kinds, severities=schemas.default_severities(), by=actor
        )


def test_unused_label_may_be_removed(labelled, project, actor):
    kinds = [row for row in schemas.default_kinds() if row["slug"] != "faulty_code"]

    schema = services.schema_revise(
        project=project, kinds=kinds, severities=schemas.default_severities(), by=actor
    )

    assert schema.number == 2
    assert "faulty_code" not in schemas.titles(services.schema_in_force(project))


def test_renamed_label_shows_its_new_name_on_old_decisions(labelled, project, actor):
    kinds = [
        {**row, "title": "Wrong amount"} if row["slug"] == "wrong_value" else row
        for row in schemas.default_kinds()
    ]

    services.schema_revise(project=project, kinds=kinds, severities=schemas.default_severities(), by=actor)

    assert schemas.titles(services.schema_in_force(project))[Label.objects.get().kind] == "Wrong amount"


def test_one_decision_can_serve_a_group(make_case, actor):
    cases = [
        make_case(f"e{i}", prompt=f"Invoice INV-{i} of Norden Tools\nTotal {i}.50 EUR") for i in range(3)
    ]

    labels = services.cases_label_group(case=cases[0], kind="wrong_value", severity="minor", by=actor)

    assert {label.case_id for label in labels} == {case.pk for case in cases}
    assert FailureCase.objects.filter(state="labelled").count() == 3
