"""Suites drawn from installed packs."""

import pytest

from apps.core.errors import Refused
from apps.core.models import Alert, AuditEvent
from apps.core.permissions import Actor
from apps.evals import services, tasks
from apps.evals.models import Suite
from packs.registry import pack_of_family
from tests.apps.evals.conftest import text

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


@pytest.fixture
def draw(project, actor: Actor, sent_messages, django_capture_on_commit_callbacks):
    """Ask for a suite and let the background do its part."""

    def build(**changes):
        fields = {"name": "Pictures", "families": ["chart_value", "drawing_count"], "per_family": 3}
        with django_capture_on_commit_callbacks(execute=True):
            suite = services.pack_suite_create(project=project, by=actor, **{**fields, **changes})
        for task, args, queue in list(sent_messages):
            if task == "evals.pack_suite_draw":
                assert queue == "web"
                tasks.pack_suite_draw(*args)
        return suite

    return build


def test_the_cases_are_tasks_that_the_pack_holds_in_reserve(draw):
    suite = draw()

    version = suite.versions.get()
    reserved = pack_of_family("chart_value").generate("chart_value", seed=0, count=3, reserved=True)
    assert version.count == 6
    assert {case.key for case in version.cases.filter(family="chart_value")} == {task.id for task in reserved}
    assert version.note == "chart_value, drawing_count, seed 0"
    assert AuditEvent.objects.filter(action="suite.draw").exists()


def test_drawing_the_same_again_keeps_the_version_and_another_seed_makes_the_next(draw):
    suite = draw()

    assert draw() == suite
    assert suite.versions.count() == 1
    draw(seed=1)
    assert suite.versions.count() == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"families": []}, "Choose 1 to 200 families"),
        ({"families": ["nothing_of_the_kind"]}, "No installed pack brings"),
        ({"per_family": 0}, "1 to 500 tasks"),
        ({"families": [f"f{n}" for n in range(150)], "per_family": 400}, "60,000 cases"),
        ({"name": "  "}, "Give the suite a name"),
    ],
)
def test_what_cannot_be_drawn_is_refused_and_leaves_nothing(draw, changes, words):
    with pytest.raises(Refused, match=words):
        draw(**changes)

    assert not Suite.objects.exists()


def test_a_pack_that_fails_is_an_alert_and_makes_no_version(draw, monkeypatch):
    def broken(*args: object, **fields: object) -> None:
        raise ValueError("out of prompts")

    monkeypatch.setattr("packs.seeded.SeededPack.generate", broken)
    monkeypatch.setattr(
        "apps.evals.services.pack_suites._pack", lambda family: type("P", (), {"generate": broken})
    )

    suite = draw()

    assert not suite.versions.exists()
    assert "ValueError: out of prompts" in Alert.objects.get().detail


def test_the_page_draws_a_suite_and_the_pack_page_leads_to_it(page, project):
    asked = page.get("/evals/suites/from-packs/?family=screen_point")

    assert '<option value="screen_point" selected>' in asked.content.decode()
    answer = page.post(
        "/evals/suites/from-packs/",
        {"name": "Buttons", "families": ["screen_point"], "per_family": "2", "seed": "0"},
    )
    assert answer.url == Suite.objects.get().get_absolute_url()
    assert "Make a suite" in text(page.get("/training/packs/screen_point/"))


def test_a_viewer_may_not_draw(client, viewer, project):
    client.force_login(viewer.user)

    assert client.get("/evals/suites/from-packs/").status_code == 403


def test_the_api_draws_a_suite(api):
    body = {"name": "Buttons", "families": ["screen_point"], "per_family": 2}

    answer = api.post("/api/v1/pack-suites", body, content_type="application/json")

    assert answer.status_code == 202, answer.content
    assert answer.json()["name"] == "Buttons"
