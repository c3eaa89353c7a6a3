"""Pages and API of probes."""

from datetime import timedelta
from importlib import import_module

import numpy as np
import pytest
from django.urls import reverse
from django.utils import timezone

from apps.core.models import AuditEvent
from apps.core.services import api_key_create
from apps.evals import services
from apps.evals.models import Probe, ProbeRound
from apps.evals.probe_charts import probe_figure, probe_figure_label
from apps.versions.models import ModelVersion
from domain.drift import Answer, Round, read_round
from tests.apps.evals.conftest import text

pytestmark = pytest.mark.django_db


@pytest.fixture
def probe(fake_model, project, version, actor):
    """Watches 1.0 standard, its reference taken and one calm round asked."""
    made = services.probe_create(project=project, version=version, by=actor)
    for _ in range(2):
        services.probe_round(probe=fresh(made))
    return fresh(made)


def fresh(probe):
    return Probe.objects.select_related("deployment", "version__base", "project").get(pk=probe.pk)


def test_the_page_shows_signals_thresholds_and_what_a_round_took(page, probe):
    body = text(page.get(probe.get_absolute_url()))

    assert "44 requests: 20 short answers, and first tokens of 8 prompts three times each" in body
    assert "shift of log-probabilities" in body
    assert "20 of 20" in body
    assert "0.0000 nats" in body


def test_the_page_and_the_api_say_what_of_the_false_alarms_is_measured_and_what_a_bound(page, api, probe):
    body = text(page.get(probe.get_absolute_url()))
    told = api.get(f"/api/v1/probes/{probe.pk}").json()

    assert told["mode"] == "logprobs"
    assert told["false_alarms"][0].startswith("Log-probabilities: measured, no proof.")
    assert told["false_alarms"][1].startswith("Short answers: a bound.")
    assert all(sentence in body for sentence in (*told["false_alarms"], told["blind_to"]))
    assert "at most one false alert" not in body


def test_a_probe_without_a_reference_claims_nothing(api, probe):
    Probe.objects.update(reference=None)

    told = api.get(f"/api/v1/probes/{probe.pk}").json()

    assert (told["mode"], told["false_alarms"], told["blind_to"]) == (None, [], "")


def test_an_alarm_names_what_was_changed_here(page, probe, fake_model, actor):
    AuditEvent.objects.create(project=probe.project, actor="ada", action="engines.register", reason="moved")
    fake_model.model = "big-2"
    for _ in range(2):
        services.probe_round(probe=fresh(probe))

    body = text(page.get(probe.get_absolute_url()))

    assert "Two measured rounds in a row differ" in body
    assert "engines.register" in body
    assert "moved" in body


def test_a_round_flagged_by_its_models_name_names_no_tokens(page, probe, fake_model):
    fake_model.model = "big-2"
    services.probe_round(probe=fresh(probe))
    newest = probe.rounds.order_by("-pk")[0]

    body = page.get(probe.get_absolute_url()).content.decode()

    assert (newest.verdict, newest.signals["logprobs"]["state"]) == ("flagged", "unchanged")
    assert " → " not in body


def test_an_alarm_without_a_change_here_says_so(page, probe, fake_model):
    fake_model.model = "big-2"
    for _ in range(2):
        services.probe_round(probe=fresh(probe))

    assert "made where the model is served" in text(page.get(probe.get_absolute_url()))


def test_a_round_that_is_being_asked_is_told(page, probe):
    Probe.objects.update(busy_until=timezone.now() + timedelta(minutes=1))

    assert "A round is being asked now." in text(page.get(probe.get_absolute_url()))


def test_the_interval_is_changed_on_the_page(page, probe):
    page.post(reverse("evals:probe_interval", args=[probe.pk]), {"hours": "2"})

    assert fresh(probe).every_s == 7200


@pytest.mark.parametrize("hours", ["", "nan", "-1", "1000", "x"])
def test_an_interval_that_is_none_is_refused_on_the_page(page, probe, hours):
    answer = page.post(reverse("evals:probe_interval", args=[probe.pk]), {"hours": hours}, follow=True)

    assert "Give the hours between two rounds" in text(answer)
    assert fresh(probe).every_s == 21_600


def test_a_probe_of_what_is_in_service_is_made_on_the_page(page, fake_model, project, version):
    ModelVersion.objects.filter(pk=version.pk).update(state=ModelVersion.State.IN_SERVICE)

    page.post(reverse("evals:probe_create"), {"target": "service:standard", "hours": 6, "prompts": ""})

    made = Probe.objects.get()
    assert (made.follows, made.version, made.title) == (True, version, "Standard edition in service")


