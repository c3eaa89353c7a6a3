"""Pages of training: what they show, who may use them, what their buttons do."""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.core.models import Membership, Project, Role, User, WorkUnit
from apps.core.permissions import Actor
from apps.feedback.models import Dataset, Family, GauntletEntry, TaskAsset, Verifier
from apps.training import services
from apps.training.models import TrainingRun, Trajectory
from apps.versions.models import ModelVersion
from tests.apps.training.conftest import FAIL, PASS, MakeRun, Workers, admit


@pytest.fixture
def outsider(viewer: Actor) -> Client:
    """Signed in as a member who may only read."""
    client = Client()
    assert viewer.user is not None
    client.force_login(viewer.user)
    return client


def form_of(dataset: Dataset, parent: ModelVersion, **changes: Any) -> dict[str, Any]:
    return {
        "name": "Invoices",
        "dataset": dataset.pk,
        "parent": parent.pk,
        "steps": 3,
        "seed": 1,
        "groups": 4,
        "group_size": 2,
        "lr": 0.002,
        "temperature": 1.0,
        "kl_beta": 0.0,
        **changes,
    }


# runs


def test_the_list_is_empty_before_the_first_run(page: Client) -> None:
    answer = page.get(reverse("training:runs"))

    assert "No training runs yet" in answer.content.decode()


def test_the_list_shows_state_and_steps(page: Client, run: TrainingRun, workers: Workers) -> None:
    workers.roll()
    workers.train()

    html = page.get(reverse("training:runs")).content.decode()

    assert run.name in html
    assert "1 of 3" in html


def test_the_list_is_filtered_by_state(page: Client, run: TrainingRun) -> None:
    assert run.get_absolute_url() in page.get("/training/?state=running").content.decode()
    assert "No run matches" in page.get("/training/?state=done").content.decode()


def test_the_list_pins_its_queries(
    page: Client, make_run: MakeRun, django_assert_max_num_queries: Any
) -> None:
    for _ in range(6):
        make_run()

    with django_assert_max_num_queries(16):
        page.get(reverse("training:runs"))


def test_a_run_is_made_and_started_from_the_form(
    page: Client, dataset: Dataset, parent: ModelVersion
) -> None:
    answer = page.post(
        reverse("training:run_new"),
        form_of(dataset, parent, start="1", advanced='{"refills": 2, "train": {"staleness": 0}}'),
    )

    run = TrainingRun.objects.get()
    assert answer.url == run.get_absolute_url()
    assert run.state == TrainingRun.State.RUNNING
    assert run.config["refills"] == 2
    assert run.config["train"]["staleness"] == 0
    assert run.config["train"]["lr"] == 0.002


def test_the_form_names_the_field_that_is_wrong(page: Client, dataset: Dataset, parent: ModelVersion) -> None:
    answer = page.post(
        reverse("training:run_new"), form_of(dataset, parent, advanced='{"train": {"lora_r": 0}}')
    )

    assert answer.status_code == 400
    assert "train.lora_r" in answer.content.decode()
    assert not TrainingRun.objects.exists()


def test_advanced_must_be_an_object(page: Client, dataset: Dataset, parent: ModelVersion) -> None:
    answer = page.post(reverse("training:run_new"), form_of(dataset, parent, advanced="[1]"))

    assert "Write a JSON object" in answer.content.decode()


def test_broken_json_is_said_plainly(page: Client, dataset: Dataset, parent: ModelVersion) -> None:
    answer = page.post(reverse("training:run_new"), form_of(dataset, parent, advanced="{"))

    assert "This is not JSON" in answer.content.decode()


def test_a_run_that_may_not_start_is_kept_as_a_draft(
    page: Client, dataset: Dataset, parent: ModelVersion, family: Family
) -> None:
    admit(family.verifier, "refused")

    answer = page.post(reverse("training:run_new"), form_of(dataset, parent, start="1"), follow=True)

    assert TrainingRun.objects.get().state == TrainingRun.State.DRAFT
    assert "have not passed the gauntlet" in answer.content.decode()


def test_the_form_offers_no_held_out_dataset(page: Client, dataset: Dataset) -> None:
    Dataset.objects.update(split=TaskAsset.Split.HELD_OUT)

    html = page.get(reverse("training:run_new")).content.decode()

    assert f'<option value="{dataset.pk}"' not in html


