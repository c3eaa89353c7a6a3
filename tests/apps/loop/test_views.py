"""The Loop page and the page of a turn."""

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.core.models import Membership, Project, Role
from apps.core.permissions import Actor
from apps.core.services import alert_raise
from apps.feedback.models import Family
from apps.loop.models import DemoTurn, TurnLine
from apps.versions.services import base_model_register

STAGES = ["Traffic, 24 h", "Captured", "To label", "Tasks", "Training", "Versions", "Canary"]
STATE = {
    "base": {"id": 1, "number": "1.0"}, "trained": {"id": 2, "number": "1.1"},
    "damaged": {"id": 3, "number": "1.2"}, "dataset": 4, "training_run": 5, "base_run": 6,
    "trained_run": 7, "damaged_run": 8, "release": 9, "drill": 10, "comparison": {},
    "traffic": {"sent": 480, "wrong": 219, "unanswered": 0}, "assets": {"made": 211, "refused": 8},
    "seconds": {"prepare": 3.2, "train": 125.0},
}  # fmt: skip
REPORT: dict[str, Any] = {
    "succeeded": True, "sentence": "1.1 replaced 1.0.",
    "baseline": {"pass": 0.51, "n": 320, "low": 0.43, "high": 0.59},
    "trained": {"pass": 0.79, "n": 320, "low": 0.74, "high": 0.84},
    "difference": {"mean": 0.28, "low": 0.21, "high": 0.35, "n": 320, "clusters": 155, "verdict": "better",
                   "sentence": "Better by 28 points (+21 to +35)."},
    "release": {"decision": "promote", "reasons": ["61 units reached the canary."]},
    "damaged": {"decision": "roll_back", "reasons": ["9 of 9 units failed on it."], "version": "1.2"},
    "in_service": {"version": "1.1", "edition": "standard"},
}  # fmt: skip


@pytest.fixture
def family(project: Project) -> Family:
    return Family.objects.create(project=project, name="invoice_fields", title="Invoice fields")


@pytest.fixture
def finished(row: DemoTurn) -> DemoTurn:
    row.state, row.report, row.status, row.phase = STATE, REPORT, "done", "report"
    row.finished_at = timezone.now()
    row.save()
    TurnLine.objects.create(turn=row, phase="train", text="Step 8 of 40, 47 % of its samples pass.")
    return row


def _as_role(project: Project, role: str) -> None:
    Membership.objects.filter(project=project).update(role=role)


def test_the_stages_stand_in_the_order_of_the_loop(page: Client):
    html = page.get("/").content.decode()

    assert re.findall(r'class="name">([^<]+)<', html) == STAGES


def test_an_empty_project_is_told_what_to_do_at_every_stage(page: Client, family: Family):
    html = page.get("/").content.decode()

    section = html.split("How the loop starts")[1].split("</section>")[0]
    sentences = re.findall(r"</td><td>([^<]+)</td>", section)
    assert len(sentences) == len(STAGES)
    assert all(sentence.endswith(".") for sentence in sentences)
    assert "Run the demo turn" in html


def test_a_project_that_has_begun_is_not_told_how_to_begin(page: Client, row: DemoTurn):
    html = page.get("/").content.decode()

    assert "How the loop starts" not in html
    assert "Nothing waits for you." in html


def test_an_alert_is_shown_with_its_detail(page: Client, project: Project):
    alert_raise(project=project, key="sandbox", title="No sandbox: code", detail="Run sysctl.", level="fail")

    html = page.get("/").content.decode()

    assert "No sandbox: code" in html
    assert "Run sysctl." in html


def test_what_needs_a_person_is_not_repeated_as_an_alert(page: Client, project: Project):
    alert_raise(project=project, key="release-rolled-back:2", title="Release 2 of 1.2 was rolled back")

    html = page.get("/").content.decode()

    assert "<h2>Alerts</h2>" not in html
    assert "Release 2 of 1.2 was rolled back" in html.split("Needs a person")[1]


def test_the_last_turn_links_to_what_it_made(page: Client, finished: DemoTurn):
    html = page.get("/").content.decode().replace("\u00a0", " ")

    section = html.split("Last turn of the loop")[1]
    assert "1.1 replaced 1.0." in section
    assert "79 % (74–84), n = 320" in section
    for url in ("/training/runs/5/", "/versions/2/", "/versions/releases/9/", finished.get_absolute_url()):
        assert f'href="{url}"' in section, url


def test_the_loop_page_asks_a_fixed_number_of_queries(
    page: Client, finished: DemoTurn, project: Project, actor: Actor, django_assert_num_queries
):
    base_model_register(project=project, name="pocket", engine_name="pocket", path="/x", by=actor)
    for number in range(3):
        alert_raise(project=project, key=f"k{number}", title=f"Alert {number}")
    page.get("/")

    with django_assert_num_queries(34):
        page.get("/")