def test_old_rounds_and_empty_ones_are_shown(page, probe):
    ProbeRound.objects.create(probe=probe, verdict="unmeasured")
    ProbeRound.objects.create(
        probe=probe,
        verdict="unchanged",
        signals={
            "answers": {
                "state": "unchanged",
                "value": 19,
                "threshold": None,
                "n": 20,
                "reasons": [],
                "detail": {"p": None},
            }
        },
    )

    assert "19 of 20" in text(page.get(probe.get_absolute_url()))


def test_a_figure_of_nothing_is_none():
    assert probe_figure([]) is None


def test_a_figure_says_its_newest_values_in_words(probe):
    label = probe_figure_label(list(probe.rounds.order_by("pk")))

    assert label.startswith("Signals over 2 rounds. Newest: shift of log-probabilities: ")
    assert "answers equal to the reference's: 20 (at least 16 is unchanged), unchanged" in label


def test_the_list_takes_the_same_queries_for_many_probes(
    page, probe, project, endpoint, django_assert_max_num_queries
):
    def count():
        with django_assert_max_num_queries(20) as seen:
            page.get(reverse("evals:probes"))
        return len(seen)

    count()
    before = count()
    for number in range(8):
        made = Probe.objects.create(project=project, deployment=endpoint, model=f"m{number}", prompts=[])
        ProbeRound.objects.create(probe=made, verdict="flagged")
        ProbeRound.objects.create(probe=made, verdict="flagged")

    assert count() == before
    assert text(page.get(reverse("evals:probes"))).count("changed") >= 8


def test_the_api_reads_and_changes_a_probe(api, probe):
    url = f"/api/v1/probes/{probe.pk}"

    assert api.get(url).json()["requests_per_round"] == 44
    changed = api.patch(url, {"enabled": False, "every_s": 600}, content_type="application/json").json()
    assert (changed["enabled"], changed["every_s"]) == (False, 600)
    assert api.patch(url, {"every_s": 1}, content_type="application/json").status_code == 400
    assert api.get(f"{url}/reference").json()["reference"]["format"] == 2
    row = api.get(f"{url}/rounds").json()[0]
    assert (row["requests"], row["signals"]["logprobs"]["state"]) == (44, "unchanged")


def test_the_api_says_which_probes_alarm(api, probe):
    for _ in range(2):
        ProbeRound.objects.create(probe=probe, verdict="flagged")

    assert [row["alarming"] for row in api.get("/api/v1/probes").json()] == [True]


def test_the_api_makes_a_probe_of_what_is_in_service(api, fake_model, version):
    ModelVersion.objects.filter(pk=version.pk).update(state=ModelVersion.State.IN_SERVICE)

    made = api.post("/api/v1/probes", {"follows": True}, content_type="application/json")

    assert made.status_code == 201
    assert made.json()["follows"] is True


@pytest.mark.parametrize("path", ["", "/reference", "/rounds"])
def test_a_probe_of_another_project_is_not_found(api, probe, path):
    from apps.core.models import Project

    Probe.objects.update(project=Project.objects.create(name="Other", slug="other"))

    assert api.get(f"/api/v1/probes/{probe.pk}{path}").status_code == 404


def test_references_and_rounds_of_the_two_old_signals_are_carried_over():
    migration = import_module("apps.evals.migrations.0004_probes")
    old = {
        "answers": [f"same {n}" for n in range(20)],
        "prompt_tokens": [7] * 20,
        "models": ["m"],
        "fingerprints": [""],
        "match_rate": 41 / 42,
    }
    answers = [Answer(f"same {n}", "m", "", 7) for n in range(20)]

    reference = migration.new_reference(old, [f"p{n}" for n in range(20)])
    signals = migration.new_signals({"answered": 20, "matched": 19, "p": 0.4}, "unchanged")

    rng = np.random.default_rng(1)
    assert reference["answers"]["matched"] == reference["answers"]["repeats"] == 40
    assert read_round(reference, Round(answers), {}, rng).verdict == "unchanged"
    assert read_round(reference, Round(answers[::-1]), {}, rng).verdict == "flagged"
    assert (signals["answers"]["state"], signals["answers"]["value"]) == ("unchanged", 19)
    assert migration.new_signals({}, "unmeasured") == {}


def test_changing_a_probe_needs_the_scope(client, probe, actor):
    made = api_key_create(project=actor.project, name="reader", scopes=["read"], by=actor)
    client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {made.secret}"

    answer = client.patch(f"/api/v1/probes/{probe.pk}", {"enabled": False}, content_type="application/json")

    assert answer.status_code == 403
    assert fresh(probe).enabled


def test_a_viewer_cannot_change_the_interval(client, probe, viewer):
    client.force_login(viewer.user)

    assert client.post(reverse("evals:probe_interval", args=[probe.pk]), {"hours": "2"}).status_code == 403
