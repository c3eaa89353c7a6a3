"""Held-out cases: what those who train do not see, and what never becomes training material."""

import json

import pytest
from django.urls import reverse

from apps.core.errors import Refused
from apps.core.models import Membership, Role, User
from apps.core.permissions import SCOPES, actor_for_user
from apps.core.services import api_key_create
from apps.evals import services
from apps.evals.held_out import HIDDEN, may_see
from apps.evals.models import Case, Result
from apps.feedback.models import Capture
from tests.apps.evals.conftest import make_task, text

pytestmark = pytest.mark.django_db

SECRET = "the secret question"


@pytest.fixture
def engineer(project):
    user = User.objects.create_user("eli", password="correct horse battery")
    Membership.objects.create(project=project, user=user, role=Role.ENGINEER)
    return actor_for_user(user=user, project=project)


@pytest.fixture
def hidden_version(store, project, actor):
    """One case to train on, one to validate with, one held out, one of no split."""
    held = make_task(
        1, messages=({"role": "user", "content": SECRET},), reference=4711, tags={"split": "test"}
    )
    tasks = [make_task(0, tags={"split": "train"}), held, make_task(2, tags={"split": "dev"}), make_task(3)]
    suite = services.suite_create(project=project, name="Guarded", by=actor)
    return services.suite_version_create(suite=suite, tasks=tasks, by=actor)


@pytest.fixture
def run(hidden_version, start, finish):
    """Every case failed."""
    made = start(suite_version=hidden_version)
    finish(made, {f"case-{n}": "failed" for n in range(4)})
    made.refresh_from_db()
    return made


@pytest.fixture
def engineer_page(client, engineer):
    client.force_login(engineer.user)
    return client


def key_api(client, actor, *scopes):
    made = api_key_create(project=actor.project, name="k", scopes=list(scopes), by=actor)
    client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {made.secret}"
    return client


def test_a_tag_names_the_split_in_any_of_its_words(hidden_version):
    splits = dict(hidden_version.cases.values_list("key", "split"))

    assert splits == {"case-0": "train", "case-1": "held_out", "case-2": "validation", "case-3": ""}


def test_release_managers_and_admins_may_see_and_those_who_only_train_may_not(actor, engineer, viewer):
    assert may_see(actor)
    assert not may_see(engineer)
    assert not may_see(viewer)
    assert SCOPES["held_out"] == Role.RELEASE_MANAGER


def test_failures_of_held_out_and_validation_cases_are_never_captured(run, actor):
    assert services.results_capture(run=run, by=actor) == 2

    captured = Result.objects.exclude(captured_at=None).values_list("case__key", flat=True)
    assert set(captured) == {"case-0", "case-3"}
    assert Capture.objects.count() == 2


def test_a_run_that_failed_on_held_out_cases_only_says_why_nothing_is_captured(
    hidden_version, start, finish, actor
):
    run = start(suite_version=hidden_version)
    finish(run, {"case-1": "failed", "case-2": "failed"})
    run.refresh_from_db()

    with pytest.raises(Refused, match="All 2 failed results belong to held-out or validation cases"):
        services.results_capture(run=run, by=actor)

    assert not Capture.objects.exists()


def test_pages_show_an_engineer_that_there_is_a_case_and_nothing_of_it(engineer_page, hidden_version, run):
    case = Case.objects.get(split="held_out")
    result = run.results.get(case=case)
    addresses = [
        hidden_version.get_absolute_url(),
        f"{hidden_version.get_absolute_url()}?case={case.pk}",
        result.get_absolute_url(),
        run.get_absolute_url(),
        f"{run.get_absolute_url()}?q=case-1",
        reverse("evals:suite_changes", args=[hidden_version.suite_id]),
    ]

    pages = [text(engineer_page.get(address)) for address in addresses]

    for body in pages:
        assert SECRET not in body
        assert "4711" not in body
    assert "case-1" in pages[0]
    assert HIDDEN in pages[1].replace("&quot;", '"')
    assert HIDDEN in pages[2].replace("&quot;", '"')
    assert "answer 0" not in pages[2]
    assert "said" not in pages[4].split('id="list"')[1].split("What is")[0]


def test_an_admin_sees_all_of_it(page, hidden_version, run):
    case = Case.objects.get(split="held_out")

    shown = text(page.get(f"{hidden_version.get_absolute_url()}?case={case.pk}"))
    result = text(page.get(run.results.get(case=case).get_absolute_url()))

    assert SECRET in shown
    assert SECRET in result
    assert "answer 0" in result


def test_an_export_leaves_held_out_cases_to_those_who_may_see_them(engineer_page, hidden_version):
    address = reverse("evals:suite_export", args=[hidden_version.suite_id, 1])

    answer = engineer_page.get(address)

    assert answer["X-Held-Out-Cases-Left-Out"] == "1"
    ids = [json.loads(line)["id"] for line in answer.getvalue().splitlines()]
    assert ids == ["case-0", "case-2", "case-3"]


def test_an_export_of_everything_says_that_nothing_stayed(page, hidden_version):
    answer = page.get(reverse("evals:suite_export", args=[hidden_version.suite_id, 1]))

    assert answer["X-Held-Out-Cases-Left-Out"] == "0"
    assert len(answer.getvalue().splitlines()) == 4


