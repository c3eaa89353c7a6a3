"""Pages of evals: status, permission, what they say."""

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from apps.core.models import Membership, Project, Role, User
from apps.core.units import unit_report, units_pump
from apps.evals import services
from apps.evals.models import Probe, Result, Run, SuiteImport, SuiteVersion
from apps.evals.panels import nav_count, waiting_rows
from apps.feedback.models import Capture
from tests.apps.evals.conftest import make_task, report_of, text

pytestmark = pytest.mark.django_db


def url(name, *args):
    return reverse(f"evals:{name}", args=args)


@pytest.fixture
def done(start, finish):
    """A failure, an error, an unscored and a passed result."""
    run = start()
    finish(run, {"case-0": "failed", "case-1": "error", "case-2": "unscored"}, latency_ms=12.0)
    run.refresh_from_db()
    return run


@pytest.fixture
def two(start, finish, project, actor, version, store):
    """Forty cases; the new run mends thirty of them and breaks one."""
    suite = services.suite_create(project=project, name="Forty", by=actor)
    forty = services.suite_version_create(suite=suite, tasks=[make_task(n) for n in range(40)], by=actor)
    base, new = (services.run_start(suite_version=forty, version=version, by=actor) for _ in range(2))
    finish(base, {f"case-{n}": "failed" for n in range(30)})
    finish(new, {"case-39": "failed"})
    return new, base


EMPTY = {
    "home": "No suites yet",
    "suites": "No suites yet",
    "runs": "No runs yet",
    "probes": "No probes yet",
    "maps": "No maps yet",
}


@pytest.mark.parametrize(("name", "words"), EMPTY.items())
def test_an_empty_page_says_what_would_be_there(page, name, words):
    answer = page.get(url(name))

    assert answer.status_code == 200
    assert words in text(answer)


def test_home_shows_rates_over_versions_newest_runs_and_suites(page, done):
    body = text(page.get(url("home")))

    assert "Pass rate over versions" in body
    assert "data-figure" in body
    assert f"run {done.pk}" in body
    assert "1.0 standard" in body


def test_a_suite_shows_versions_and_runs(page, done, suite_version):
    body = text(page.get(suite_version.suite.get_absolute_url()))

    assert suite_version.digest[:12] in body
    assert done.get_absolute_url() in body
    assert "4 cases" in body


def test_a_suite_is_made_from_its_form(page, project):
    answer = page.post(url("suite_create"), {"name": "Invoices"})

    assert answer.status_code == 302
    assert "No cases yet" in text(page.get(answer.url))
    again = page.post(url("suite_create"), {"name": "Invoices"})
    assert again.status_code == 400
    assert "There is already a suite called “Invoices”." in text(again)


def test_a_file_is_imported_from_its_form(page, store):
    file = SimpleUploadedFile("cases.jsonl", LINE)

    answer = page.post(url("suite_import"), {"name": "New", "file": file})

    row = SuiteImport.objects.get()
    assert answer.url == row.get_absolute_url()
    assert not SuiteVersion.objects.exists()
    assert "Import 1 case" in text(page.get(answer.url))
    done = page.post(url("suite_import_confirm", row.pk), {"digest": row.digest})
    assert done.url == SuiteVersion.objects.get().get_absolute_url()
    assert "New v1 holds 1 case." in text(page.get(done.url))


LINE = (
    b'{"id": "a", "family": "sums", "messages": [{"role": "user", "content": "1 + 1?"}], '
    b'"verifier": {"kind": "numeric"}, "reference": 2}'
)


def test_a_bad_file_is_explained_beside_the_field_and_nothing_is_kept(page, store):
    file = SimpleUploadedFile("cases.jsonl", LINE + b"\n{<script>")

    answer = page.post(url("suite_import"), {"name": "New", "file": file})

    assert answer.status_code == 400
    assert "cases.jsonl, line 2: not JSON" in text(answer)
    assert "Nothing was imported." in text(answer)
    assert 'value="New"' in text(answer)
    assert not SuiteVersion.objects.exists()


def test_a_version_lists_its_cases_and_shows_one_whole(page, suite_version, done):
    case = suite_version.cases.get(key="case-2")
    here = suite_version.get_absolute_url()

    listed = text(page.get(here))
    filtered = text(page.get(f"{here}?q=case-3"))
    shown = text(page.get(f"{here}?case={case.pk}"))

    assert "case-2" in listed
    assert "case-2" not in filtered
    assert "What is 2 plus 1?" in shown
    assert "Reference" in shown
    assert f"run {done.pk}" in shown
    assert "No case matches" in text(page.get(f"{here}?q=nothing"))


