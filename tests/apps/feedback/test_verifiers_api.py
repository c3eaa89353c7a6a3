"""The REST API of verifiers: kinds, versions, trials, agreement with people."""

import json
from typing import Any

import pytest

from apps.core.models import ApiKey, Project, WorkUnit
from apps.feedback import services
from apps.feedback.models import Verifier
from domain.verifiers import KINDS

pytestmark = pytest.mark.django_db
TEXTS = {"texts": ["refund"]}


def post(client: Any, path: str, body: Any = None) -> Any:
    return client.post(f"/api/v1{path}", json.dumps(body or {}), content_type="application/json")


def create(client: Any, **more: Any) -> Any:
    return post(client, "/verifiers", {"name": "tone", "kind": "contains", "params": TEXTS, **more})


def test_kinds_are_listed_with_the_schemas_of_their_parameters(api: Any, project: Any) -> None:
    listed = {kind["name"]: kind for kind in api.get("/api/v1/verifier-kinds").json()}

    assert set(listed) == set(KINDS)
    assert listed["similarity"]["params_schema"]["required"] == ["metric", "threshold"]
    assert listed["grader_python"]["needs"] == ["grader_python"]


def test_an_edit_makes_the_next_version_and_the_difference_is_told(api: Any, project: Any) -> None:
    first = create(api).json()
    second = create(api, params={"texts": ["refund", "Monday"]}, note="Needs the day.", after=1).json()

    listed = api.get(f"/api/v1/verifiers/{first['id']}/versions").json()
    diff = api.get(f"/api/v1/verifiers/{second['id']}/diff?against=1").json()

    assert [(row["number"], row["note"], row["pinned"]) for row in listed] == [
        (2, "Needs the day.", 0),
        (1, "", 0),
    ]
    assert (diff["before"], diff["after"]) == (1, 2)
    assert '+ "Monday"' in diff["lines"]
    assert first["digest"] != second["digest"]


def test_a_stale_edit_is_a_conflict(api: Any, project: Any) -> None:
    create(api)
    create(api, params={"texts": ["a"]})

    stale = create(api, params={"texts": ["b"]}, after=1)

    assert (stale.status_code, stale.json()["error"]["code"]) == (409, "verifier_newer")


@pytest.mark.parametrize(
    ("kind", "params", "field"),
    [("regex", {"pattern": "(a+)+$"}, "pattern"), ("contains", {"texts": []}, "texts"), ("x", {}, "kind")],
)
def test_bad_parameters_are_refused_with_their_field(
    api: Any, project: Any, kind: str, params: Any, field: str
) -> None:
    answer = create(api, kind=kind, params=params)

    assert answer.status_code == 400
    assert answer.json()["error"]["detail"]["field"] == field


def test_a_pure_trial_is_answered_at_once_and_another_is_read_later(
    api: Any, project: Any, store: Any
) -> None:
    saved = create(api).json()

    once = post(api, "/verifier-trials", {"verifier": saved["id"], "answers": ["a refund", "no"]})
    source = {"source": "def grade(sample, item):\n    return 1.0\n"}
    later = post(api, "/verifier-trials", {"kind": "grader_python", "params": source, "answers": ["x"]})

    assert (once.status_code, [row["state"] for row in once.json()["results"]]) == (200, ["passed", "failed"])
    assert (later.status_code, later.json()["finished"]) == (202, False)
    read = api.get(f"/api/v1/verifier-trials/{later.json()['trial']}").json()
    assert read == {"trial": later.json()["trial"], "finished": False, "error": "", "results": []}
    assert post(api, "/verifier-trials", {"answers": ["x"]}).json()["error"]["code"] == "verifier_missing"


def test_agreement_is_measured_and_read(
    api: Any, project: Any, labelled: Any, family: Any, store: Any
) -> None:
    started = post(api, f"/verifiers/{family.verifier_id}/agreements")
    again = post(api, f"/verifiers/{family.verifier_id}/agreements")
    (listed,) = api.get(f"/api/v1/verifiers/{family.verifier_id}/agreements").json()
    read = api.get(f"/api/v1/verifier-agreements/{listed['id']}").json()

    assert (started.status_code, again.status_code) == (202, 409)
    assert (listed["size"], listed["finished_at"], listed["kappa"]) == (1, None, None)
    assert (read["disagreements"], read["undecided"]) == ([], [])
    assert WorkUnit.objects.filter(owner=f"feedback.agreement:{listed['id']}").count() == 1


def test_a_family_is_given_a_version(api: Any, project: Any, family: Any) -> None:
    other = create(api, name="invoice_fields").json()

    used = post(api, f"/families/{family.pk}/verifier", {"verifier": other["id"]})

    assert used.json() == {"family": "invoice_fields", "verifier": other["id"]}
    family.refresh_from_db()
    assert family.verifier_id == other["id"]


def test_another_project_s_verifiers_are_not_found(api: Any, project: Any, actor: Any) -> None:
    foreign = Project.objects.create(name="Other", slug="other")
    theirs = Verifier.objects.create(project=foreign, name="x", kind="exact", created_by="eve")

    paths = [f"/verifiers/{theirs.pk}/versions", f"/verifiers/{theirs.pk}/agreements"]
    statuses = [api.get(f"/api/v1{path}").status_code for path in paths]
    statuses.append(post(api, f"/verifiers/{theirs.pk}/agreements").status_code)
    statuses.append(post(api, "/verifier-trials", {"verifier": theirs.pk, "answers": ["x"]}).status_code)

    assert statuses == [404] * 4


def test_a_key_that_may_only_label_reads_and_writes_nothing(api: Any, project: Any, family: Any) -> None:
    ApiKey.objects.update(scopes=["label", "read"])
    calls = [
        create(api),
        post(api, "/verifier-trials", {"verifier": family.verifier_id, "answers": ["x"]}),
        post(api, f"/verifiers/{family.verifier_id}/agreements"),
        post(api, f"/families/{family.pk}/verifier", {"verifier": family.verifier_id}),
    ]

    assert [call.status_code for call in calls] == [403] * 4
    assert api.get(f"/api/v1/verifiers/{family.verifier_id}/versions").status_code == 200


@pytest.mark.parametrize("more", [1, 6])
def test_versions_are_listed_with_a_constant_number_of_queries(
    api: Any, project: Any, actor: Any, more: int, django_assert_max_num_queries: Any
) -> None:
    for index in range(more):
        made = services.verifier_create(
            project=project, name="t", kind="contains", params={"texts": [f"a{index}"]}, by=actor
        )

    with django_assert_max_num_queries(6):
        api.get(f"/api/v1/verifiers/{made.pk}/versions")
