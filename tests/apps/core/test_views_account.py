"""Log in and out, theme, password, projects."""

from django.test import Client

from apps.core.models import Membership, Project, Role, User
from apps.core.permissions import Actor


def test_a_stranger_is_sent_to_the_login_page(client: Client, db: None) -> None:
    response = client.get("/settings/")

    assert response.status_code == 302
    assert response["Location"] == "/login/?next=/settings/"


def test_login_leads_to_the_page_that_was_wanted(client: Client, project: Project) -> None:
    form = {"username": "ada", "password": "correct horse battery", "next": "/settings/"}

    response = client.post("/login/", form)

    assert response["Location"] == "/settings/"


def test_a_wrong_password_is_said_in_the_page(client: Client, project: Project) -> None:
    response = client.post("/login/", {"username": "ada", "password": "wrong"})

    assert "Please enter a correct username and password" in response.content.decode()


def test_logging_out_is_a_post(page: Client) -> None:
    assert page.get("/logout/").status_code == 405
    assert page.post("/logout/")["Location"] == "/login/"
    assert page.get("/settings/").status_code == 302


def test_the_theme_is_kept_with_the_user_and_drawn_by_the_server(page: Client, admin: User) -> None:
    response = page.post("/account/theme/", {"theme": "dark", "next": "/settings/"})

    admin.refresh_from_db()
    assert response["Location"] == "/settings/"
    assert admin.theme == "dark"
    assert '<html lang="en" data-theme="dark">' in page.get("/settings/").content.decode()


def test_an_unknown_theme_changes_nothing(page: Client, admin: User) -> None:
    page.post("/account/theme/", {"theme": "pink"})

    admin.refresh_from_db()
    assert admin.theme == "system"
    assert "Choose system, light or dark." in page.get("/settings/").content.decode()


def test_the_theme_form_never_sends_people_to_another_site(page: Client) -> None:
    response = page.post("/account/theme/", {"theme": "dark", "next": "https://example.com/"})

    assert response["Location"] == "/"


def test_appearance_is_saved_from_its_page(page: Client, admin: User) -> None:
    response = page.post("/settings/appearance/", {"theme": "light"}, follow=True)

    admin.refresh_from_db()
    assert admin.theme == "light"
    assert "Your appearance was saved." in response.content.decode()


def test_a_password_is_changed_only_with_the_old_one(page: Client, admin: User) -> None:
    new = {"new_password1": "four green mugs now", "new_password2": "four green mugs now"}

    refused = page.post("/account/password/", {"old_password": "wrong", **new})
    page.post("/account/password/", {"old_password": "correct horse battery", **new})

    admin.refresh_from_db()
    assert "entered incorrectly" in refused.content.decode()
    assert admin.check_password("four green mugs now")


def test_a_person_switches_between_their_own_projects_only(page: Client, admin: User) -> None:
    own = Project.objects.create(name="Contracts", slug="contracts")
    Membership.objects.create(project=own, user=admin, role=Role.VIEWER)
    Project.objects.create(name="Foreign", slug="foreign")

    page.post("/projects/switch/", {"project": "contracts"})
    foreign = page.post("/projects/switch/", {"project": "foreign"})

    assert foreign.status_code == 404
    assert page.get("/settings/").context["current_project"] == own


def test_who_starts_a_project_becomes_its_admin(page: Client, admin: User) -> None:
    response = page.post("/projects/new/", {"name": "Contracts"}, follow=True)

    assert Membership.objects.get(project__name="Contracts", user=admin).role == Role.ADMIN
    assert "Contracts was created." in response.content.decode()


def test_two_projects_may_not_share_a_name(page: Client, actor: Actor) -> None:
    response = page.post("/projects/new/", {"name": " billing "})

    assert "There is a project of this name already." in response.content.decode()
    assert Project.objects.count() == 1


def test_every_page_forbids_scripts_from_elsewhere(client: Client, db: None) -> None:
    response = client.get("/login/")

    assert "script-src 'self';" in response["Content-Security-Policy"]
    assert "<script>" not in response.content.decode()
    assert "onclick" not in response.content.decode()