def test_a_version_is_downloaded(page, suite_version):
    answer = page.get(url("suite_export", suite_version.suite_id, 1))

    assert answer["Content-Disposition"] == f'attachment; filename="suite-{suite_version.suite_id}-v1.jsonl"'
    assert len(answer.getvalue().splitlines()) == 4


def test_text_of_a_case_is_shown_as_text(page, project, actor, store):
    task = make_task(1, messages=({"role": "user", "content": "<script>alert(1)</script>"},))
    suite = services.suite_create(project=project, name="Bold", by=actor)
    made = services.suite_version_create(suite=suite, tasks=[task], by=actor)

    body = page.get(f"{made.get_absolute_url()}?case={made.cases.get().pk}").content.decode()

    assert "<script>alert(1)" not in body
    assert "&lt;script&gt;alert(1)" in body


def test_a_run_is_started_from_its_form(page, suite_version, version):
    body = {
        "suite_version": suite_version.pk,
        "target": f"version:{version.pk}:high_speed",
        "samples": 3,
        "temperature": 0.7,
        "seed": 5,
    }

    answer = page.post(url("run_start"), body)

    run = Run.objects.get()
    assert answer.url == run.get_absolute_url()
    assert run.edition_kind == "high_speed"
    assert (run.sampling["samples"], run.sampling["temperature"], run.sampling["seed"]) == (3, 0.7, 5)


def test_an_endpoint_can_be_chosen_and_a_retired_one_cannot(page, suite_version, endpoint, actor):
    from apps.versions.services import deployment_retire

    body = {
        "suite_version": suite_version.pk,
        "target": f"endpoint:{endpoint.pk}",
        "samples": 1,
        "temperature": 0,
        "seed": 0,
    }
    assert page.post(url("run_start"), body).status_code == 302
    assert Run.objects.get().deployment == endpoint

    deployment_retire(deployment=endpoint, by=actor)
    assert page.post(url("run_start"), body).status_code == 400


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"target": "version:999:standard"}, "Select a valid choice"),
        ({"suite_version": 999}, "Select a valid choice"),
        ({"samples": 4}, "At temperature 0 every sample is the same"),
        ({"temperature": 9}, "less than or equal to 2"),
    ],
)
def test_a_run_form_says_what_is_wrong(page, suite_version, version, change, words):
    body = {
        "suite_version": suite_version.pk,
        "target": f"version:{version.pk}:standard",
        "samples": 1,
        "temperature": 0,
        "seed": 0,
    }

    answer = page.post(url("run_start"), {**body, **change})

    assert answer.status_code == 400
    assert words in text(answer)
    assert not Run.objects.exists()


def test_a_running_run_is_live_with_progress_and_cancel(page, start, store):
    run = start(batch_size=2)
    units_pump()
    unit = run.project.units.order_by("pk").first()
    unit_report(report=report_of(unit, {}, store))

    answer = page.get(run.get_absolute_url())

    body = text(answer)
    assert "2 of 4 samples" in body
    assert url("run_cancel", run.pk) in body
    assert "2 waiting" in body
    assert 'data-live="evals.run:' in body
    assert "so far" in body


def test_a_live_fetch_gets_the_fragment_only(page, done):
    answer = page.get(done.get_absolute_url(), headers={"HX-Request": "true", "HX-Target": "run"})

    assert answer.content.decode().lstrip().startswith('<div id="run"')
    assert "data-live=" not in answer.content.decode()


def test_a_filter_fetch_gets_the_list(page, done):
    answer = page.get(
        f"{done.get_absolute_url()}?state=failed", headers={"HX-Request": "true", "HX-Target": "list"}
    )

    assert 'id="list"' in answer.content.decode()
    assert "case-0" in text(answer)


def test_a_finished_run_shows_all_counts_coverage_and_what_to_do(page, done):
    body = text(page.get(done.get_absolute_url()))

    assert re.search(r"1 passed, 1 failed, <b [^>]*>1 error</b>, 1 unscored, 0 cancelled", body)
    assert "1 of 2 scored answers passed, 1 error, 1 unscored, coverage 50 %" in body
    assert "no gate can be decided" in body
    assert url("run_retry_errors", done.pk) in body
    assert url("run_capture", done.pk) in body


def test_results_are_filtered_in_the_url(page, done):
    failed = text(page.get(f"{done.get_absolute_url()}?state=failed"))
    found = text(page.get(f"{done.get_absolute_url()}?q=case-3"))

    assert "case-0" in failed
    assert "case-3" not in failed
    assert "case-3" in found
    assert "No result matches" in text(page.get(f"{done.get_absolute_url()}?q=nothing"))


