"""What Versions shows on the rail, the Loop page, and under "needs a person"."""

from datetime import timedelta

from django.utils import timezone

from apps.core import registries
from apps.versions import panels, services
from tests.apps.versions.traffic import traffic


def test_the_rail_shows_the_share_of_a_running_canary(project, control, release):
    assert panels.nav_count(project) == "10 %"


def test_the_rail_shows_nothing_without_a_canary(project, control):
    assert panels.nav_count(project) == ""


def test_stages_before_during_and_after_a_release(project, release, actor):
    assert panels.versions_stage(project)["note"] == "1.1 in canary"
    assert panels.canary_stage(project)["value"] == "10 %"

    services.release_abort(release=release, reason="Enough", by=actor)

    assert panels.versions_stage(project)["note"] == "in service"
    assert panels.canary_stage(project)["note"] == "1.1 aborted"


def test_stages_of_an_empty_project(project):
    assert panels.versions_stage(project)["value"] == "–"
    assert panels.canary_stage(project)["note"] == "no release yet"


def test_a_release_that_holds_for_long_waits_for_a_person(project, release):
    assert panels.waiting_rows(project) == []

    release.step_started_at = timezone.now() - timedelta(hours=2)
    release.save()

    assert panels.waiting_rows(project)[0]["what"] == "Release 1 of 1.1 holds at 10 %"


def test_a_rollback_waits_until_someone_has_looked(project, release, actor):
    traffic(release, canary=(60, 40), control=(540, 20))
    services.release_evaluate(release=release)
    assert panels.waiting_rows(project)[0]["what"] == "Release 1 of 1.1 was rolled back"
    assert panels.canary_stage(project)["tone"] == "fail"

    services.release_acknowledge(release=release, by=actor)

    assert panels.waiting_rows(project) == []
    assert panels.canary_stage(project)["tone"] == ""


def test_the_periodic_tasks_are_on_the_web_queue():
    ours = {
        task.task: (task.every_s, task.queue) for task in registries.periodic_tasks if "versions" in task.task
    }

    assert ours == {"versions.releases_tick": (2.0, "web"), "versions.engines_reconcile": (1.0, "web")}