def test_a_form_without_datasets_says_where_one_is_made(page: Client, project: Project) -> None:
    html = page.get(reverse("training:run_new")).content.decode()

    assert "No dataset to train on yet" in html
    assert f'href="{reverse("feedback:dataset_create")}"' in html
    assert 'name="dataset"' not in html


def test_a_run_shows_curves_figures_and_what_arrives(
    page: Client, run: TrainingRun, workers: Workers
) -> None:
    workers.roll()
    workers.train(kl=0.0123)

    html = page.get(run.get_absolute_url()).content.decode()

    assert "pass rate 50 % at step 1" in html
    assert "Engine busy" in html
    assert "0.0123" in html
    assert "Generating step 2" in html
    assert Trajectory.objects.first().task_key in html  # type: ignore[union-attr]


def test_the_fragment_is_the_same_view(page: Client, run: TrainingRun) -> None:
    html = page.get(run.get_absolute_url(), headers={"HX-Request": "true"}).content.decode()

    assert html.lstrip().startswith('<div id="run"')
    assert "<html" not in html


def test_a_run_page_pins_its_queries(
    page: Client, run: TrainingRun, workers: Workers, django_assert_max_num_queries: Any
) -> None:
    workers.roll()
    workers.train()

    with django_assert_max_num_queries(30):
        page.get(run.get_absolute_url())
    with django_assert_max_num_queries(12):
        page.get(run.get_absolute_url(), headers={"HX-Request": "true"})


def test_a_finished_run_links_to_its_version_and_stops_listening(
    page: Client, make_run: MakeRun, workers: Workers, actor: Actor
) -> None:
    run = make_run(steps=1)
    services.run_start(run=run, by=actor)
    workers.roll()
    workers.train()
    run.refresh_from_db()

    html = page.get(run.get_absolute_url()).content.decode()

    assert run.version is not None
    assert run.version.get_absolute_url() in html
    assert "data-live=" not in html


def test_a_failed_run_says_why(page: Client, run: TrainingRun, workers: Workers) -> None:
    workers.fail(workers.first("rollout_batch"), "the engine is gone")

    assert "the engine is gone" in page.get(run.get_absolute_url()).content.decode()


@pytest.mark.parametrize(
    ("verbs", "state"),
    [(["pause"], "paused"), (["pause", "resume"], "running"), (["cancel"], "cancelled")],
)
def test_buttons_move_the_run(page: Client, run: TrainingRun, verbs: list[str], state: str) -> None:
    for verb in verbs:
        page.post(reverse("training:run_act", args=[run.pk, verb]))

    run.refresh_from_db()
    assert run.state == state


def test_an_impossible_move_is_refused_with_a_sentence(page: Client, run: TrainingRun) -> None:
    answer = page.post(reverse("training:run_act", args=[run.pk, "start"]), follow=True)

    assert "is running and cannot become running" in answer.content.decode()


def test_unknown_verbs_are_not_found(page: Client, run: TrainingRun) -> None:
    assert page.post(reverse("training:run_act", args=[run.pk, "explode"])).status_code == 404


def test_readers_see_no_buttons_and_may_not_act(outsider: Client, run: TrainingRun) -> None:
    html = outsider.get(run.get_absolute_url()).content.decode()

    assert "Pause" not in html
    assert outsider.post(reverse("training:run_act", args=[run.pk, "pause"])).status_code == 403
    assert outsider.get(reverse("training:run_new")).status_code == 403


def test_another_projects_run_is_not_found(page: Client, run: TrainingRun) -> None:
    stranger = User.objects.create_user("eve", password="correct horse battery")
    other = Project.objects.create(name="Other", slug="other")
    Membership.objects.create(project=other, user=stranger, role=Role.ADMIN)
    page.force_login(stranger)

    assert page.get(run.get_absolute_url()).status_code == 404
    assert page.get(reverse("training:trajectories", args=[run.pk])).status_code == 404


# trajectories


