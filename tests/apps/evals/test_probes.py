"""Probes: what may be watched, the schedule, changes of it, what follows promotions."""

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.core.errors import Conflict, Refused
from apps.core.models import AuditEvent
from apps.evals import services, tasks
from apps.evals.models import Probe, ProbeRound
from apps.evals.probe_prompts import DEFAULT_PROMPTS
from apps.versions.models import ModelVersion
from apps.versions.services.listeners import ReleaseNews

pytestmark = pytest.mark.django_db


@pytest.fixture
def probe(fake_model, project, version, actor):
    """Watches 1.0 standard, its reference taken."""
    made = services.probe_create(project=project, version=version, by=actor)
    services.probe_round(probe=made)
    made.refresh_from_db()
    return made


def test_a_new_probe_asks_at_once_and_on_its_schedule(
    fake_model, project, version, actor, sent_messages, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        made = services.probe_create(project=project, version=version, every_s=3600, by=actor)

    assert ("evals.probe_round", (made.pk,), "web") in sent_messages
    assert made.prompts == list(DEFAULT_PROMPTS)
    assert made.model == "pocket"
    assert 3500 < (made.next_at - timezone.now()).total_seconds() < 3700
    assert AuditEvent.objects.filter(action="probe.create").exists()


def test_what_is_due_is_sent_once(probe, sent_messages, django_capture_on_commit_callbacks):
    Probe.objects.update(next_at=timezone.now() - timedelta(seconds=1))

    with django_capture_on_commit_callbacks(execute=True):
        counts = [services.probes_tick(), services.probes_tick()]

    assert counts == [1, 0]
    assert sent_messages.count(("evals.probe_round", (probe.pk,), "web")) == 1


def test_a_round_that_died_with_its_worker_is_asked_again_at_once(
    probe, sent_messages, django_capture_on_commit_callbacks
):
    """Its claim ran out: a round that ends, however it ends, gives it back."""
    Probe.objects.update(busy_until=timezone.now() - timedelta(seconds=1))

    with django_capture_on_commit_callbacks(execute=True):
        counts = [services.probes_tick(), services.probes_tick()]

    assert counts == [1, 0]
    assert sent_messages.count(("evals.probe_round", (probe.pk,), "web")) == 1


def test_a_paused_probe_is_not_sent(probe, actor):
    services.probe_change(probe=probe, enabled=False, by=actor)
    Probe.objects.update(next_at=timezone.now() - timedelta(seconds=1))

    assert services.probes_tick() == 0


def test_the_task_of_a_deleted_probe_does_nothing(db):
    tasks.probe_round(12345)

    assert not ProbeRound.objects.exists()


def test_one_target_has_one_probe(probe, project, version, actor):
    with pytest.raises(Conflict, match="already a probe"):
        services.probe_create(project=project, version=version, by=actor)


def test_personal_data_in_prompts_is_masked(fake_model, project, version, actor):
    prompts = [f"Say {n} to maria.gonzalez@corp.example.com" for n in range(5)]

    made = services.probe_create(project=project, version=version, prompts=prompts, by=actor)

    assert "maria" not in str(made.prompts)
    assert len(set(made.prompts)) == 5


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"prompts": ["one"]}, "prompts_count"),
        ({"prompts": ["same"] * 5}, "prompt_twice"),
        ({"prompts": ["x" * 2001, "b", "c", "d", "e"]}, "prompt_long"),
        ({"every_s": 10}, "interval_invalid"),
        ({"edition_kind": "turbo"}, "edition_unknown"),
        ({"version": None}, "target_unclear"),
    ],
)
def test_a_probe_that_makes_no_sense_is_refused(fake_model, project, version, actor, changes, code):
    with pytest.raises(Refused) as caught:
        services.probe_create(**{"project": project, "version": version, "by": actor, **changes})

    assert caught.value.code == code
    assert not Probe.objects.exists()


def test_an_interval_is_changed_and_counts_from_now(probe, actor):
    services.probe_change(probe=probe, every_s=7200, by=actor)

    probe.refresh_from_db()
    assert probe.every_s == 7200
    assert 7100 < (probe.next_at - timezone.now()).total_seconds() <= 7200
    assert probe.enabled
    assert AuditEvent.objects.filter(action="probe.change").exists()


def test_an_interval_that_makes_no_sense_changes_nothing(probe, actor):
    with pytest.raises(Refused, match="5 minutes"):
        services.probe_change(probe=probe, every_s=1, enabled=False, by=actor)

    probe.refresh_from_db()
    assert probe.enabled


def test_a_probe_of_what_is_in_service_needs_a_version_there(fake_model, project, version, actor):
    ModelVersion.objects.update(state=ModelVersion.State.REGISTERED)

    with pytest.raises(Refused, match="No version is in service"):
        services.probe_create(project=project, follows=True, by=actor)


def test_what_is_in_service_is_watched_once_for_each_edition(fake_model, project, version, actor):
    version.state = ModelVersion.State.IN_SERVICE
    version.save()
    services.probe_create(project=project, follows=True, by=actor)
    services.probe_create(project=project, version=version, by=actor)
    services.probe_create(project=project, follows=True, edition_kind="high_speed", by=actor)

    with pytest.raises(Conflict, match="in service"):
        services.probe_create(project=project, follows=True, by=actor)


def test_a_promotion_makes_probes_that_follow_it_ask_at_once(
    fake_model, project, version, actor, sent_messages, django_capture_on_commit_callbacks
):
    version.state = ModelVersion.State.IN_SERVICE
    version.save()
    following = services.probe_create(project=project, follows=True, by=actor)
    services.probe_create(project=project, version=version, by=actor)

    with django_capture_on_commit_callbacks(execute=True):
        services.probes_hear("promoted", ReleaseNews(version=version, release=None))

    assert sent_messages == [("evals.probe_round", (following.pk,), "web")]
