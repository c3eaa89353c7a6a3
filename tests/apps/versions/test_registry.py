"""Registering base models, versions and evidence."""

import pytest

from apps.core.errors import Refused
from apps.core.lineage import lineage_strip
from apps.core.models import AuditEvent, Event, User
from apps.core.services import project_create
from apps.versions import services
from apps.versions.models import BaseModel, EditionKind, Evidence, ModelVersion, RoutingRevision
from apps.versions.selectors import routing_current, version_in_service


def test_the_first_base_is_1_0_with_both_editions_and_in_service(project, actor):
    base = services.base_model_register(
        project=project, name="pocket", engine_name="pocket", path="/models/pocket", by=actor
    )

    version = base.versions.get()
    assert (version.number, version.state) == ("1.0", "in_service")
    assert {edition.kind for edition in version.editions.all()} == set(EditionKind.values)
    assert RoutingRevision.objects.first().snapshot["arms"]["control"]["version"] == "1.0"


def test_registering_a_base_twice_finds_it(base, project, actor):
    again = services.base_model_register(
        project=project, name="pocket", engine_name="pocket", path="/models/pocket", by=actor
    )

    assert again == base
    assert ModelVersion.objects.count() == 1


def test_a_second_base_takes_the_next_major_and_stays_out_of_service(base, project, actor):
    other = services.base_model_register(
        project=project, name="larger", engine_name="larger", path="/models/larger", by=actor
    )

    assert (other.versions.get().number, other.versions.get().state) == ("2.0", "registered")


def test_children_take_the_next_minor_number(register):
    assert [register("a", loaded=False).number, register("b", loaded=False).number] == ["1.1", "1.2"]


def test_registering_an_origin_twice_gives_one_version(register):
    first, again = register("a", loaded=False), register("a", loaded=False)

    assert first == again
    assert ModelVersion.objects.filter(origin="training.run:a").count() == 1


def test_registering_leaves_lineage_audit_and_event(register):
    version = register("a", loaded=False)

    assert [node.key for node in lineage_strip(version.lineage_key)] == [
        "training.run:a",
        version.lineage_key,
    ]
    assert AuditEvent.objects.filter(action="version.register", object_id=str(version.pk)).exists()
    assert Event.objects.filter(kind="VersionRegistered", topic=version.lineage_key).exists()


def test_without_a_named_origin_the_lineage_starts_at_the_parent(project, base, control, actor, adapter):
    version = services.version_register(
        project=project, base=base, adapter_name="by-hand", adapter_digest=adapter("x"), by=actor
    )

    assert version.parent == control
    assert [node.key for node in lineage_strip(version.lineage_key)] == [
        control.lineage_key,
        version.lineage_key,
    ]


def test_an_adapter_name_never_gets_other_weights(project, base, actor, register, adapter):
    register("run1-v1", loaded=False)

    with pytest.raises(Refused, match="already stands for other weights"):
        services.version_register(
            project=project, base=base, adapter_name="run1-v1", adapter_digest=adapter("other"), by=actor
        )


@pytest.mark.parametrize(
    ("name", "digest", "sentence"),
    [
        ("ok", "12", "64 hexadecimal"),
        ("../up", "a" * 64, "letters, digits"),
        ("ok", "a" * 64, "no artifact"),
    ],
)
def test_an_adapter_that_cannot_be_loaded_is_refused(project, base, actor, store, name, digest, sentence):
    with pytest.raises(Refused, match=sentence):
        services.version_register(
            project=project, base=base, adapter_name=name, adapter_digest=digest, by=actor
        )

    assert ModelVersion.objects.count() == 1


def test_a_parent_on_another_base_is_refused(project, base, actor, register, adapter):
    other = services.base_model_register(
        project=project, name="larger", engine_name="larger", path="/models/larger", by=actor
    )

    with pytest.raises(Refused, match="fits one base only"):
        services.version_register(
            project=project,
            base=other,
            parent=register("a", loaded=False),
            adapter_name="b",
            adapter_digest=adapter("b"),
            by=actor,
        )


def test_evidence_of_one_source_is_replaced_not_repeated(control: ModelVersion, base: BaseModel):
    for sentence in ("first", "second"):
        services.evidence_record(
            version=control, kind="suite", source="evals.run:1", title="Suite", sentence=sentence
        )

    assert Evidence.objects.get().sentence == "second"


@pytest.mark.parametrize(
    ("compared", "differing", "ties", "verdict"),
    [(0, 0, 0, "no_data"), (100, 0, 0, "passed"), (100, 2, 2, "passed"), (100, 2, 1, "failed")],
)
def test_parity_counts_only_differences_that_no_tie_explains(control, compared, differing, ties, verdict):
    evidence = services.edition_parity_record(
        version=control, compared=compared, differing=differing, ties=ties, source="evals.run:3"
    )

    assert (evidence.verdict, evidence.edition_kind) == (verdict, "high_speed")


def test_impossible_parity_counts_are_refused(control):
    with pytest.raises(Refused):
        services.edition_parity_record(version=control, compared=1, differing=2, ties=0, source="x")


def test_a_new_project_can_serve_at_once(admin: User) -> None:
    project = project_create(name="Second", owner=admin)

    version = version_in_service(project)
    assert version is not None
    assert version.number == "1.0"
    assert routing_current(project) is not None