def test_a_fragment_is_only_the_live_part(page: Client):
    html = page.get("/", headers={"HX-Request": "true"}).content.decode()

    assert html.lstrip().startswith('<div id="loop"')
    assert "<html" not in html


@pytest.mark.parametrize("role", [Role.VIEWER, Role.LABELLER, Role.ENGINEER])
def test_who_may_not_release_is_not_offered_a_turn(page: Client, project: Project, family: Family, role: str):
    _as_role(project, role)

    html = page.get("/").content.decode()
    answer = page.post("/loop/turns/")

    assert "Run the demo turn" not in html
    assert "Only a release manager or admin may start it." in html
    assert answer.status_code == 403
    assert not DemoTurn.objects.exists()


def test_a_project_without_the_demos_family_is_not_offered_a_turn(page: Client):
    html = page.get("/").content.decode()

    assert "Run the demo turn" not in html
    assert "as in the project “Demo”" in html


def test_starting_a_turn_leads_to_its_page(page: Client):
    answer = page.post("/loop/turns/", {"seed": "12"}, follow=True)

    turn = DemoTurn.objects.get()
    assert turn.seed == 12
    assert answer.redirect_chain[-1][0] == turn.get_absolute_url()
    assert "Step 1 of 12" in answer.content.decode()


@pytest.mark.parametrize("seed", ["x", "-1", str(2**31), "1.5"])
def test_an_impossible_seed_is_refused_with_a_sentence(page: Client, seed: str):
    answer = page.post("/loop/turns/", {"seed": seed}, follow=True)

    assert not DemoTurn.objects.exists()
    assert re.search(r"whole number|greater than or equal|less than or equal", answer.content.decode())


def test_a_second_turn_is_refused_with_a_sentence(page: Client, row: DemoTurn):
    answer = page.post("/loop/turns/", follow=True)

    assert "A demo turn is already running in this project." in answer.content.decode()


def test_a_running_turn_shows_elapsed_time_an_estimate_and_stop(page: Client, row: DemoTurn):
    html = page.get(row.get_absolute_url()).content.decode()

    assert "Step 1 of 12: Prepare engines" in html
    assert re.search(r"about \d+ min", html)
    assert f'action="/loop/turns/{row.pk}/cancel/"' in html
    assert "data-live" in html


def test_an_ended_turn_is_no_longer_live(page: Client, finished: DemoTurn):
    html = page.get(finished.get_absolute_url()).content.decode()

    assert "data-live=" not in html
    assert "/cancel/" not in html


def test_the_page_of_a_turn_shows_report_log_and_seconds(page: Client, finished: DemoTurn):
    html = page.get(finished.get_absolute_url()).content.decode()

    for text in (
        "1.1 replaced 1.0.", "by 28 points (+21 to +35)", "61 units reached the canary.",
        "9 of 9 units failed on it.", "Step 8 of 40, 47 % of its samples pass.", "2 min 5 s", "Base",
        "51 % (43–59)", "79 % (74–84)",
    ):  # fmt: skip
        assert text in html, text


def test_the_page_of_a_turn_links_to_everything_it_made(page: Client, finished: DemoTurn):
    html = page.get(finished.get_absolute_url()).content.decode()

    for url in (
        "/failures/datasets/4/", "/training/runs/5/", "/evals/runs/6/", "/evals/runs/7/", "/evals/runs/8/",
        "/evals/runs/7/compare/?against=6", "/versions/1/", "/versions/2/", "/versions/3/",
        "/versions/releases/9/", "/versions/releases/10/",
    ):  # fmt: skip
        assert f'href="{url}"' in html, url


def test_a_failed_turn_says_why_and_where(page: Client, row: DemoTurn):
    DemoTurn.objects.update(
        status="failed", phase="train", error="Training ended as failed.", finished_at=timezone.now()
    )

    html = page.get(row.get_absolute_url()).content.decode()

    assert "Training ended as failed." in html
    assert "Train an adapter" in html


def test_a_turn_is_stopped_by_a_form(page: Client, row: DemoTurn):
    answer = page.post(f"/loop/turns/{row.pk}/cancel/", follow=True)

    row.refresh_from_db()
    assert row.status == "cancelled"
    assert "The turn was stopped. What it had started goes on where it is." in answer.content.decode()


def test_a_viewer_watches_but_does_not_stop(page: Client, project: Project, row: DemoTurn):
    _as_role(project, Role.VIEWER)

    assert "/cancel/" not in page.get(row.get_absolute_url()).content.decode()
    assert page.post(f"/loop/turns/{row.pk}/cancel/").status_code == 403


def test_turns_of_another_project_are_not_found(page: Client, row: DemoTurn):
    DemoTurn.objects.update(project=Project.objects.create(name="Legal", slug="legal"))

    assert page.get(row.get_absolute_url()).status_code == 404


def test_strangers_are_sent_to_the_login(client: Client, row: DemoTurn):
    assert client.get("/").status_code == 302
    assert client.get(row.get_absolute_url()).status_code == 302
