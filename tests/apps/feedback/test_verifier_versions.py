"""Versions of verifiers: immutable, numbered, each with an admission of its own."""

from typing import Any

import pytest

from apps.core.errors import Conflict, Refused
from apps.core.models import AuditEvent
from apps.feedback import gauntlet, services
from apps.feedback.models import Verifier
from apps.feedback.verifiers import digest_of, left_to_tasks
from packs.starter.tasks import generate

pytestmark = pytest.mark.django_db


def deep(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.fixture
def create(project: Any, actor: Any) -> Any:
    def make(name: str = "tone", kind: str = "contains", after: int | None = None, **params: Any) -> Verifier:
        return services.verifier_create(
            project=project, name=name, kind=kind, params=params, after=after, by=actor
        )

    return make


def test_an_edit_is_the_next_number_and_needs_an_admission_of_its_own(create: Any) -> None:
    first = create(texts=["a"])
    Verifier.objects.filter(pk=first.pk).update(admission="admitted")

    second = create(texts=["a", "b"])

    first.refresh_from_db()
    assert (second.number, second.admission, first.admission) == (2, "unchecked", "admitted")
    assert first.params == {"texts": ["a"]}
    assert first.digest != second.digest == digest_of("contains", {"texts": ["a", "b"]})


def test_going_back_to_what_was_is_the_version_that_was(create: Any) -> None:
    first = create(texts=["a"])
    create(texts=["b"])

    assert create(texts=["a"]).pk == first.pk
    assert Verifier.objects.count() == 2


def test_an_edit_of_an_older_version_than_the_newest_is_refused(create: Any) -> None:
    create(texts=["a"])
    create(texts=["b"])

    with pytest.raises(Conflict, match=r"Version 2 was saved by .* while you edited version 1"):
        create(texts=["c"], after=1)
    assert create(texts=["c"], after=2).number == 3


def test_a_new_name_that_is_taken_is_refused(create: Any) -> None:
    create(texts=["a"])

    with pytest.raises(Conflict, match="There is a verifier “tone” already"):
        create(texts=["b"], after=0)


@pytest.mark.parametrize(
    ("kind", "params", "field"),
    [
        ("regex", {"pattern": "(a+)+$"}, "pattern"),
        ("similarity", {"metric": "cosine", "threshold": 0.5}, "metric"),
        ("grader_python", {"source": "def grade(): ..."}, "source"),
        ("not", {"part": {"kind": "regex", "params": {"pattern": "("}}}, "part/params/pattern"),
        ("magic", {}, "kind"),
        ("contains", {"texts": ["a"], "x": float("nan")}, ""),
        ("contains", {"texts": ["a"] * 3, "x": "y" * 300_000}, ""),
        ("contains", {"x": "\ud800"}, ""),
        ("grader_python", {"source": "def grade(a, b): return 1", "item": deep(900)}, ""),
        ("all", {"parts": [{"kind": "exact", "reference": deep(150)}]}, ""),
    ],
)
def test_what_could_never_judge_is_refused_at_creation_with_its_place(
    project: Any, actor: Any, kind: str, params: Any, field: str
) -> None:
    with pytest.raises(Refused) as caught:
        services.verifier_create(project=project, name="x", kind=kind, params=params, by=actor)

    assert caught.value.detail["field"] == field
    assert caught.value.message.endswith(".")
    assert not Verifier.objects.exists()


def test_a_version_says_what_each_task_must_say() -> None:
    assert left_to_tasks("json_fields", {}) == ["fields"]
    assert left_to_tasks("contains", {"texts": ["a"]}) == []


def test_creation_is_on_record(create: Any) -> None:
    create(texts=["a"])

    (row,) = AuditEvent.objects.filter(action="verifier.create")
    assert (row.detail["kind"], row.detail["number"]) == ("contains", 1)


def test_a_family_uses_another_version_for_its_next_tasks_only(project: Any, actor: Any, store: Any) -> None:
    family = services.family_ensure(
        project=project, name="invoice_fields", pack="starter", verifier_kind="json_fields", by=actor
    )
    services.assets_import(
        project=project, family=family, tasks=generate("invoice_fields", seed=3, count=4), by=actor
    )
    first = family.verifier
    second = services.verifier_create(
        project=project, name="invoice_fields", kind="json_fields", params={"fence": True}, by=actor
    )

    services.family_use_verifier(family=family, verifier=second, by=actor)

    family.refresh_from_db()
    assert family.verifier_id == second.pk
    assert set(family.assets.values_list("verifier_id", flat=True)) == {first.pk}
    assert AuditEvent.objects.filter(action="family.verifier").count() == 1


def test_a_new_version_meets_the_gauntlet_of_the_old_one_as_it_judges_itself(
    project: Any, actor: Any, store: Any
) -> None:
    family = services.family_ensure(
        project=project, name="invoice_fields", pack="starter", verifier_kind="json_fields", by=actor
    )
    (asset, *_) = services.assets_import(
        project=project, family=family, tasks=generate("invoice_fields", seed=3, count=4), by=actor
    )
    services.entry_add(
        verifier=family.verifier, origin="exploit", name="found", task=asset.task, answer="{}", by=actor
    )

    second = services.verifier_create(
        project=project, name="invoice_fields", kind="json_fields", params={"fence": True}, by=actor
    )
    gauntlet.entries_refresh(verifier=second)

    found = second.entries.get(name="found")
    assert found.added_by == actor.name
    assert found.task["verifier"]["params"] == {**asset.task["verifier"]["params"], "fence": True}
    assert second.entries.filter(origin="known_good").count() == 4
    assert all(entry.task["verifier"]["params"]["fence"] for entry in second.entries.all())


def test_another_kind_takes_the_right_answers_as_its_reference(
    project: Any, actor: Any, labelled: Any, family: Any, store: Any
) -> None:
    services.asset_create(case=labelled, family=family, by=actor)

    second = services.verifier_create(
        project=project,
        name="invoice_fields",
        kind="similarity",
        params={"metric": "levenshtein", "threshold": 0.99},
        by=actor,
    )
    gauntlet.entries_refresh(verifier=second)

    good = second.entries.get(origin="known_good")
    assert good.task["reference"] == good.answer
    assert second.entries.filter(origin="exploit").exists()