def test_a_run_opens_with_its_difference_to_the_run_before(page, two):
    new, base = two

    body = text(page.get(new.get_absolute_url()))

    assert f"run {base.pk}" in body
    assert "by 72 points" in body
    assert "Where it changed" in body
    assert "30 better, 1 worse" in body


def test_cancel_retry_and_capture_are_plain_forms(page, start, finish, done):
    running = start()
    assert page.post(url("run_cancel", running.pk)).url == running.get_absolute_url()
    running.refresh_from_db()
    assert running.state == "cancelled"
    assert "0 passed, 0 failed, 0 errors, 0 unscored, 4 cancelled" in text(
        page.get(running.get_absolute_url())
    )

    page.post(url("run_capture", done.pk))
    assert Capture.objects.count() == 1
    assert Result.objects.get(run=done, state="failed").captured_at is not None

    page.post(url("run_retry_errors", done.pk))
    done.refresh_from_db()
    assert done.state == "running"


def test_a_refused_action_says_so_on_the_page_it_came_from(page, done):
    answer = page.post(
        url("run_cancel", done.pk),
        headers={"Referer": f"http://testserver{done.get_absolute_url()}"},
        follow=True,
    )

    assert "cannot become cancelled" in text(answer)


def test_a_result_shows_answer_verdict_and_measures(page, done):
    row = done.results.get(case__key="case-0")

    body = text(page.get(row.get_absolute_url()))

    assert "What is 0 plus 1?" in body
    assert "answer 0" in body
    assert "said" in body
    assert "12 ms" in body
    assert "not measured" in body


def test_an_error_is_shown_as_an_error_without_a_score(page, done):
    row = done.results.get(case__key="case-1")

    body = text(page.get(row.get_absolute_url()))

    assert "There is no answer." in body
    assert "score" not in body.split("Verdict</h2>")[1].split("</p>")[0]


def test_samples_of_a_case_are_linked(page, start, finish):
    run = start(sampling={"samples": 2, "temperature": 1.0})
    finish(run)

    body = text(page.get(run.results.first().get_absolute_url()))

    assert "sample 0" in body
    assert "sample 1" in body


def test_a_comparison_reads_as_a_sentence_with_flips_both_ways(page, two):
    new, base = two

    body = text(page.get(f"{url('compare', new.pk)}?against={base.pk}"))

    assert "by 72 points" in body
    assert "30 better, 1 worse" in body
    assert "McNemar" in body
    assert "p = 0.000" not in body
    assert body.index("case-39") < body.index("case-0")


def test_a_small_comparison_says_that_it_cannot_tell(page, done, start, finish):
    later = start()
    finish(later)

    body = text(page.get(url("compare", later.pk)))

    assert "n too small" in body or "cannot tell yet" in body.lower()
    assert "left out because one side was not scored" in body


def test_a_run_without_another_has_nothing_to_compare_with(page, done):
    assert "Nothing to compare with" in text(page.get(url("compare", done.pk)))


def test_a_probe_is_made_watched_and_asked_again(page, fake_model, version):
    answer = page.post(
        url("probe_create"), {"target": f"version:{version.pk}:standard", "hours": 6, "prompts": ""}
    )
    probe = Probe.objects.get()
    assert answer.url == probe.get_absolute_url()
    services.probe_round(probe=probe)
    fake_model.model = "big-2"
    for _ in range(2):
        probe.refresh_from_db()
        services.probe_round(probe=probe)

    body = text(page.get(probe.get_absolute_url()))
    assert "reference taken" in body
    assert "It calls itself “big-2”" in body or "It calls itself &quot;big-2" in body
    assert "Two measured rounds in a row differ" in body
    assert "changed" in text(page.get(url("probes")))

    assert page.post(url("probe_ask", probe.pk)).status_code == 302
    assert page.post(url("probe_switch", probe.pk)).status_code == 302
    assert "paused" in text(page.get(url("probes")))
    assert page.post(url("probe_renew", probe.pk)).status_code == 302
    assert "not taken yet" in text(page.get(probe.get_absolute_url()))