def test_trajectories_are_filtered_in_the_address(page: Client, run: TrainingRun, workers: Workers) -> None:
    workers.roll(rewards=(PASS, FAIL, None))
    address = reverse("training:trajectories", args=[run.pk])

    shown = {
        query: len(page.get(f"{address}?{query}").context["page"].object_list)
        for query in ("", "state=passed", "state=error", "step=1", "step=2", "q=nothing-like-it", "state=odd")
    }

    assert shown == {
        "": 12,
        "state=passed": 4,
        "state=error": 4,
        "step=1": 12,
        "step=2": 0,
        "q=nothing-like-it": 0,
        "state=odd": 12,
    }


def test_trajectories_pin_their_queries(
    page: Client, run: TrainingRun, workers: Workers, django_assert_max_num_queries: Any
) -> None:
    workers.roll(rewards=(PASS, FAIL) * 4)

    with django_assert_max_num_queries(16):
        page.get(reverse("training:trajectories", args=[run.pk]))


def test_a_trajectory_shows_tokens_verdict_and_reward(
    page: Client, run: TrainingRun, workers: Workers
) -> None:
    workers.roll()
    row = Trajectory.objects.filter(state="failed").first()
    assert row is not None

    html = page.get(row.get_absolute_url()).content.decode()

    assert "Invoice INV-1, total 12.50" in html
    assert "total is 12.50, not 120.50" in html
    assert "terminal" in html
    assert "logprob -3.000" in html
    assert html.count('class="tok tok-4"') == 2  # the token with 5 %, and the legend


def test_a_lost_episode_shows_its_error(page: Client, run: TrainingRun, workers: Workers) -> None:
    workers.roll(rewards=(PASS, None))
    row = Trajectory.objects.filter(state="error").first()
    assert row is not None

    html = page.get(row.get_absolute_url()).content.decode()

    assert "the engine did not answer" in html
    assert "left out of every mean" in html


def test_a_lost_artifact_is_said_plainly(page: Client, run: TrainingRun, workers: Workers) -> None:
    workers.roll()
    Trajectory.objects.update(digest="0" * 64)

    answer = page.get(Trajectory.objects.first().get_absolute_url())  # type: ignore[union-attr]

    assert answer.status_code == 410
    assert "no longer stored" in answer.content.decode()


def test_a_passed_cheat_becomes_a_gauntlet_entry(page: Client, run: TrainingRun, workers: Workers) -> None:
    workers.roll()
    row = Trajectory.objects.filter(state="passed").first()
    assert row is not None

    page.post(reverse("training:trajectory_exploit", args=[row.pk]))

    entry = GauntletEntry.objects.exclude(added_by="").get()
    assert entry.answer == '{"total": 12.50}'
    assert entry.must_pass is False
    assert entry.task["id"] == row.task_key
    assert entry.source == f"trajectory {row.pk} of the run “{run.name}”"
    assert entry.verifier.admission == Verifier.Admission.UNCHECKED
    assert WorkUnit.objects.get(kind="verify_batch").owner == f"feedback.verifier:{entry.verifier_id}"
    assert "In the gauntlet" in page.get(row.get_absolute_url()).content.decode()


def test_the_right_answer_is_no_exploit(page: Client, run: TrainingRun, workers: Workers) -> None:
    """One click on it would keep the verifier from ever being admitted again."""
    workers.roll()
    TaskAsset.objects.update(correction='{"total": 12.50}')
    row = Trajectory.objects.filter(state="passed").first()
    assert row is not None

    page.post(reverse("training:trajectory_exploit", args=[row.pk]))

    assert not GauntletEntry.objects.exists()


def test_a_failed_answer_is_no_exploit(page: Client, run: TrainingRun, workers: Workers) -> None:
    workers.roll()
    row = Trajectory.objects.filter(state="failed").first()
    assert row is not None

    page.post(reverse("training:trajectory_exploit", args=[row.pk]))

    assert not GauntletEntry.objects.exists()
    assert "Should not have passed" not in page.get(row.get_absolute_url()).content.decode()


def test_readers_may_not_fill_the_gauntlet(outsider: Client, run: TrainingRun, workers: Workers) -> None:
    workers.roll()
    row = Trajectory.objects.filter(state="passed").first()
    assert row is not None

    assert outsider.post(reverse("training:trajectory_exploit", args=[row.pk])).status_code == 403


# families


