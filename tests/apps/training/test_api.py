"""The REST shapes of training, and who may call it."""

from django.test import Client

from apps.core.permissions import Actor
from apps.core.services import api_key_create
from apps.feedback.models import Dataset, Family
from apps.training.models import TrainingRun, Trajectory
from apps.versions.models import ModelVersion
from tests.apps.training.conftest import CONFIG, FAIL, PASS, Workers, admit

RUN = {
    "id", "name", "slug", "state", "dataset_id", "parent_version_id", "version_id", "steps", "seed", "config",
    "policy_version", "error", "created_at", "started_at", "finished_at",
}  # fmt: skip


def body(dataset: Dataset, parent: ModelVersion, **changes: object) -> dict[str, object]:
    return {
        "name": "Invoices",
        "dataset_id": dataset.pk,
        "parent_version_id": parent.pk,
        "config": CONFIG,
        "steps": 3,
        **changes,
    }


def post(api: Client, path: str, data: object = None):  # type: ignore[no-untyped-def]
    return api.post(f"/api/v1{path}", data or {}, content_type="application/json")


def test_a_run_is_created_and_started(api: Client, dataset: Dataset, parent: ModelVersion) -> None:
    answer = post(api, "/training/runs", body(dataset, parent))

    assert answer.status_code == 201
    made = answer.json()
    assert set(made) == RUN
    assert made["state"] == "running"
    assert made["parent_version_id"] == parent.pk


def test_a_draft_is_started_later(api: Client, dataset: Dataset, parent: ModelVersion) -> None:
    made = post(api, "/training/runs", body(dataset, parent, start=False)).json()

    started = post(api, f"/training/runs/{made['id']}/start").json()

    assert (made["state"], started["state"]) == ("draft", "running")
    assert set(started) == RUN | {"steps_done", "pass_rate"}


def test_what_cannot_train_is_a_conflict_with_names(
    api: Client, dataset: Dataset, parent: ModelVersion, family: Family
) -> None:
    admit(family.verifier, "refused")

    answer = post(api, "/training/runs", body(dataset, parent))

    assert answer.status_code == 409
    error = answer.json()["error"]
    assert error["code"] == "verifier_not_admitted"
    assert "invoice_fields v1" in error["message"]


def test_a_bad_configuration_is_a_400_that_names_the_field(
    api: Client, dataset: Dataset, parent: ModelVersion
) -> None:
    answer = post(api, "/training/runs", body(dataset, parent, config={"train": {"lr": -1}}))

    assert answer.status_code == 400
    assert "train.lr" in answer.json()["error"]["message"]


def test_foreign_datasets_are_not_found(api: Client, dataset: Dataset, parent: ModelVersion) -> None:
    assert post(api, "/training/runs", body(dataset, parent, dataset_id=dataset.pk + 9)).status_code == 404


def test_progress_and_metrics_are_read(api: Client, run: TrainingRun, workers: Workers) -> None:
    workers.roll()
    workers.train()

    detail = api.get(f"/api/v1/training/runs/{run.pk}").json()
    series = api.get(f"/api/v1/training/runs/{run.pk}/metrics").json()["series"]

    assert (detail["steps_done"], detail["pass_rate"], detail["policy_version"]) == (1, 0.5, 1)
    assert series["loss"] == [[0, 0.1]]


def test_the_list_is_newest_first(api: Client, run: TrainingRun, make_run) -> None:  # type: ignore[no-untyped-def]
    newer = make_run()

    assert [row["id"] for row in api.get("/api/v1/training/runs").json()] == [newer.pk, run.pk]


def test_an_illegal_move_is_a_conflict(api: Client, run: TrainingRun) -> None:
    answer = post(api, f"/training/runs/{run.pk}/resume")

    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "illegal_move"


def test_runs_are_paused_resumed_and_cancelled(api: Client, run: TrainingRun) -> None:
    states = [
        post(api, f"/training/runs/{run.pk}/{verb}").json()["state"] for verb in ("pause", "resume", "cancel")
    ]

    assert states == ["paused", "running", "cancelled"]


def test_trajectories_are_paged_and_filtered(api: Client, run: TrainingRun, workers: Workers) -> None:
    workers.roll(rewards=(PASS, FAIL))
    path = f"/api/v1/training/runs/{run.pk}/trajectories"

    first = api.get(f"{path}?limit=5").json()
    rest = api.get(f"{path}?limit=5&before={first[-1]['id']}").json()
    passed = api.get(f"{path}?state=passed").json()

    assert set(first[0]) == {
        "id", "step", "task_key", "family", "sample", "policy_version", "state", "reward", "tokens", "flags",
    }  # fmt: skip
    assert len({row["id"] for row in first + rest}) == 8
    assert [row["reward"] for row in passed] == [1.0] * 4


def test_a_trajectory_is_read_whole(api: Client, run: TrainingRun, workers: Workers) -> None:
    workers.roll()
    row = Trajectory.objects.filter(state="passed").first()
    assert row is not None

    whole = api.get(f"/api/v1/training/trajectories/{row.pk}").json()

    assert whole["task_id"] == row.task_key
    assert whole["steps"][0]["mask"] == [1, 1, 1]
    assert whole["reward_terms"] == {"terminal": 1.0}


def test_a_lost_artifact_is_gone(api: Client, run: TrainingRun, workers: Workers) -> None:
    workers.roll()
    Trajectory.objects.update(digest="0" * 64)

    answer = api.get(f"/api/v1/training/trajectories/{Trajectory.objects.first().pk}")  # type: ignore[union-attr]

    assert answer.status_code == 410
    assert answer.json()["error"]["code"] == "artifact_missing"


def test_a_key_without_the_scope_may_only_read(client: Client, run: TrainingRun, actor: Actor) -> None:
    secret = api_key_create(project=actor.project, name="reader", scopes=["read"], by=actor).secret
    client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {secret}"

    assert client.get(f"/api/v1/training/runs/{run.pk}").status_code == 200
    assert post(client, f"/training/runs/{run.pk}/pause").status_code == 403
