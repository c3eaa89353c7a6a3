"""Datasets: fixed, numbered, named by their content."""

import hashlib
import json

import pytest

from apps.core.errors import Refused
from apps.feedback import services
from domain.contracts import TaskSpec
from packs.starter.tasks import generate
from tests.apps.feedback.conftest import RIGHT, WRONG

pytestmark = pytest.mark.django_db


@pytest.fixture
def tasks(project, actor, store):
    made = services.family_ensure(
        project=project, name="invoice_fields", pack="starter", verifier_kind="json_fields", by=actor
    )
    return services.assets_import(
        project=project, family=made, tasks=generate("invoice_fields", seed=3, count=20), by=actor
    )


def make(project, actor, **more):
    data = {"name": "first", "kind": "rl", "split": "train", "families": ["invoice_fields"], **more}
    return services.dataset_create(project=project, by=actor, **data)


def lines(dataset):
    return [json.loads(line) for line in services.dataset_bytes(dataset).splitlines()]


def test_dataset_is_named_by_its_content(tasks, project, actor):
    dataset = make(project, actor)

    assert hashlib.sha256(services.dataset_bytes(dataset)).hexdigest() == dataset.tasks_digest
    found = [TaskSpec.model_validate(line).id for line in lines(dataset)]
    assert found == sorted(task.key for task in tasks if task.split == "train")


def test_same_content_is_the_same_version_and_a_change_the_next(tasks, project, actor):
    first = make(project, actor)
    assert make(project, actor) == first

    services.asset_retire(asset=next(task for task in tasks if task.split == "train"), by=actor)
    second = make(project, actor)

    assert (first.number, second.number) == (1, 2)
    assert second.count == first.count - 1
    assert len(lines(first)) == first.count


def test_held_out_tasks_never_enter_a_training_dataset(tasks, project, actor):
    held_out = {task.key for task in tasks if task.split == "held_out"}

    assert held_out
    assert not held_out & {line["id"] for line in lines(make(project, actor))}


def test_sft_export_is_openai_chat(tasks, project, actor):
    example = lines(make(project, actor, kind="sft"))[0]

    assert [message["role"] for message in example["messages"]] == ["user", "assistant"]
    assert json.loads(example["messages"][1]["content"])


def test_preference_pairs_come_from_corrected_cases(labelled, family, project, actor, store):
    asset = services.asset_create(case=labelled, family=family, by=actor)

    (pair,) = lines(make(project, actor, kind="preference", split=asset.split))

    assert pair["chosen"][0]["content"] == RIGHT
    assert pair["rejected"][0]["content"] == WRONG


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"families": []}, "Choose at least one family"),
        ({"families": ["nothing"]}, "There is no family"),
        ({"kind": "csv"}, "is not a kind"),
        ({"split": "test"}, "is not a split"),
        ({"kind": "preference"}, "both a right and a wrong answer"),
        ({"name": "anna@example.com"}, "name"),
    ],
)
def test_impossible_dataset_says_why(tasks, project, actor, change, words):
    with pytest.raises(Refused, match=words):
        make(project, actor, **change)
