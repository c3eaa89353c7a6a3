"""Engines are filled with what they must hold, watched, and reported."""

from datetime import timedelta

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.core.models import Alert, Event
from apps.versions import services
from apps.versions.models import Deployment
from apps.versions.selectors import routing_current
from tests.apps.versions.conftest import PLAN


def open_alerts():
    return set(Alert.objects.filter(resolved_at=None).values_list("title", flat=True))


def test_engines_come_from_the_settings_and_a_new_address_replaces_the_old(served, project):
    services.engines_reconcile()

    assert {row.base_url for row in Deployment.objects.engines()} == {fake.url for fake in served.values()}
    editions = routing_current(project).snapshot["editions"]
    assert editions["standard"][0]["base_url"] == served["standard"].url


def test_several_addresses_are_several_engines(served, settings, project):
    settings.ENGINE_STANDARD_URL = f"{served['standard'].url}, {served['high_speed'].url}"

    services.engines_reconcile()

    assert len(routing_current(project).snapshot["editions"]["standard"]) == 2


def test_a_candidate_is_loaded_everywhere_and_then_its_release_takes_traffic(served, register, actor):
    version = register("run1", loaded=False)
    services.engines_reconcile()
    release = services.release_start(candidate=version, plan=PLAN, reason="Try it", by=actor)
    assert release.warming

    loaded = services.engines_reconcile()
    release = services.release_evaluate(release=release)

    assert loaded == 2
    assert all(fake.models == ["pocket", "run1"] for fake in served.values())
    assert (release.warming, release.weight) == (False, 0.1)
    folder = served["standard"].loads[0]["lora_path"]
    assert folder.endswith("/adapters/run1")


def test_what_is_loaded_is_not_loaded_again(served, register, actor):
    version = register("run1", loaded=False)
    services.engines_reconcile()
    services.release_start(candidate=version, plan=PLAN, reason="Try it", by=actor)

    services.engines_reconcile()
    services.engines_reconcile()

    assert [len(fake.loads) for fake in served.values()] == [1, 1]


def test_a_look_that_finds_nothing_new_writes_nothing(served, project):
    services.engines_reconcile()

    with CaptureQueriesContext(connection) as asked:
        services.engines_reconcile()

    assert [query["sql"] for query in asked if not query["sql"].startswith("SELECT")] == []


def test_an_engine_that_restarted_empty_is_filled_again(served, register, actor):
    version = register("run1", loaded=False)
    services.engines_reconcile()
    services.release_start(candidate=version, plan=PLAN, reason="Try it", by=actor)
    services.engines_reconcile()

    served["standard"].models = ["pocket"]
    services.engines_reconcile()

    assert "run1" in served["standard"].models
    alert = Alert.objects.get(title="engine-standard restarted without its adapters")
    assert alert.resolved_at is not None


def test_an_engine_that_stays_away_raises_an_alert_and_its_return_resolves_it(served, settings, project):
    services.engines_reconcile()
    address, settings.ENGINE_STANDARD_URL = served["standard"].url, "http://127.0.0.1:9"
    services.engines_reconcile()
    assert open_alerts() == set(), "a moment's absence is nobody's business"

    Deployment.objects.filter(edition_kind="standard").update(
        healthy_changed_at=timezone.now() - timedelta(seconds=6)
    )
    services.engines_reconcile()
    assert open_alerts() == {"engine-standard does not answer"}

    settings.ENGINE_STANDARD_URL = address
    services.engines_reconcile()
    assert open_alerts() == set()


def test_an_adapter_that_an_engine_refuses_is_reported(served, register, actor):
    version = register("run1", loaded=False)
    services.engines_reconcile()
    served["high_speed"].refuse = True
    release = services.release_start(candidate=version, plan=PLAN, reason="Try it", by=actor)

    services.engines_reconcile()

    assert open_alerts() == {"engine-high-speed lacks an adapter"}
    assert services.release_evaluate(release=release).warming


def test_a_version_on_another_base_is_not_sent_to_an_engine(served, register, actor):
    version = register("run1", loaded=False)
    services.engines_reconcile()
    services.release_start(candidate=version, plan=PLAN, reason="Try it", by=actor)
    served["standard"].models = ["another-base"]

    services.engines_reconcile()

    assert served["standard"].loads == []
    assert any("lacks an adapter" in title for title in open_alerts())


def test_a_quiet_second_writes_nothing(served, project):
    services.engines_reconcile()
    events = Event.objects.count()
    checked = list(Deployment.objects.engines().values_list("checked_at", flat=True))

    services.engines_reconcile()

    assert Event.objects.count() == events
    assert list(Deployment.objects.engines().values_list("checked_at", flat=True)) == checked
