"""What the pictures' data is made of, as far as the API takes it without engines and workers."""

from typing import Any

import pytest

from clients.flywheel import ApiError
from config import showcase, showcase_texts
from config.showcase_endpoints import JUDGES
from domain.gate_rules import rules_read

pytestmark = pytest.mark.django_db


class Through:
    """The client's verbs over a Django test client."""

    def __init__(self, api: Any) -> None:
        self._api = api

    def get(self, path: str, **query: Any) -> Any:
        return self._read(self._api.get(f"/api/v1{path}", query))

    def post(self, path: str, body: Any = None) -> Any:
        return self._read(self._api.post(f"/api/v1{path}", body or {}, content_type="application/json"))

    def _read(self, answer: Any) -> Any:
        if answer.status_code >= 400:
            raise ApiError(answer.status_code, "refused", answer.content.decode())
        return answer.json()


@pytest.fixture
def client_of(api: Any) -> Through:
    return Through(api)


def test_every_gold_answer_is_taken(client_of: Through):
    answers = showcase_texts.gold_answers()

    assert client_of.post("/gold-answers", answers)["added"] == len(answers)


def test_the_second_version_of_the_suite_has_a_change_of_each_kind(client_of: Through):
    (page,) = showcase._suite_changes(client_of)  # type: ignore[arg-type]

    suite = page.partition("/suites/")[2].partition("/")[0]
    changes = client_of.get(f"/suites/{suite}/changes", old=1, new=2)
    assert (changes["added"], changes["removed"], changes["changed"]) == (1, 1, 1)


def test_the_table_of_the_import_has_rows_that_are_left_out(api: Any):
    from django.core.files.uploadedfile import SimpleUploadedFile

    table = SimpleUploadedFile("catalogue.csv", showcase_texts.CATALOGUE.encode(), "text/csv")
    made = api.post("/api/v1/suites/imports", {"name": "Shop catalogue", "options": "{}", "files": table})

    report = made.json()["report"]
    assert report["count"] == 4
    assert report["left_out_count"] == 2


@pytest.mark.parametrize("name", JUDGES)
def test_a_judge_of_the_pictures_can_be_saved_once_its_endpoint_is_there(client_of: Through, name: str):
    client_of.post("/deployments", {"name": name, "base_url": "http://127.0.0.1:9", "model": name})
    params = {"criteria": showcase_texts.CRITERIA, "models": [name], "prompts": ["rubric", "defects"]}

    saved = client_of.post("/judges", {"name": "Names the fact", "kind": "judge", "params": params})

    assert saved["number"] == 1


def test_the_rules_of_the_gate_are_rules():
    kinds = {rule.kind for rule in rules_read(showcase._rules(0.8, margin=0.1))}

    assert kinds == {"coverage", "error_rate", "floor", "slice_floor", "non_inferiority"}
