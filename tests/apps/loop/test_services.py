"""Starting and stopping turns, and the keys they run with."""

import pytest
from django.core.exceptions import PermissionDenied

from apps.core.crypto import decrypt_bytes, key_digest
from apps.core.errors import Conflict, Refused
from apps.core.models import ApiKey, AuditEvent, Event, Membership, Project, Role, User
from apps.core.permissions import SCOPES, Actor, actor_for_key, actor_for_user
from apps.core.services import api_key_create
from apps.loop.models import DemoTurn
from apps.loop.services import TURN_SCOPES, turn_cancel, turn_keys_revoke, turn_start


def test_a_started_turn_leaves_row_audit_event_and_message(
    project: Project, actor: Actor, sent_messages, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        turn = turn_start(project=project, seed=5, by=actor)

    assert (turn.seed, turn.status, turn.phase) == (5, "running", "prepare")
    assert AuditEvent.objects.filter(action="turn.start", object_id=str(turn.pk)).exists()
    assert Event.objects.filter(topic=turn.lineage_key, kind="TurnStarted").exists()
    assert ("loop.turns_tick", (), "web") in sent_messages


def test_without_a_seed_one_is_drawn(project: Project, actor: Actor, monkeypatch):
    monkeypatch.setattr("apps.loop.services.secrets.randbelow", lambda n: 321)

    assert turn_start(project=project, by=actor).seed == 321


@pytest.mark.parametrize("seed", [-1, 2**31])
def test_a_seed_out_of_range_is_refused(project: Project, actor: Actor, seed: int):
    with pytest.raises(Refused, match="Choose a seed between 0 and"):
        turn_start(project=project, seed=seed, by=actor)


def test_one_turn_runs_per_project(project: Project, actor: Actor, row: DemoTurn):
    with pytest.raises(Conflict, match="already running"):
        turn_start(project=project, by=actor)

    assert ApiKey.objects.count() == 1  # that of the first turn


def test_another_project_may_run_its_own(row: DemoTurn):
    owner = User.objects.create_user("eve", password="correct horse battery")
    other = Project.objects.create(name="Legal", slug="legal")
    Membership.objects.create(project=other, user=owner, role=Role.ADMIN)

    turn_start(project=other, by=actor_for_user(user=owner, project=other))

    assert DemoTurn.objects.filter(status="running").count() == 2


def test_after_the_end_another_may_start(project: Project, actor: Actor, row: DemoTurn):
    turn_cancel(turn=row, by=actor)

    assert turn_start(project=project, by=actor).pk != row.pk


@pytest.mark.parametrize("scope", TURN_SCOPES)
def test_a_key_without_one_of_the_scopes_starts_nothing(project: Project, actor: Actor, scope: str):
    scopes = [name for name in SCOPES if name != scope]
    key = api_key_create(project=project, name="almost", scopes=scopes, by=actor).key

    with pytest.raises(PermissionDenied, match=f"lacks the scope “{scope}”"):
        turn_start(project=project, by=actor_for_key(key=key))

    assert not DemoTurn.objects.exists()


def test_the_turns_key_is_stored_encrypted_and_carries_no_more_than_it_needs(row: DemoTurn):
    key = ApiKey.objects.get(pk=row.key_id)
    secret = decrypt_bytes(bytes(row.api_key)).decode()

    assert key_digest(secret) == key.digest
    assert secret.encode() not in bytes(row.api_key)
    assert set(key.scopes) == set(TURN_SCOPES)
    assert "admin" not in key.scopes


def test_a_running_turns_key_works_and_an_ended_ones_does_not(row: DemoTurn, actor: Actor):
    assert turn_keys_revoke() == 0
    turn_cancel(turn=row, by=actor)

    assert turn_keys_revoke() == 1
    assert ApiKey.objects.get(pk=row.key_id).revoked_at is not None
    assert turn_keys_revoke() == 0
    assert AuditEvent.objects.filter(action="api_key.revoke").count() == 1


def test_a_stopped_turn_says_who_stopped_it(row: DemoTurn, actor: Actor):
    turn_cancel(turn=row, by=actor)

    row.refresh_from_db()
    assert (row.status, row.leased_until) == ("cancelled", None)
    assert row.finished_at is not None
    assert row.lines.get().text == "Stopped by ada."
    assert AuditEvent.objects.filter(action="turn.cancel").exists()


def test_an_ended_turn_cannot_be_stopped(row: DemoTurn, actor: Actor):
    turn_cancel(turn=row, by=actor)

    with pytest.raises(Conflict, match="has ended"):
        turn_cancel(turn=row, by=actor)
