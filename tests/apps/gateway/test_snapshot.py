"""What the data path knows: the newest revisions, keys and limits, and the last good state."""

import asyncio
import threading
from typing import Any

import pytest
from django.utils import timezone

from apps.core.crypto import encrypt_bytes, key_digest
from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.services import api_key_create, api_key_revoke
from apps.gateway.endpoints import EndpointTerms
from apps.gateway.limits import Limits
from apps.gateway.services import instance_report, key_limit_set
from apps.gateway.snapshot import Snapshot, SnapshotHolder, SnapshotLoader
from apps.versions.models import Deployment, RoutingRevision
from tests.waiting import GUARD_S, becomes


def revision(project: Project, number: int) -> RoutingRevision:
    return RoutingRevision.objects.create(
        project=project, number=number, snapshot={"revision": number, "project_id": project.pk}, actor="t"
    )


@pytest.mark.django_db
def test_the_newest_revision_of_each_project_is_served(project: Project) -> None:
    other = Project.objects.create(name="Other", slug="other")
    loader = SnapshotLoader()
    revision(project, 1)
    revision(other, 1)
    assert loader.load().revisions() == {project.pk: 1, other.pk: 1}

    revision(project, 2)

    assert loader.load().revisions() == {project.pk: 2, other.pk: 1}


@pytest.mark.django_db
def test_unchanged_revisions_are_not_read_again(project: Project, django_assert_num_queries: Any) -> None:
    loader = SnapshotLoader()
    revision(project, 1)
    with django_assert_num_queries(6):
        loader.load()

    with django_assert_num_queries(5):
        loader.load()


@pytest.mark.django_db
def test_keys_come_with_scopes_and_limits_and_go_when_revoked(project: Project, actor: Actor) -> None:
    usual = api_key_create(project=project, name="a", scopes=["gateway"], by=actor)
    special = api_key_create(project=project, name="b", scopes=["read"], by=actor)
    key_limit_set(key=special.key, requests_per_minute=5, tokens_per_minute=6, in_flight=7, by=actor)

    keys = SnapshotLoader().load().keys

    assert keys[key_digest(usual.secret)].scopes == {"gateway"}
    assert keys[key_digest(special.secret)].limits == Limits(5, 6, 7)
    api_key_revoke(key=usual.key, by=actor)
    assert key_digest(usual.secret) not in SnapshotLoader().load().keys


@pytest.mark.django_db
def test_endpoint_keys_are_decrypted_and_an_unreadable_one_is_left_out(project: Project) -> None:
    def endpoint(name: str, stored: bytes) -> Deployment:
        return Deployment.objects.create(
            project=project, name=name, kind="external", base_url="http://x", model="m", api_key=stored
        )

    good = endpoint("good", encrypt_bytes(b"sk-1"))
    endpoint("bad", b"not a token")

    assert SnapshotLoader().load().endpoint_keys == {good.pk: "sk-1"}


@pytest.mark.django_db
def test_endpoints_come_with_their_terms_and_the_number_of_gateways_that_keep_them(project: Project) -> None:
    row = Deployment.objects.create(
        project=project, name="x", kind="external", base_url="http://x", model="m",
        max_concurrency=3, requests_per_minute=60, timeout_s=9, deadline_s=90,
    )  # fmt: skip
    for name in ("web-1", "web-2"):
        instance_report(name=name, started_at=timezone.now(), revisions={}, in_flight=0, rows_lost=0)

    snapshot = SnapshotLoader().load()

    assert snapshot.endpoint_terms == {row.pk: EndpointTerms(3, 60, None, 9, 90)}
    assert snapshot.gateways == 2


@pytest.mark.django_db
def test_an_endpoint_registered_while_a_snapshot_is_read_comes_with_its_key_or_not_at_all(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = SnapshotLoader._load_routing

    def register_first(loader: SnapshotLoader) -> Any:
        Deployment.objects.create(
            project=project, name="x", kind="external", base_url="http://x", model="m",
            api_key=encrypt_bytes(b"sk-1"),
        )  # fmt: skip
        revision(project, 1)
        return read(loader)

    monkeypatch.setattr(SnapshotLoader, "_load_routing", register_first)
    snapshot = SnapshotLoader().load()

    pk = Deployment.objects.get().pk
    assert snapshot.revisions() == {project.pk: 1}
    assert (snapshot.endpoint_keys, set(snapshot.endpoint_terms)) == ({pk: "sk-1"}, {pk})


async def test_the_last_good_snapshot_outlives_an_outage() -> None:
    states: list[Snapshot | Exception] = [Snapshot({1: {"revision": 3}}), OSError("gone"), Snapshot()]

    def load() -> Snapshot:
        state = states.pop(0)
        if isinstance(state, Exception):
            raise state
        return state

    holder = SnapshotHolder(load, every_s=60)
    await holder.start()
    await holder.refresh()

    kept = holder.current.revisions()
    await holder.refresh()

    assert kept == {1: 3}
    assert holder.current.revisions() == {}
    await holder.stop()


async def test_a_new_revision_is_heard_without_asking() -> None:
    number = 1
    heard: list[dict[int, int]] = []
    holder = SnapshotHolder(
        lambda: Snapshot({1: {"revision": number}}), lambda s: heard.append(s.revisions())
    )
    await holder.start()

    number = 2
    await becomes(lambda: heard[-1:] == [{1: 2}], what="the new revision is heard")

    assert holder.current.revisions() == {1: 2}
    await holder.stop()


async def test_who_waits_for_what_was_just_written_is_not_woken_by_a_load_that_had_begun_before() -> None:
    reads, go_on = [], threading.Event()

    def load() -> Snapshot:
        reads.append(number)
        assert go_on.wait(GUARD_S)
        return Snapshot({1: {"revision": reads[-1]}})

    number = 1
    holder = SnapshotHolder(load, every_s=60)
    begun = asyncio.create_task(holder.refresh())
    await becomes(lambda: reads == [1], what="a load has read")
    number = 2
    waiting = asyncio.create_task(holder.next_load(GUARD_S))
    await asyncio.sleep(0)
    go_on.set()
    await begun
    assert not waiting.done()

    await holder.refresh()
    await waiting

    assert holder.current.revisions() == {1: 2}
    await holder.stop()
