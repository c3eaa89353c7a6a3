"""Pages of versions: who may see and do what, and what they say."""

import json

import pytest
from django.urls import reverse

from apps.core.models import Alert, Membership, Role, User
from apps.versions import services
from apps.versions.models import Deployment, Evidence, Release
from apps.versions.selectors import routing_current, version_in_service
from tests.apps.versions.traffic import traffic

SECRET = "sk-very-secret-0123456789"
PLAN_FORM = {
    "steps": "10 % 40\n50 % 40",
    "margin": "20",
    "alpha": "5",
    "failure_signals": ["error", "correction"],
}


def text(answer):
    return " ".join(answer.content.decode().split())


@pytest.fixture
def as_role(client, project):
    """Sign in as a fresh member with a role."""

    def sign_in(role):
        user = User.objects.create_user(f"user-{role}", password="correct horse battery")
        Membership.objects.create(project=project, user=user, role=role)
        client.force_login(user)
        return client

    return sign_in


def test_the_list_marks_what_is_in_service_and_shows_evidence(page, candidate):
    body = text(page.get(reverse("versions:list")))

    assert "in service" in body
    assert "71 % (64–77), n = 212." in body
    assert "no evaluation yet" in body


def test_the_list_is_newest_first_by_number(page, candidate, register):
    for index in range(9):
        register(f"more-{index}", loaded=False)

    listed = page.get(reverse("versions:list")).context["page"]

    assert [version.number for version in listed] == [f"1.{minor}" for minor in range(10, -1, -1)]


def test_the_list_filters_by_state_and_word(page, candidate):
    found = text(page.get(reverse("versions:list") + "?state=in_service"))
    none = text(page.get(reverse("versions:list") + "?q=nothing-like-this"))

    assert candidate.get_absolute_url() not in found
    assert "No version matches" in none


def test_the_list_takes_the_same_queries_for_many_versions(
    page, candidate, register, django_assert_max_num_queries
):
    for index in range(12):
        register(f"more-{index}", loaded=False)

    with django_assert_max_num_queries(16):
        page.get(reverse("versions:list"))


def test_a_version_shows_lineage_evidence_per_edition_and_history(page, candidate, actor):
    services.edition_parity_record(version=candidate, compared=100, differing=0, ties=0, source="bench:1")
    services.version_promote(version=candidate, reason="Better on invoices", by=actor)

    body = text(page.get(candidate.get_absolute_url()))

    assert "run run1-v1" in body
    assert "Identical to standard on 100 prompts" in body
    assert "prompt_lookup" in body
    assert "Better on invoices" in body


def test_a_release_is_started_from_its_form(page, candidate):
    answer = page.post(
        reverse("versions:release_start", args=[candidate.pk]), {**PLAN_FORM, "reason": "Better"}
    )

    release = Release.objects.get()
    assert answer.url == release.get_absolute_url()
    assert release.plan["steps"] == [{"weight": 0.1, "min_units": 40}, {"weight": 0.5, "min_units": 40}]
    assert release.plan["failure_signals"] == ["error", "correction"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"steps": "a lot"}, "Line 1: write a share"),
        ({"steps": "50 % 40\n10 % 40"}, "must rise"),
        ({"steps": "10 % 1.5"}, "Line 1: write a share"),
        ({"reason": " "}, "Give a reason"),
        ({"failure_signals": []}, "at least one signal"),
    ],
)
def test_a_form_that_cannot_run_says_why(page, candidate, change, sentence):
    answer = page.post(
        reverse("versions:release_start", args=[candidate.pk]), {**PLAN_FORM, "reason": "Better", **change}
    )

    assert answer.status_code == 400
    assert sentence in text(answer)
    assert not Release.objects.exists()


def test_the_start_page_says_that_an_evaluation_is_missing(page, candidate):
    Evidence.objects.all().delete()
    url = reverse("versions:release_start", args=[candidate.pk])

    assert "has no finished evaluation" in text(page.get(url))
    assert "has no finished evaluation" in text(page.post(url, {**PLAN_FORM, "reason": "Better"}))


def test_a_running_release_reads_as_a_sentence_with_gates_and_steps(page, release):
    traffic(release, canary=(20, 1), control=(180, 4))
    services.release_evaluate(release=release)

    body = text(page.get(release.get_absolute_url()))

    assert "10 % of units go to 1.1." in body
    assert "20 of 40 units have reached the canary" in body
    assert "5.0 % of 20" in body
    assert "2.2 % of 180" in body
    assert "rolled back at 20" in body
    assert "The way back to 1.0 is loaded on every engine." in body
    assert 'data-live="versions.release:' in body


def test_the_fragment_of_a_release_is_only_its_live_part(page, release):
    body = text(page.get(release.get_absolute_url(), headers={"HX-Request": "true"}))

    assert body.startswith('<div id="release"')
    assert "<html" not in body


