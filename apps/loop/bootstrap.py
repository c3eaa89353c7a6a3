"""The first start: an admin, a demo project with the packs' families and suites, and no results.

Every later start finds what is there and only makes a fresh API key for the ``curl`` line.
"""

import os
import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from apps.core.models import ApiKey, Project, Role, User
from apps.core.permissions import SCOPES, Actor, actor_for_user
from apps.core.services import api_key_create, api_key_revoke, project_create
from apps.evals.models import Suite
from apps.evals.services import suite_create, suite_version_create
from apps.feedback.services import pack_family_add, sandbox_state_apply
from apps.versions.services import engines_register, installation_base_register
from packs.registry import Pack, broken_packs, packs

PROJECT_SLUG = "demo"
KEY_NAME = "make run"
SUITE_SIZE = 100
SUITE_SEED = 2026


def installation_bootstrap(*, sandbox_problem: str = "") -> dict[str, Any]:
    """Make what is missing; returns login, a fresh API key, and warnings, for the launcher to print."""
    user, password = _admin()
    project = Project.objects.filter(slug=PROJECT_SLUG).first()
    if project is None:
        project = project_create(name="Demo", owner=user)
    # People may have changed since the first start; a project always has an admin.
    owner = project.memberships.filter(role=Role.ADMIN).order_by("pk").select_related("user")[0].user
    actor = actor_for_user(user=owner, project=project)
    installation_base_register(project=project, by=actor)
    engines_register(project=project, by=actor)
    _families(project, actor)
    _suites(project, actor)
    warnings = [
        *_sandbox(project, sandbox_problem),
        *(f"The pack “{name}” cannot be loaded: {why}" for name, why in broken_packs().items()),
    ]
    return {
        "username": user.username,
        "password": password,
        "project": project.slug,
        "api_key": _fresh_key(project, actor),
        "example": _example(),
        "warnings": warnings,
    }


def _starters() -> list[Pack]:
    """Packs that come with every project; the others are added on their page."""
    return [pack for pack in packs().values() if pack.starter]


def _example() -> str:
    """A question for the ``curl`` line: a pack's first task."""
    pack = next(iter(_starters()))
    task = pack.generate(pack.families[0].name, seed=SUITE_SEED, count=1)[0]
    return str(task.messages[-1].content)


def _admin() -> tuple[User, str]:
    """The first user and, only when it was just made, its password."""
    user = User.objects.filter(is_superuser=True).order_by("pk").first()
    if user is not None:
        return user, ""
    password = secrets.token_urlsafe(12)
    # The file first: a user whose password nobody ever saw would be worse than a file without a user.
    path = Path(settings.DATA_DIR) / "secrets" / "first-login.txt"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.unlink(missing_ok=True)  # the mode below is that of a new file only
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(f"admin {password}\n")
    return User.objects.create_superuser("admin", password=password), password


def _fresh_key(project: Project, actor: Actor) -> str:
    """A key for this start; the one of the last start stops working."""
    for key in ApiKey.objects.active().filter(project=project, name=KEY_NAME):
        api_key_revoke(key=key, by=actor)
    return api_key_create(project=project, name=KEY_NAME, scopes=list(SCOPES), by=actor).secret


def _families(project: Project, actor: Actor) -> None:
    """The families of the starter packs with their tasks; new verifiers go to the gauntlet."""
    for pack in _starters():
        for entry in pack.families:
            pack_family_add(project=project, name=entry.name, by=actor)


def _suites(project: Project, actor: Actor) -> None:
    known = set(Suite.objects.filter(project=project).values_list("name", flat=True))
    for pack in _starters():
        for entry in pack.families:
            if entry.title in known:
                continue
            tasks = pack.generate(entry.name, seed=SUITE_SEED, count=SUITE_SIZE, reserved=True)
            note = f"From the pack “{pack.name}”"
            with transaction.atomic():
                suite = suite_create(
                    project=project, name=entry.title, description=entry.description, by=actor
                )
                suite_version_create(suite=suite, tasks=tasks, note=note, by=actor)


def _sandbox(project: Project, problem: str) -> list[str]:
    """Families whose answers must be run say so while no sandbox can be had."""
    title = sandbox_state_apply(project=project, problem=problem)
    return [f"{title}. {problem}"] if title else []
