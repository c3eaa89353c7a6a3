"""What every page shows around its content: sections with their counts, projects, theme."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from django.http import HttpRequest
from django.urls import Resolver404, resolve, reverse
from django.utils.functional import SimpleLazyObject

from apps.core.models import Project, User
from apps.core.registries import nav_counts

# (registry name, label, mount point in config/urls.py, key after "g"), in the order of the loop.
_SECTIONS = (
    ("loop", "Loop", "/", "l"),
    ("failures", "Failures", "/failures/", "f"),
    ("evals", "Evals", "/evals/", "e"),
    ("training", "Training", "/training/", "t"),
    ("versions", "Versions", "/versions/", "v"),
    ("settings", "Settings", "/settings/", "s"),
)
_SETTINGS = (
    ("core:settings", "Project"),
    ("core:people", "People"),
    ("core:keys", "API keys"),
    ("/versions/endpoints/", "Endpoints"),
    ("/versions/routing/", "Routing"),
    ("/failures/rules/", "Anonymization rules"),
    ("core:appearance", "Appearance"),
    ("core:work", "Work queue"),
    ("core:audit", "Audit trail"),
)


@dataclass(frozen=True)
class Section:
    label: str
    url: str
    current: bool
    keys: str = ""
    count: str = ""


def navigation(request: HttpRequest) -> dict[str, Any]:
    """``current_project``, ``projects``, ``navigation``, ``settings_pages``, ``theme``, ``themes``.

    Everything is lazy: a fragment that shows no frame costs no query.
    """
    user = getattr(request, "user", None)
    signed_in = user is not None and user.is_authenticated
    project = getattr(request, "project", None) if signed_in else None
    return {
        "current_project": project,
        "projects": SimpleLazyObject(lambda: _projects(request, project)),
        "navigation": SimpleLazyObject(lambda: _sections(request.path, project) if project else []),
        "settings_pages": SimpleLazyObject(lambda: _settings(request.path)),
        "theme": user.theme if isinstance(user, User) else User.Theme.SYSTEM,
        "themes": User.Theme.choices,
    }


def _projects(request: HttpRequest, project: Any) -> list[Project]:
    bool(project)  # resolving the project also loads the memberships
    return [membership.project for membership in getattr(request, "memberships", [])]


def _sections(path: str, project: Project) -> list[Section]:
    here = _section_of(path)
    sections = []
    for name, label, url, key in _SECTIONS:
        current = name == here
        count = nav_counts[name](project) if name in nav_counts else ""
        sections.append(Section(label, url, current, f"g {key}", count))
    return sections


def _section_of(path: str) -> str:
    """Which section a page belongs to; settings that other apps keep count as Settings."""
    elsewhere = [target for target, _ in _SETTINGS if target.startswith("/")]
    if path.startswith(("/account/", "/projects/", *elsewhere)):
        return "settings"
    return next((name for name, _, url, _ in _SECTIONS[1:] if path.startswith(url)), "loop")


def _settings(path: str) -> list[Section]:
    """The side list; a page that this installation does not have is left out."""
    urls = [(target if target.startswith("/") else reverse(target), label) for target, label in _SETTINGS]
    return [Section(label, url, path == url) for url, label in urls if _exists(url)]


@cache
def _exists(path: str) -> bool:
    try:
        resolve(path)
    except Resolver404:
        return False
    return True