def test_a_release_without_units_says_no_data(page, release):
    body = text(page.get(release.get_absolute_url()))

    assert "no data" in body
    assert "The chart begins with the first unit" in body


def test_a_rolled_back_release_says_why_and_can_be_marked_as_seen(page, release, project):
    traffic(release, canary=(60, 40), control=(540, 20))
    services.release_evaluate(release=release)
    body = text(page.get(release.get_absolute_url()))
    assert "All traffic is back on 1.0." in body
    assert "The canary is worse" in body
    assert "data-live=" not in body

    page.post(reverse("versions:release_acknowledge", args=[release.pk]))

    assert not Alert.objects.filter(resolved_at=None).exists()
    assert "I have looked at this" not in text(page.get(release.get_absolute_url()))


def test_the_release_page_takes_a_fixed_number_of_queries(page, release, django_assert_max_num_queries):
    for _ in range(5):
        traffic(release, canary=(4, 0), control=(36, 0))
        services.release_evaluate(release=release)

    with django_assert_max_num_queries(24):
        page.get(release.get_absolute_url())


def test_pause_resume_and_abort_from_the_page(page, release):
    page.post(reverse("versions:release_pause", args=[release.pk]))
    release.refresh_from_db()
    assert release.paused
    assert "paused" in text(page.get(release.get_absolute_url()))

    page.post(reverse("versions:release_resume", args=[release.pk]))
    confirm = reverse("versions:release_abort", args=[release.pk])
    assert "goes back to 1.0" in text(page.get(confirm))
    assert page.post(confirm, {"reason": ""}).status_code == 400
    page.post(confirm, {"reason": "Enough"})

    release.refresh_from_db()
    assert (release.state, release.paused) == ("aborted", False)


def test_promoting_is_a_page_with_evidence_consequences_and_a_reason(page, candidate, project):
    url = reverse("versions:promote", args=[candidate.pk])
    body = text(page.get(url))
    assert "71 % (64–77), n = 212." in body
    assert "goes to 1.1 within a second" in body
    assert page.post(url, {"reason": ""}).status_code == 400

    page.post(url, {"reason": "Better"})

    assert version_in_service(project) == candidate


def test_promoting_without_evidence_takes_an_express_tick(page, candidate, project):
    Evidence.objects.all().delete()
    url = reverse("versions:promote", args=[candidate.pk])
    assert "has no finished evaluation" in text(page.post(url, {"reason": "Now"}))

    page.post(url, {"reason": "Now", "without_evidence": "on"})

    assert version_in_service(project) == candidate


@pytest.mark.parametrize("name", ["promote", "release_start"])
def test_a_version_that_was_rolled_back_before_says_so_where_it_would_be_released_again(page, release, name):
    traffic(release, canary=(60, 40), control=(540, 20))
    services.release_evaluate(release=release)

    body = text(page.get(reverse(f"versions:{name}", args=[release.candidate_id])))

    assert f'1.1 was <a href="{release.get_absolute_url()}">rolled back in release 1</a>' in body
    assert "The canary is worse" in body


def test_a_version_that_was_taken_out_of_service_says_so_too(page, candidate, actor):
    services.version_promote(version=candidate, reason="Better on invoices", by=actor)
    services.version_roll_back(project=candidate.project, reason="Complaints", by=actor)

    body = text(page.get(reverse("versions:promote", args=[candidate.pk])))

    assert f"1.1 was rolled back from service by {actor.name}" in body
    assert ": Complaints" in body


def test_a_version_that_was_never_taken_back_carries_no_warning(page, candidate):
    assert "rolled back" not in text(page.get(reverse("versions:promote", args=[candidate.pk])))


def test_rolling_back_is_a_page_with_history_and_a_reason(page, candidate, control, project, actor):
    services.version_promote(version=candidate, reason="Better on invoices", by=actor)
    url = reverse("versions:roll_back")
    body = text(page.get(url))
    assert "Roll back from 1.1 to 1.0" in body
    assert "Better on invoices" in body

    page.post(url, {"reason": "Complaints"})

    assert version_in_service(project) == control
    assert "no version to go back to" in text(page.get(url))


@pytest.mark.parametrize("role", [Role.VIEWER, Role.LABELLER, Role.ENGINEER])
@pytest.mark.parametrize("name", ["promote", "roll_back", "release_start", "release_abort", "release_pause"])
def test_moving_traffic_needs_a_release_manager(as_role, release, candidate, role, name):
    args = {"promote": [candidate.pk], "release_start": [candidate.pk], "roll_back": []}.get(
        name, [release.pk]
    )

    answer = as_role(role).post(reverse(f"versions:{name}", args=args), {"reason": "x"})

    assert answer.status_code == 403
    release.refresh_from_db()
    assert (release.state, release.paused) == ("running", False)