@pytest.mark.parametrize("scopes", [("read",), ("read", "evals", "training"), ("read", "release")])
def test_a_key_without_the_scope_reads_scores_and_no_contents(client, actor, hidden_version, run, scopes):
    api = key_api(client, actor, *scopes)
    root = f"/api/v1/suites/{hidden_version.suite_id}"

    bodies = [
        api.get(f"{root}/versions/1/cases").content,
        api.get(f"{root}/versions/1/export").getvalue(),
        api.get(f"/api/v1/runs/{run.pk}/results").content,
    ]

    assert all(SECRET.encode() not in body and b"4711" not in body for body in bodies)
    cases = json.loads(bodies[0])["cases"]
    assert [(row["key"], row["hidden"], row["task"] is None) for row in cases][1] == ("case-1", True, True)
    results = {row["case"]: row for row in json.loads(bodies[2])}
    assert (results["case-1"]["answer"], results["case-1"]["state"]) == ("", "failed")
    assert results["case-0"]["answer"] == "answer 0"


def test_a_key_with_the_scope_reads_contents(client, actor, hidden_version):
    api = key_api(client, actor, "read", "held_out")

    rows = api.get(f"/api/v1/suites/{hidden_version.suite_id}/versions/1/cases?split=held_out").json()

    assert [row["task"]["reference"] for row in rows["cases"]] == [4711]
    assert rows["splits"] == {"train": 1, "validation": 1, "held_out": 1}


def test_a_preview_shows_no_held_out_case_that_it_keeps(engineer, engineer_page, hidden_version, project):
    from apps.evals.formats import Upload
    from apps.evals.services.reading import Choices

    row = services.suite_import_start(
        project=project, name="Guarded", uploads=[Upload("a.csv", b"question,expected\nq,1\n")],
        choices=Choices(keep_personal_data=True), by=engineer,
    )  # fmt: skip

    body = text(engineer_page.get(row.get_absolute_url()))

    assert SECRET not in body
    assert "1 held-out case of v1 that the files lack" in body


def test_an_error_that_quotes_a_held_out_case_is_not_shown_to_those_who_may_not_read_it(
    client, actor, hidden_version, start, finish, engineer_page
):
    made = start(suite_version=hidden_version)
    finish(made, {"case-1": "error", "case-2": "error"}, error=f"engine: cannot take {SECRET}")
    hidden = made.results.get(case__split="held_out")
    shown = made.results.exclude(pk=hidden.pk)
    shown.update(error="engine: refused")

    rows = key_api(client, actor, "read").get(f"/api/v1/runs/{made.pk}/results").json()
    assert {row["case"]: row["error"] for row in rows}["case-1"] == "held out"
    assert {row["error"] for row in rows} == {"held out", "engine: refused"}
    assert SECRET not in engineer_page.get(made.get_absolute_url() + "?state=error").content.decode()


def test_a_run_that_failed_as_a_whole_quotes_no_error_of_a_held_out_case(
    store, project, actor, start, finish
):
    held = [make_task(n, tags={"split": "test"}) for n in range(2)]
    suite = services.suite_create(project=project, name="Only held out", by=actor)
    version = services.suite_version_create(suite=suite, tasks=held, by=actor)
    made = start(suite_version=version)
    finish(made, dict.fromkeys(("case-0", "case-1"), "error"), error=f"engine: cannot take {SECRET}")
    made.refresh_from_db()

    assert made.state == "failed"
    assert made.error == "Every sample ended in an error: see the results."


def test_scores_of_held_out_cases_are_not_cut_by_what_the_cases_say(
    client, actor, store, project, start, finish, engineer, page
):
    held = make_task(0, tags={"split": "test", "why": SECRET}, source="the secret source")
    suite = services.suite_create(project=project, name="Tagged", by=actor)
    version = services.suite_version_create(
        suite=suite, tasks=[held, make_task(1, tags={"why": "open"})], by=actor
    )
    first, second = start(suite_version=version), start(suite_version=version)
    finish(first, {"case-0": "failed"})
    finish(second)
    shown = [first.get_absolute_url(), f"/evals/runs/{second.pk}/compare/?against={first.pk}&by=tag:why"]
    assert all(SECRET in page.get(url).content.decode() for url in shown)
    client.force_login(engineer.user)
    for url in (*shown, f"/evals/runs/{second.pk}/compare/?against={first.pk}&by=source"):
        said = client.get(url).content.decode()
        assert SECRET not in said
        assert "the secret source" not in said

    client.logout()
    api = key_api(client, actor, "read")
    for path in (
        f"runs/{first.pk}/slices?by=why",
        f"runs/{first.pk}/results?tag=why&value={SECRET}",
        f"runs/{first.pk}/results?tag=family&value={SECRET}",
        f"runs/{second.pk}/compare/{first.pk}/slices?by=source",
        f"runs/{second.pk}/compare/{first.pk}/flips?by=tag:why&slice={SECRET}",
    ):
        answer = api.get(f"/api/v1/{path}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "held_out")
    assert api.get(f"/api/v1/runs/{first.pk}/slices?by=family").status_code == 200
