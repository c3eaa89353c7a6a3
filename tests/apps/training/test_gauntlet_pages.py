"""Pages of a verifier's gauntlet: entries, history, retiring."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.core.models import Project
from apps.core.permissions import Actor
from apps.feedback import gauntlet_runs, services
from apps.feedback.models import Family, GauntletEntry, TaskAsset, Verifier
from artifacts import ArtifactStore
from domain.contracts import RunVerifyBatch


@pytest.fixture
def verifier(family: Family, store: ArtifactStore, actor: Actor) -> Verifier:
    """Its gauntlet ran once, and one cheat passed."""
    assert family.verifier is not None
    unit = services.verifier_check(verifier=family.verifier, by=actor)
    results = []
    for item in store.iter_jsonl(RunVerifyBatch.model_validate(unit.payload).items_digest):
        entry = GauntletEntry.objects.get(pk=item["entry"])
        passes = entry.must_pass or entry.name.endswith("duplicate keys")
        results.append({"states": ["passed" if passes else "failed"] * 3, "reasons": ["Seen."]})
    gauntlet_runs.check_finished(unit, {"results_digest": store.put_jsonl(results), "counts": {}})
    unit.state = "done"
    unit.save()
    family.verifier.refresh_from_db()
    return family.verifier


@pytest.fixture
def entry(verifier: Verifier) -> GauntletEntry:
    found = verifier.entries.filter(name__endswith="duplicate keys").first()
    assert found is not None
    return found


def test_a_verifier_shows_entries_with_row_and_source_and_its_runs(page: Client, verifier: Verifier) -> None:
    html = page.get(verifier.get_absolute_url()).content.decode()

    assert "duplicate keys" in html
    assert "row 21</span>, arXiv 2507.08794" in html
    assert "Runs of the gauntlet" in html
    assert "must be failed and was passed" in html


def test_an_entry_shows_its_answer_its_row_and_what_every_run_said(
    page: Client, entry: GauntletEntry
) -> None:
    html = page.get(entry.get_absolute_url()).content.decode()

    assert "Row 25: JSON that two readers read differently" in html
    assert "passed, passed, passed" in html
    assert "Retire this entry" in html


def test_retiring_asks_why_and_moves_the_entry_out(page: Client, entry: GauntletEntry) -> None:
    url = reverse("training:entry_retire", args=[entry.pk])

    without = page.post(url, {"reason": ""})
    page.post(url, {"reason": "Our readers take the last key."})

    assert without.status_code == 400
    entry.refresh_from_db()
    assert entry.retired_reason == "Our readers take the last key."
    html = page.get(entry.verifier.get_absolute_url()).content.decode()
    assert "1 entry, judged no more" in html
    assert "Retire this entry" not in page.get(entry.get_absolute_url()).content.decode()


def test_readers_see_entries_and_may_not_retire_them(viewer: Actor, entry: GauntletEntry) -> None:
    client = Client()
    client.force_login(viewer.user)  # type: ignore[arg-type]

    seen = client.get(entry.get_absolute_url())
    refused = client.post(reverse("training:entry_retire", args=[entry.pk]), {"reason": "no"})

    assert "Retire this entry" not in seen.content.decode()
    assert refused.status_code == 403
    entry.refresh_from_db()
    assert entry.retired_at is None


def test_an_entry_with_turns_is_added_by_hand(page: Client, verifier: Verifier) -> None:
    task = TaskAsset.objects.filter(verifier=verifier).first()
    assert task is not None
    import json

    form = {"origin": "exploit", "name": "says nothing twice", "task": json.dumps(task.task), "row": "23"}

    refused = page.post(reverse("training:entry_add", args=[verifier.pk]), form | {"turns": '{"a": 1}'})
    page.post(reverse("training:entry_add", args=[verifier.pk]), form | {"turns": '["one", "two"]'})

    assert "Write a list of texts" in refused.content.decode()
    added = GauntletEntry.objects.get(name="says nothing twice")
    assert (added.turns, added.row) == (["one", "two"], 23)
    assert "Said, turn by turn" in page.get(added.get_absolute_url()).content.decode()


def test_entries_of_another_project_are_not_there(page: Client, entry: GauntletEntry) -> None:
    other = Project.objects.create(name="Other", slug="other")
    Verifier.objects.filter(pk=entry.verifier_id).update(project=other)

    assert page.get(entry.get_absolute_url()).status_code == 404


def test_a_verifier_page_pins_its_queries(
    page: Client, verifier: Verifier, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(20):
        page.get(verifier.get_absolute_url())