def test_families_show_their_tasks_and_verifiers(page: Client, family: Family) -> None:
    Family.objects.update(unavailable="No sandbox can be had here.")

    html = page.get(reverse("training:families")).content.decode()

    assert family.title in html
    assert "Admitted" in html
    assert "Unavailable here: No sandbox can be had here." in html


def test_a_family_shows_samples(page: Client, family: Family) -> None:
    html = page.get(family.get_absolute_url()).content.decode()

    assert TaskAsset.objects.order_by("pk").first().key in html  # type: ignore[union-attr]
    assert "Import from the pack “starter”" in html


def test_tasks_are_imported_from_the_pack(page: Client, family: Family) -> None:
    before = TaskAsset.objects.count()
    address = reverse("training:family_import", args=[family.pk])

    page.post(address, {"count": 10, "seed": 77})
    again = page.post(address, {"count": 10, "seed": 77}, follow=True)

    assert TaskAsset.objects.count() == before + 10
    assert "10 were there already" in again.content.decode()


def test_an_import_without_bounds_is_refused(page: Client, family: Family) -> None:
    answer = page.post(reverse("training:family_import", args=[family.pk]), {"count": 0, "seed": 1})

    assert answer.status_code == 400


def test_readers_may_not_import(outsider: Client, family: Family) -> None:
    address = reverse("training:family_import", args=[family.pk])

    assert outsider.post(address, {"count": 1, "seed": 1}).status_code == 403
    assert "Import from" not in outsider.get(family.get_absolute_url()).content.decode()


# verifiers


def test_verifiers_are_listed_with_their_admission(page: Client, family: Family) -> None:
    html = page.get(reverse("training:verifiers")).content.decode()

    assert "invoice_fields v1" in html
    assert "Admitted" in html


def test_the_gauntlet_is_run_from_the_page(page: Client, family: Family, store: object) -> None:
    verifier = family.verifier
    assert verifier is not None

    page.post(reverse("training:verifier_check", args=[verifier.pk]))

    assert WorkUnit.objects.get(kind="verify_batch").owner == f"feedback.verifier:{verifier.pk}"
    html = page.get(verifier.get_absolute_url()).content.decode()
    assert "gauntlet running" in html
    assert "duplicate keys" in html
    assert "not checked" in html


def test_a_wrong_judgement_is_shown_as_wrong(page: Client, family: Family, store: object) -> None:
    verifier = family.verifier
    assert verifier is not None
    page.post(reverse("training:verifier_check", args=[verifier.pk]))
    GauntletEntry.objects.filter(origin="exploit").update(outcome="passed")
    GauntletEntry.objects.exclude(origin="exploit").update(outcome="failed")

    html = page.get(verifier.get_absolute_url()).content.decode()
    rows = page.get(reverse("training:verifiers")).context["page"].object_list

    assert "badge-fail" in html
    wrong = GauntletEntry.objects.filter(origin__in=["exploit", "known_good"]).count()
    assert rows[0].wrong == wrong


def test_an_entry_is_added_by_hand(page: Client, family: Family) -> None:
    verifier = family.verifier
    assert verifier is not None
    task = TaskAsset.objects.first().task  # type: ignore[union-attr]

    answer = page.post(
        reverse("training:entry_add", args=[verifier.pk]),
        {"origin": "known_bad", "name": "half an answer", "task": json.dumps(task), "answer": "{"},
    )

    assert answer.status_code == 302
    assert verifier.entries.get().must_pass is False


def test_a_broken_task_is_named(page: Client, family: Family) -> None:
    verifier = family.verifier
    assert verifier is not None
    address = reverse("training:entry_add", args=[verifier.pk])

    texts = [
        page.post(address, {"origin": "exploit", "name": "x", "task": task}).content.decode()
        for task in ("nonsense", '{"id": "x"}')
    ]

    assert "This is not JSON." in texts[0]
    assert "family:" in texts[1]


def test_readers_may_not_run_the_gauntlet(outsider: Client, family: Family) -> None:
    verifier = family.verifier
    assert verifier is not None

    assert outsider.post(reverse("training:verifier_check", args=[verifier.pk])).status_code == 403
    assert "Run gauntlet" not in outsider.get(verifier.get_absolute_url()).content.decode()
