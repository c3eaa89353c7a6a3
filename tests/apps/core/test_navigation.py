"""The frame of a page: sections, counts, settings list, projects."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import RequestFactory

from apps.core import context
from apps.core.models import Project, User


def _navigation(path: str, admin: User, project: Project) -> dict[str, object]:
    request = RequestFactory().get(path)
    request.user, request.project = admin, project  # type: ignore[attr-defined]
    return context.navigation(request)


@pytest.mark.parametrize(
    ("path", "section"),
    [
        ("/", "Loop"),
        ("/loop/turns/3/", "Loop"),
        ("/evals/runs/2/", "Evals"),
        ("/settings/keys/", "Settings"),
        ("/account/password/", "Settings"),
        ("/versions/endpoints/", "Settings"),
        ("/versions/3/", "Versions"),
    ],
)
def test_exactly_one_section_is_current(path: str, section: str, admin: User, project: Project) -> None:
    sections = _navigation(path, admin, project)["navigation"]

    assert [item.label for item in sections if item.current] == [section]  # type: ignore[attr-defined]


def test_sections_carry_the_counts_that_apps_registered(
    admin: User, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "nav_counts", {"training": lambda project: "1 live"})

    sections = _navigation("/", admin, project)["navigation"]

    assert [item.count for item in sections] == ["", "", "", "1 live", "", ""]  # type: ignore[attr-defined]


def test_a_stranger_gets_no_sections_and_no_query(db: None, django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    request = RequestFactory().get("/login/")
    request.user = AnonymousUser()

    with django_assert_num_queries(0):
        frame = context.navigation(request)
        shown = list(frame["navigation"])

    assert shown == []
    assert frame["theme"] == "system"