def test_a_map_is_made_run_and_read(page, fake_model, store, version, start, finish):
    body = {
        "name": "Needles",
        "target": f"version:{version.pk}:standard",
        "lengths": "60, 90",
        "depths": "0 100",
        "per_cell": 1,
        "kinds": ["retrieval"],
        "seed": 0,
    }
    answer = page.post(url("map_create"), body)
    made = SuiteVersion.objects.get(suite__name="Needles")
    assert answer.url == made.get_absolute_url()
    run = start(suite_version=made)
    finish(run)

    shown = text(page.get(url("map", run.pk)))
    assert "60 tokens" in shown
    assert "n = 1" in shown
    assert "data-figure" in shown
    assert url("map", run.pk) in text(page.get(url("maps")))
    assert url("map", run.pk) in text(page.get(run.get_absolute_url()))


@pytest.mark.parametrize(
    ("change", "words"),
    [({"lengths": "long"}, "Write whole numbers"), ({"lengths": "9999"}, "do not fit")],
)
def test_a_map_that_cannot_be_made_says_why(page, fake_model, store, version, change, words):
    body = {
        "name": "N",
        "target": f"version:{version.pk}:standard",
        "lengths": "",
        "depths": "0",
        "per_cell": 1,
        "kinds": ["retrieval"],
        "seed": 0,
    }

    answer = page.post(url("map_create"), {**body, **change})

    assert answer.status_code == 400
    assert words in text(answer)


PAGES = ["home", "suites", "runs", "probes", "maps"]
FORMS = ["suite_create", "suite_import", "run_start", "probe_create", "map_create"]


@pytest.mark.parametrize("name", PAGES)
def test_a_viewer_reads_but_is_offered_nothing_to_change(client, viewer, done, name):
    client.force_login(viewer.user)

    answer = client.get(url(name))

    assert answer.status_code == 200
    assert "btn-primary" not in answer.content.decode().split("<main")[1].split('class="empty"')[0]


@pytest.mark.parametrize("name", FORMS)
def test_a_viewer_may_not_open_a_form(client, viewer, name):
    client.force_login(viewer.user)

    assert client.get(url(name)).status_code == 403


@pytest.mark.parametrize("name", ["run_cancel", "run_retry_errors", "run_capture"])
def test_a_viewer_may_not_act_on_a_run(client, viewer, start, name):
    run = start()
    client.force_login(viewer.user)

    assert client.post(url(name, run.pk)).status_code == 403
    run.refresh_from_db()
    assert run.state == "running"


def test_another_projects_pages_are_not_found(client, done):
    eve = User.objects.create_user("eve", password="correct horse battery")
    other = Project.objects.create(name="Other", slug="other")
    Membership.objects.create(project=other, user=eve, role=Role.ADMIN)
    client.force_login(eve)
    row = done.results.first()

    for address in (
        done.get_absolute_url(),
        row.get_absolute_url(),
        done.suite_version.get_absolute_url(),
        done.suite_version.suite.get_absolute_url(),
        url("compare", done.pk),
        url("map", done.pk),
        url("suite_export", done.suite_version.suite_id, 1),
    ):
        assert client.get(address).status_code == 404


def test_a_stranger_is_sent_to_the_login(client, done):
    assert client.get(done.get_absolute_url()).status_code == 302


def test_lists_take_the_same_queries_however_long(
    page, done, start, finish, project, actor, django_assert_max_num_queries
):
    for index in range(6):
        finish(start())
        services.suite_create(project=project, name=f"S{index}", by=actor)

    for name, most in (("home", 20), ("suites", 14), ("runs", 14), ("probes", 12), ("maps", 12)):
        with django_assert_max_num_queries(most):
            page.get(url(name))
    with django_assert_max_num_queries(32):
        page.get(Run.objects.first().get_absolute_url())


def test_the_rail_counts_what_runs(start, actor, project):
    assert nav_count(project) == ""

    run = start()
    assert nav_count(project) == "1 live"

    services.run_cancel(run=run, by=actor)
    assert nav_count(project) == ""


def test_a_failed_run_waits_for_a_person(start, finish, project):
    run = start()
    finish(run, {f"case-{n}": "error" for n in range(4)}, error="engine gone")

    rows = waiting_rows(project)

    assert [row["url"] for row in rows] == [run.get_absolute_url()]
    assert rows[0]["why"] == "Every sample ended in an error: engine gone"


@pytest.mark.parametrize("path", ["runs/new/", "long-context/new/", "probes/new/"])
def test_what_serves_is_the_first_target_and_not_the_newest_version(
    page, suite_version, version, candidate, path
):
    shown = page.get(f"/evals/{path}").content.decode()

    assert f'<option value="version:{version.pk}:standard" selected>' in shown
    assert f'<option value="version:{candidate.pk}:standard">' in shown
