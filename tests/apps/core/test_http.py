"""What a page answers when it is refused, and to whom it answers at all."""

from typing import Any

import pytest
from django.db import DataError
from django.test import Client, RequestFactory
from django.urls import path

from apps.core.errors import Conflict
from apps.core.http import back_url, project_view
from apps.core.models import User
from config import urls


@project_view("read")
def _refusing(request: Any) -> Any:
    raise Conflict("The run has ended already.")


@project_view("read")
def _storing(request: Any) -> Any:
    raise {
        "driver": DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"),
        "integer": OverflowError("Python int too large to convert to SQLite INTEGER"),
        "ours": OverflowError("math range error"),
    }[request.GET["what"]]


handler403, handler404 = urls.handler403, urls.handler404
urlpatterns = [path("refusing/", _refusing), path("storing/", _storing), *urls.urlpatterns]
pytestmark = pytest.mark.urls(__name__)


@pytest.mark.parametrize("what", ["driver", "integer"])
def test_a_page_asked_with_a_value_that_no_column_holds_answers_400(page: Client, what: str) -> None:
    response = page.get("/storing/", {"what": what})

    assert response.status_code == 400
    assert "cannot be stored" in response.content.decode()


def test_an_overflow_of_our_own_is_not_blamed_on_the_caller(page: Client) -> None:
    with pytest.raises(OverflowError):
        page.get("/storing/", {"what": "ours"})


def test_a_refused_page_says_why(page: Client) -> None:
    response = page.get("/refusing/")

    assert response.status_code == 409
    assert "The run has ended already." in response.content.decode()


def test_a_refused_form_goes_back_with_a_message(page: Client) -> None:
    response = page.post("/refusing/", headers={"Referer": "http://testserver/settings/?tab=1"})

    assert response["Location"] == "/settings/?tab=1"
    assert "The run has ended already." in page.get("/settings/").content.decode()


def test_a_refused_fragment_answers_with_the_sentence_alone(page: Client) -> None:
    response = page.post("/refusing/", headers={"HX-Request": "true"})

    assert response.status_code == 409
    assert response["Content-Type"].startswith("text/plain")
    assert response.content.decode() == "The run has ended already."


def test_a_person_without_project_is_told_what_to_do(client: Client, db: None) -> None:
    client.force_login(User.objects.create_user("new"))

    response = client.get("/refusing/")

    assert response.status_code == 403
    assert "Ask an admin to add you." in response.content.decode()


def test_nothing_at_an_address_is_said_in_a_page(page: Client) -> None:
    response = page.get("/nothing-here/")

    assert response.status_code == 404
    assert "There is nothing at this address in your projects." in response.content.decode()


@pytest.mark.parametrize(
    "referrer",
    [
        "http://testserver//evil.example/",
        "http://testserver/\\evil.example/",
        "https://example.com/x/",
        "javascript:alert(1)",
        "",
    ],
)
def test_only_our_own_pages_are_gone_back_to(referrer: str) -> None:
    request = RequestFactory().post("/", headers={"Referer": referrer})

    assert back_url(request, "/evals/") == "/evals/"
