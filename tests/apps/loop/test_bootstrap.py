"""The first start, the later ones, and a host without a sandbox."""

import stat
from pathlib import Path

import pytest
from django.contrib.auth import authenticate

from apps.core.models import Alert, ApiKey, Membership, Project, Role, User
from apps.evals.models import Run, Suite
from apps.feedback import pack_families
from apps.feedback.models import Capture, Family, Inference, TaskAsset
from apps.loop import bootstrap
from apps.loop.bootstrap import installation_bootstrap
from apps.loop.models import DemoTurn
from apps.training.models import TrainingRun
from apps.versions.models import ModelVersion
from packs.registry import packs

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folder(settings, store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small packs in a data folder of their own."""
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(pack_families, "FAMILY_TASKS", 4)
    monkeypatch.setattr(bootstrap, "SUITE_SIZE", 3)
    return tmp_path


def _families() -> set[str]:
    return {family.name for pack in packs().values() if pack.starter for family in pack.families}


def test_the_first_start_makes_an_admin_with_the_password_it_prints():
    made = installation_bootstrap()

    user = authenticate(username=made["username"], password=made["password"])
    assert user is not None
    assert Membership.objects.get(user=user, project__slug=made["project"]).role == Role.ADMIN


def test_the_password_is_kept_where_only_its_owner_reads(folder: Path):
    made = installation_bootstrap()

    path = folder / "secrets" / "first-login.txt"
    assert path.read_text() == f"admin {made['password']}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_readable_file_left_by_someone_is_replaced(folder: Path):
    path = folder / "secrets" / "first-login.txt"
    path.parent.mkdir()
    path.write_text("old")
    path.chmod(0o644)

    installation_bootstrap()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_first_start_brings_families_suites_and_a_version_in_service():
    made = installation_bootstrap()

    project = Project.objects.get(slug=made["project"])
    assert set(Family.objects.filter(project=project).values_list("name", flat=True)) == _families()
    assert Suite.objects.filter(project=project).count() == len(_families())
    assert all(suite.versions.count() == 1 for suite in Suite.objects.all())
    assert TaskAsset.objects.filter(project=project).count() >= len(_families())
    assert ModelVersion.objects.filter(project=project, state="in_service").count() == 1
    assert made["example"]


def test_the_first_start_invents_no_results():
    installation_bootstrap()

    for model in (Run, TrainingRun, Capture, Inference, DemoTurn):
        assert model.objects.count() == 0, model


def test_a_later_start_makes_only_a_fresh_key():
    first = installation_bootstrap()
    models = (User, Project, Membership, Family, Suite, TaskAsset, ModelVersion)
    before = [model.objects.count() for model in models]

    second = installation_bootstrap()

    assert [model.objects.count() for model in models] == before
    assert second["password"] == ""
    assert second["api_key"] != first["api_key"]
    assert ApiKey.objects.active().count() == 1


def test_the_key_of_the_last_start_stops_working(client):
    first = installation_bootstrap()["api_key"]
    second = installation_bootstrap()["api_key"]

    statuses = [
        client.get("/api/v1/versions", headers={"Authorization": f"Bearer {key}"}).status_code
        for key in (first, second)
    ]
    assert statuses == [401, 200]


def test_an_admin_who_left_the_project_does_not_stop_the_start():
    installation_bootstrap()
    project = Project.objects.get(slug="demo")
    other = User.objects.create_user("eve", password="correct horse battery")
    Membership.objects.create(project=project, user=other, role=Role.ADMIN)
    Membership.objects.get(project=project, user__username="admin").delete()

    made = installation_bootstrap()

    assert ApiKey.objects.active().get().created_by == other
    assert made["api_key"]


def test_a_start_that_died_half_way_is_made_good(monkeypatch: pytest.MonkeyPatch):
    imported = pack_families.assets_import
    with monkeypatch.context() as patch:
        patch.setattr(pack_families, "assets_import", lambda **_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            installation_bootstrap()
    assert imported is pack_families.assets_import

    installation_bootstrap()

    families = Family.objects.filter(project__slug="demo")
    assert all(TaskAsset.objects.filter(family=family).exists() for family in families)


def test_without_a_sandbox_code_families_say_so_and_an_alert_opens():
    made = installation_bootstrap(sandbox_problem="User namespaces are forbidden. Run sysctl -w x=1.")

    marked = Family.objects.exclude(unavailable="")
    assert {family.verifier.kind for family in marked} == {"python_tests"}
    assert marked.get().unavailable == "User namespaces are forbidden. Run sysctl -w x=1."
    alert = Alert.objects.get(resolved_at=None)
    assert marked.get().title in alert.title
    assert "Run sysctl" in made["warnings"][0]


def test_once_there_is_a_sandbox_mark_and_alert_are_gone():
    installation_bootstrap(sandbox_problem="User namespaces are forbidden.")

    made = installation_bootstrap()

    assert made["warnings"] == []
    assert not Family.objects.exclude(unavailable="").exists()
    assert not Alert.objects.filter(resolved_at=None).exists()
