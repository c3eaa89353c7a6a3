"""REST of evals: shapes, errors, permissions, query counts."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from apps.core.models import Membership, Project, Role, User, WorkUnit
from apps.core.permissions import actor_for_user
from apps.core.services import api_key_create
from apps.evals import services
from apps.evals.models import Probe, Run, Suite, SuiteVersion
from apps.feedback.models import Capture

pytestmark = pytest.mark.django_db

CASE = {
    "id": "a",
    "family": "sums",
    "messages": [{"role": "user", "content": "1 + 1?"}],
    "verifier": {"kind": "numeric"},
    "reference": 2,
}


def post(api, path, body):
    return api.post(f"/api/v1{path}", json.dumps(body), content_type="application/json")


def error(answer):
    body = answer.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message", "detail"}
    return answer.status_code, body["error"]["code"]


def upload(api, data, **fields):
    file = SimpleUploadedFile("cases.jsonl", data, content_type="application/jsonl")
    return api.post("/api/v1/suites/import", {"name": "Imported", "file": file, **fields})


def test_a_suite_is_made_given_cases_and_run(api, store, version):
    suite = post(api, "/suites", {"name": "Sums"}).json()
    made = post(api, f"/suites/{suite['id']}/versions", {"tasks": [CASE]})

    assert made.status_code == 201
    assert (made.json()["number"], made.json()["count"]) == (1, 1)
    run = post(api, "/runs", {"suite_version_id": made.json()["id"], "version_id": version.pk})
    assert run.status_code == 201
    assert run.json()["state"] == "running"
    assert WorkUnit.objects.filter(kind="eval_batch").count() == 1


def test_cases_sent_to_the_api_are_masked_unless_kept(api, store, project, actor):
    suite = services.suite_create(project=project, name="S", by=actor)
    said = {**CASE, "messages": [{"role": "user", "content": "Mail maria.gonzalez@corp.example.com: 1 + 1?"}]}

    post(api, f"/suites/{suite.pk}/versions", {"tasks": [said]})
    assert "maria.gonzalez" not in str(suite.versions.get().cases.get().task)

    post(api, f"/suites/{suite.pk}/versions", {"tasks": [said], "keep_personal_data": True})
    assert "maria.gonzalez" in str(suite.versions.first().cases.get().task)


@pytest.mark.parametrize(
    ("case", "code", "words"),
    [
        ({**CASE, "verifier": {"kind": "vibes"}}, "verifier_unknown", "There is no verifier 'vibes'"),
        ({**CASE, "id": ""}, "case_invalid", "Case 1, id: "),
        ({**CASE, "id": "\ud800"}, "case_invalid", "half of a surrogate pair"),
        ({**CASE, "id": "Maria Gonzalez"}, "case_invalid", "Case 1, id: looks like a person's name"),
    ],
)
def test_a_case_that_cannot_be_taken_is_named(api, store, project, actor, case, code, words):
    suite = services.suite_create(project=project, name="S", by=actor)

    answer = post(api, f"/suites/{suite.pk}/versions", {"tasks": [case]})

    assert error(answer) == (400, code)
    assert words in answer.json()["error"]["message"]
    assert not SuiteVersion.objects.exists()


def test_a_file_is_imported_and_exported(api, store):
    made = upload(api, b"\xef\xbb\xbf" + json.dumps(CASE).encode())
    assert made.status_code == 201
    row = made.json()

    answer = api.get(f"/api/v1/suites/{row['suite_id']}/versions/{row['number']}/export")

    assert answer["Content-Type"] == "application/jsonl"
    data = answer.getvalue()
    assert json.loads(data) == CASE
    assert upload(api, data).json()["id"] == row["id"]


def test_a_bad_file_is_one_error_with_file_and_line(api, store):
    answer = upload(api, json.dumps(CASE).encode() + b"\n{")

    assert error(answer) == (400, "import_invalid")
    assert answer.json()["error"]["detail"] == {"file": "cases.jsonl", "line": 2}
    assert not Suite.objects.exists()


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "target_unclear"),
        ({"version_id": 99_999}, 404, "not_found"),
        ({"deployment_id": 99_999}, 404, "not_found"),
        ({"version_id": 10**30}, 404, "not_found"),
        ({"version_id": 0, "suite_version_id": 99_999}, 404, "not_found"),
        ({"samples": 0}, 400, "target_unclear"),
        ({"samples": "many"}, 422, "invalid"),
    ],
)
def test_a_run_that_cannot_start_says_why_in_one_shape(api, suite_version, body, status, code):
    answer = post(api, "/runs", {"suite_version_id": suite_version.pk, **body})

    assert error(answer) == (status, code)
    assert not Run.objects.exists()


def test_a_run_reports_every_count_with_its_coverage(api, start, finish):
    run = start()
    finish(run, {"case-0": "failed", "case-1": "error", "case-2": "unscored"})

    score = api.get(f"/api/v1/runs/{run.pk}").json()["score"]

    assert score["coverage_text"] == "1 of 2 scored answers passed, 1 error, 1 unscored, coverage 50 %"
    assert (score["pass_rate"], score["coverage"], score["error"], score["unscored"]) == (0.5, 0.5, 1, 1)


def test_results_are_paged_and_filtered(api, start, finish):
    run = start()
    finish(run, {"case-0": "failed"})

    first = api.get(f"/api/v1/runs/{run.pk}/results?limit=1").json()
    rest = api.get(f"/api/v1/runs/{run.pk}/results?after={first[0]['id']}").json()
    failed = api.get(f"/api/v1/runs/{run.pk}/results?state=failed").json()

    assert len(first) == 1
    assert len(rest) == 3
    assert [row["case"] for row in failed] == ["case-0"]
    assert error(api.get(f"/api/v1/runs/{run.pk}/results?state=nice")) == (400, "state_unknown")


def test_illegal_moves_are_conflicts(api, start, finish):
    run = start()

    assert error(api.post(f"/api/v1/runs/{run.pk}/retry-errors")) == (409, "run_not_ended")
    assert error(api.post(f"/api/v1/runs/{run.pk}/capture-failures")) == (409, "run_not_ended")
    finish(run)
    assert error(api.post(f"/api/v1/runs/{run.pk}/cancel")) == (409, "illegal_move")
    assert error(api.post(f"/api/v1/runs/{run.pk}/retry-errors")) == (409, "nothing_to_retry")
    assert error(api.post(f"/api/v1/runs/{run.pk}/capture-failures")) == (409, "nothing_failed")


def test_failures_are_captured_once(api, start, finish):
    run = start()
    finish(run, {"case-0": "failed"})

    counts = [api.post(f"/api/v1/runs/{run.pk}/capture-failures").json() for _ in range(2)]

    assert counts == [{"captured": 1}, {"captured": 0}]
    assert Capture.objects.count() == 1


def test_two_runs_are_compared(api, start, finish):
    base, new = start(), start()
    finish(base, {"case-0": "failed"})
    finish(new)

    found = api.get(f"/api/v1/runs/{new.pk}/compare/{base.pk}").json()

    assert (found["mean"], found["n"], found["flips_up"], found["flips_down"]) == (0.25, 4, 1, 0)
    assert found["sentence"].startswith("Cannot tell yet")
    assert error(api.get(f"/api/v1/runs/{new.pk}/compare/{new.pk}")) == (400, "same_run")


def test_a_probe_is_made_asked_and_read(api, fake_model, version):
    made = post(api, "/probes", {"version_id": version.pk})
    assert made.status_code == 201
    probe = made.json()["id"]
    services.probe_round(probe=Probe.objects.get(pk=probe))

    assert api.post(f"/api/v1/probes/{probe}/ask").status_code == 202
    rounds = api.get(f"/api/v1/probes/{probe}/rounds").json()
    assert [row["verdict"] for row in rounds] == ["reference"]
    assert api.post(f"/api/v1/probes/{probe}/renew").status_code == 202
    assert Probe.objects.get().reference is None
    assert error(post(api, "/probes", {"version_id": version.pk})) == (409, "probe_exists")


def test_a_long_context_suite_is_made_and_its_map_read(api, fake_model, store, version, start, finish):
    body = {"name": "Needles", "version_id": version.pk, "lengths": [60], "depths": [0, 100], "per_cell": 1}
    made = post(api, "/long-context-suites", body)
    assert made.status_code == 201
    run = start(suite_version=SuiteVersion.objects.get(pk=made.json()["id"]))
    finish(run)

    cells = api.get(f"/api/v1/runs/{run.pk}/map").json()

    assert [(cell["length"], cell["depth"], cell["rate"], cell["n"]) for cell in cells] == [
        (60, 0, 1.0, 1),
        (60, 100, 1.0, 1),
    ]
    assert error(post(api, "/long-context-suites", {**body, "lengths": [9999]})) == (400, "length_long")


WRITES = [
    ("/suites", {"name": "x"}),
    ("/suites/{suite}/versions", {"tasks": [CASE]}),
    ("/runs", {"suite_version_id": 1}),
    ("/runs/{run}/cancel", {}),
    ("/runs/{run}/retry-errors", {}),
    ("/runs/{run}/capture-failures", {}),
    ("/probes", {}),
    ("/long-context-suites", {"name": "x"}),
]
READS = ["/suites", "/suites/{suite}/versions", "/suites/{suite}/versions/1/export", "/runs", "/runs/{run}",
         "/runs/{run}/results", "/runs/{run}/map", "/probes"]  # fmt: skip


@pytest.mark.parametrize(("path", "body"), WRITES)
def test_a_key_without_the_scope_may_not_write(client, start, actor, path, body):
    run = start()
    key = api_key_create(project=actor.project, name="reader", scopes=["read"], by=actor)
    client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {key.secret}"

    answer = post(client, path.format(run=run.pk, suite=run.suite_version.suite_id), body)

    assert error(answer) == (403, "forbidden")


@pytest.mark.parametrize("path", READS)
def test_another_project_sees_nothing(client, start, path):
    run = start()
    stranger = User.objects.create_user("eve", password="correct horse battery")
    other = Project.objects.create(name="Other", slug="other")
    Membership.objects.create(project=other, user=stranger, role=Role.ADMIN)
    theirs = actor_for_user(user=stranger, project=other)
    key = api_key_create(project=other, name="theirs", scopes=["read"], by=theirs)
    client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {key.secret}"

    answer = client.get("/api/v1" + path.format(run=run.pk, suite=run.suite_version.suite_id))

    assert (answer.status_code == 404) or (answer.status_code == 200 and answer.json() == [])


def test_without_a_key_nothing_is_told(client, start):
    run = start()

    assert error(client.get(f"/api/v1/runs/{run.pk}")) == (401, "unauthenticated")


def test_lists_take_the_same_queries_however_long(api, start, finish, django_assert_max_num_queries):
    for _ in range(6):
        finish(start())

    with django_assert_max_num_queries(4):
        assert len(api.get("/api/v1/runs").json()) == 6
    with django_assert_max_num_queries(7):
        api.get(f"/api/v1/runs/{Run.objects.first().pk}")
