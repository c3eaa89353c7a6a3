"""Fixtures that build the smallest valid objects, nothing more.

Properties are checked on the same examples in every run, without a time limit: a busy machine is no
counterexample. ``--hypothesis-profile=search`` looks for new ones.
"""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from apps.core.models import Membership, Project, Role, User
from apps.core.permissions import Actor, actor_for_user
from artifacts import ArtifactStore

_SLOW = {"deadline": None, "print_blob": True, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same", derandomize=True, database=None, max_examples=60, **_SLOW)
settings.register_profile("search", max_examples=1000, **_SLOW)
settings.load_profile("same")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArtifactStore:
    """An empty artifact store that ``get_store()`` returns too."""
    url = f"file://{tmp_path}/artifacts"
    monkeypatch.setenv("FLYWHEEL_ARTIFACTS", url)
    return ArtifactStore(url)


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_user("ada", password="correct horse battery")


@pytest.fixture
def project(admin: User) -> Project:
    project = Project.objects.create(name="Billing", slug="billing")
    Membership.objects.create(project=project, user=admin, role=Role.ADMIN)
    return project


@pytest.fixture
def actor(admin: User, project: Project) -> Actor:
    """The project's admin."""
    return actor_for_user(user=admin, project=project)


@pytest.fixture
def viewer(project: Project) -> Actor:
    user = User.objects.create_user("vic", password="correct horse battery")
    Membership.objects.create(project=project, user=user, role=Role.VIEWER)
    return actor_for_user(user=user, project=project)


@pytest.fixture
def page(client, admin: User, project: Project):  # type: ignore[no-untyped-def]
    """A signed-in Django test client in ``project``."""
    client.force_login(admin)
    return client


@pytest.fixture
def api(client, actor: Actor):  # type: ignore[no-untyped-def]
    """A Django test client that carries an API key with every scope."""
    from apps.core.permissions import SCOPES
    from apps.core.services import api_key_create

    made = api_key_create(project=actor.project, name="tests", scopes=list(SCOPES), by=actor)
    client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {made.secret}"
    return client


@pytest.fixture(autouse=True)
def sent_messages(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[object, ...], str]]:
    """Messages that would have gone to the broker: ``(task, args, queue)``. Nothing is really sent."""
    sent: list[tuple[str, tuple[object, ...], str]] = []

    def record(task: str, *args: object, queue: str = "web") -> None:
        sent.append((task, args, queue))

    monkeypatch.setattr("apps.core.dispatch.send_now", record)
    monkeypatch.setattr("apps.core.units.send_now", record)
    return sent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked ``services`` run where ``make test-services`` names PostgreSQL as the database."""
    from django.conf import settings

    if settings.DATABASES["default"]["ENGINE"].endswith("postgresql"):
        return
    skip = pytest.mark.skip(reason="needs PostgreSQL, Redis and RabbitMQ: make test-services")
    for item in items:
        if item.get_closest_marker("services"):  # keywords also hold the names of folders
            item.add_marker(skip)