def test_a_release_manager_may_promote(as_role, candidate, project):
    as_role(Role.RELEASE_MANAGER).post(reverse("versions:promote", args=[candidate.pk]), {"reason": "Better"})

    assert version_in_service(project) == candidate


def test_a_viewer_sees_pages_without_their_buttons(as_role, release, candidate):
    client = as_role(Role.VIEWER)

    assert "Start a release" not in text(client.get(candidate.get_absolute_url()))
    assert "Roll back" not in text(client.get(release.get_absolute_url()))
    assert client.get(reverse("versions:routing")).status_code == 200


def test_a_stranger_is_refused(client, candidate):
    client.force_login(User.objects.create_user("stranger", password="correct horse battery"))

    assert client.get(candidate.get_absolute_url()).status_code == 403


def test_routing_is_changed_from_its_page(page, control, project):
    form = {
        "task_types": "interactive: standard\nbatch: standard",
        "default_edition": "standard",
        "capture_failures": "on",
        "capture_success_rate": "10",
        "failure_signals": ["error"],
        "reason": "Simple",
    }
    page.post(reverse("versions:routing"), form)

    snap = routing_current(project).snapshot
    assert snap["task_types"] == {"interactive": "standard", "batch": "standard"}
    assert snap["capture"] == {"failures": True, "success_rate": 0.1}
    body = text(page.get(reverse("versions:routing")))
    assert "revision 2" in body
    assert "Simple" in body
    assert "Changed since revision 1" in text(page.get(reverse("versions:revision", args=[2])))


def test_the_routing_page_says_names_in_words(page, control):
    now = text(page.get(reverse("versions:routing"))).partition("<h2>Rules</h2>")[0]

    assert "interactive → high-speed" in now
    assert "someone gave negative feedback; someone corrected the answer" in now
    assert "high_speed" not in now
    assert "negative_feedback" not in now


@pytest.mark.parametrize("table", ["interactive standard", "a: standard\na: standard", "a: fast"])
def test_a_routing_form_that_makes_no_sense_says_so(page, control, project, table):
    form = {
        "task_types": table,
        "default_edition": "standard",
        "capture_success_rate": "10",
        "failure_signals": ["error"],
    }

    assert page.post(reverse("versions:routing"), form).status_code == 400
    assert routing_current(project).number == 1


def test_changing_routing_needs_a_release_manager(as_role, control, project):
    answer = as_role(Role.ENGINEER).post(reverse("versions:routing"), {})

    assert answer.status_code == 403


def test_endpoints_are_registered_edited_and_retired_and_the_key_is_never_shown(page, base):
    form = {"name": "rival", "base_url": "https://h/v1", "model": "m", "api_key": SECRET}
    page.post(reverse("versions:endpoint_create"), form)
    row = Deployment.objects.get(name="rival")
    edit = reverse("versions:endpoint_edit", args=[row.pk])
    pages = [page.get(reverse("versions:endpoints")), page.get(edit)]
    page.post(edit, {**form, "model": "larger", "api_key": ""})
    refused = page.post(edit, {**form, "base_url": "https://elsewhere", "api_key": ""})

    assert all(SECRET not in text(answer) for answer in [*pages, refused])
    assert "stored" in text(pages[0])
    assert "Enter the API key again" in text(refused)
    row.refresh_from_db()
    assert row.model == "larger"

    page.post(reverse("versions:endpoint_retire", args=[row.pk]))
    row.refresh_from_db()
    assert row.retired_at is not None


def test_testing_an_endpoint_from_the_page_says_what_came_back(page, base):
    form = {"name": "gone", "base_url": "http://127.0.0.1:9", "model": "m"}
    page.post(reverse("versions:endpoint_create"), form)
    row = Deployment.objects.get(name="gone")

    body = text(page.post(reverse("versions:endpoint_test", args=[row.pk]), follow=True))

    assert "gone: The address could not be reached." in body


def test_a_wrong_endpoint_says_why(page, base):
    answer = page.post(
        reverse("versions:endpoint_create"), {"name": "x", "base_url": "ftp://h", "model": "m"}
    )

    assert answer.status_code == 400
    assert "http:// or https://" in text(answer)


def test_engines_are_shown_with_what_they_serve(page, engines):
    body = text(page.get(reverse("versions:endpoints")))

    assert "engine-standard" in body
    assert "healthy" in body


def test_the_chart_is_valid_json_with_the_limit(page, release):
    traffic(release, canary=(20, 1), control=(180, 4))
    services.release_evaluate(release=release)
    from apps.versions.chart import evidence_figure

    figure = evidence_figure(Release.objects.get())

    assert figure["layout"]["shapes"][0]["y0"] == 20
    assert figure["data"][0]["x"] == [200]
    assert json.dumps(figure)
