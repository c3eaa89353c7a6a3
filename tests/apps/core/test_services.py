import pytest
from django.core.exceptions import PermissionDenied

from apps.core import services
from apps.core.errors import Conflict, Refused
from apps.core.models import ApiKey, AuditEvent, Membership, Project, Role, User
from apps.core.permissions import Actor


def test_a_key_is_stored_as_a_hash_only(actor: Actor) -> None:
    made = services.api_key_create(project=actor.project, name="ci", scopes=["read"], by=actor)

    row = ApiKey.objects.values().get(pk=made.key.pk)
    assert made.secret.startswith("fw_")
    assert made.secret not in str(row)
    assert AuditEvent.objects.filter(action="api_key.create").count() == 1


def test_nobody_makes_a_key_that_may_do_more_than_they_may(viewer: Actor) -> None:
    with pytest.raises(PermissionDenied, match="Release manager"):
        services.api_key_create(project=viewer.project, name="x", scopes=["release"], by=viewer)


@pytest.mark.parametrize(("scopes", "code"), [([], "scope_missing"), (["fly"], "scope_unknown")])
def test_a_key_needs_known_scopes(actor: Actor, scopes: list[str], code: str) -> None:
    with pytest.raises(Refused) as refused:
        services.api_key_create(project=actor.project, name="x", scopes=scopes, by=actor)

    assert refused.value.code == code


def test_the_last_admin_stays(actor: Actor) -> None:
    membership = Membership.objects.get(user=actor.user)

    with pytest.raises(Conflict, match="at least one admin"):
        services.membership_remove(membership=membership, by=actor)
    with pytest.raises(Conflict, match="at least one admin"):
        services.membership_change(membership=membership, role=Role.VIEWER, by=actor)


def test_a_member_is_added_once(actor: Actor) -> None:
    User.objects.create_user("bo")
    services.membership_add(project=actor.project, username="bo", role="labeller", by=actor)

    with pytest.raises(Conflict, match="already a member"):
        services.membership_add(project=actor.project, username="bo", role="viewer", by=actor)


def test_projects_of_one_name_get_different_slugs(admin: User) -> None:
    first = services.project_create(name="Invoices", owner=admin)
    second = services.project_create(name="Invoices", owner=admin)

    assert (first.slug, second.slug) == ("invoices", "invoices-2")


def test_audit_rows_cannot_be_changed_or_deleted(actor: Actor) -> None:
    event = services.audit(actor=actor, action="thing.do")

    with pytest.raises(TypeError, match="append-only"):
        event.save()
    with pytest.raises(TypeError, match="append-only"):
        AuditEvent.objects.all().delete()
    with pytest.raises(TypeError, match="append-only"):
        AuditEvent.objects.update(actor="x")


def test_one_open_alert_per_key(project: Project) -> None:
    services.alert_raise(project=project, key="engine", title="down")
    services.alert_raise(project=project, key="engine", title="still down")
    services.alert_resolve(project=project, key="engine")
    services.alert_raise(project=project, key="engine", title="down again")

    assert list(project.alerts.order_by("pk").values_list("title", flat=True)) == ["still down", "down again"]
