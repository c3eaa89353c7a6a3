"""Settings of the project: name, people, keys."""

import re
from typing import Any

import pytest
from django.test import Client

from apps.core.models import ApiKey, AuditEvent, Membership, Project, Role, User
from apps.core.permissions import Actor
from apps.core.services import api_key_create

_SECRET = re.compile(r'id="new-secret">([^<]+)<')


@pytest.fixture
def onlooker(client: Client, viewer: Actor) -> Client:
    """A signed-in viewer."""
    assert viewer.user is not None
    client.force_login(viewer.user)
    return client


def test_the_project_page_says_which_role_you_have(page: Client) -> None:
    text = page.get("/settings/").content.decode()

    assert "Billing" in text
    assert "<dt>Your role</dt><dd>Admin</dd>" in text


def test_an_admin_renames_the_project(page: Client, project: Project) -> None:
    response = page.post("/settings/", {"name": "Invoices"}, follow=True)

    project.refresh_from_db()
    assert project.name == "Invoices"
    assert AuditEvent.objects.get().action == "project.rename"
    assert "The project was renamed." in response.content.decode()


def test_a_viewer_may_not_rename_it(onlooker: Client, project: Project) -> None:
    response = onlooker.post("/settings/", {"name": "Mine"})

    project.refresh_from_db()
    assert response.status_code == 403
    assert "This needs the role Admin" in response.content.decode()
    assert project.name == "Billing"


def test_a_known_person_is_added(page: Client, project: Project) -> None:
    User.objects.create_user("grace")

    response = page.post("/settings/people/", {"username": "grace", "role": "labeller"}, follow=True)

    assert Membership.objects.get(user__username="grace").role == Role.LABELLER
    assert "grace was added." in response.content.decode()


def test_an_unknown_name_is_refused_where_no_account_was_asked_for(page: Client) -> None:
    response = page.post("/settings/people/", {"username": "nobody", "role": "viewer"})

    assert "There is no user “nobody”." in response.content.decode()
    assert not User.objects.filter(username="nobody").exists()


def test_a_new_account_gets_a_password_that_is_shown_once(page: Client, project: Project) -> None:
    form = {"username": "grace", "role": "engineer", "create": "on"}

    response = page.post("/settings/people/", form)

    password = _SECRET.findall(response.content.decode())[0]
    grace = User.objects.get(username="grace")
    assert grace.check_password(password)
    assert Membership.objects.get(user=grace, project=project).role == Role.ENGINEER
    assert "no-store" in response["Cache-Control"]
    assert password not in page.get("/settings/people/").content.decode()
    assert password not in str(list(AuditEvent.objects.values()))


def test_an_impossible_username_is_refused(page: Client) -> None:
    response = page.post(
        "/settings/people/", {"username": "no spaces please", "role": "viewer", "create": "on"}
    )

    assert "Enter a valid username" in response.content.decode()
    assert User.objects.count() == 1


def test_a_role_is_changed(page: Client, viewer: Actor) -> None:
    member = Membership.objects.get(user=viewer.user)

    response = page.post(f"/settings/people/{member.pk}/role/", {"role": "engineer"}, follow=True)

    member.refresh_from_db()
    assert member.role == Role.ENGINEER
    assert "vic is now engineer." in response.content.decode()


def test_a_member_is_removed(page: Client, viewer: Actor) -> None:
    member = Membership.objects.get(user=viewer.user)

    page.post(f"/settings/people/{member.pk}/remove/")

    assert not Membership.objects.filter(pk=member.pk).exists()
    assert User.objects.filter(pk=viewer.user.pk).exists()


@pytest.mark.parametrize("change", ["role", "remove"])
def test_the_last_admin_stays(page: Client, admin: User, change: str) -> None:
    member = Membership.objects.get(user=admin)

    page.post(f"/settings/people/{member.pk}/{change}/", {"role": "viewer"})

    member.refresh_from_db()
    assert member.role == Role.ADMIN
    assert "A project needs at least one admin." in page.get("/settings/people/").content.decode()


def test_people_of_another_project_cannot_be_touched(page: Client, admin: User) -> None:
    foreign = Project.objects.create(name="Foreign", slug="foreign")
    member = Membership.objects.create(project=foreign, user=User.objects.create_user("eve"), role=Role.ADMIN)

    assert page.post(f"/settings/people/{member.pk}/remove/").status_code == 404
    assert page.post(f"/settings/people/{member.pk}/role/", {"role": "viewer"}).status_code == 404


def test_a_viewer_sees_people_but_no_controls(onlooker: Client) -> None:
    text = onlooker.get("/settings/people/").content.decode()

    assert "ada" in text
    assert "Add a person" not in text
    assert "Remove" not in text


def test_a_key_is_shown_once(page: Client) -> None:
    response = page.post("/settings/keys/", {"name": "checkout", "scopes": ["gateway", "capture"]})

    secret = _SECRET.findall(response.content.decode())[0]
    assert secret.startswith("fw_")
    assert ApiKey.objects.get().scopes == ["capture", "gateway"]
    assert "no-store" in response["Cache-Control"]
    assert secret not in page.get("/settings/keys/").content.decode()


def test_a_key_without_scopes_is_refused(page: Client) -> None:
    response = page.post("/settings/keys/", {"name": "checkout"})

    assert "Choose at least one scope." in response.content.decode()
    assert not ApiKey.objects.exists()


def test_a_revoked_key_stays_listed(page: Client, actor: Actor) -> None:
    key = api_key_create(project=actor.project, name="old importer", scopes=["read"], by=actor).key

    response = page.post(f"/settings/keys/{key.pk}/revoke/", follow=True)

    key.refresh_from_db()
    assert key.revoked_at is not None
    assert "old importer was revoked." in response.content.decode()


def test_keys_are_for_admins(onlooker: Client) -> None:
    assert onlooker.get("/settings/keys/").status_code == 403


@pytest.mark.parametrize(
    ("url", "queries"), [("/settings/", 4), ("/settings/people/", 5), ("/settings/keys/", 5)]
)
def test_query_counts_do_not_grow_with_rows(
    page: Client, actor: Actor, url: str, queries: int, django_assert_num_queries: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("apps.core.context.nav_counts", {})
    for number in range(3):
        user = User.objects.create_user(f"person{number}")
        Membership.objects.create(project=actor.project, user=user, role=Role.VIEWER)
        api_key_create(project=actor.project, name=f"key {number}", scopes=["read"], by=actor)
    page.get(url)

    with django_assert_num_queries(queries):
        page.get(url)
