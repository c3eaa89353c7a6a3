"""Rounds of a probe: reference, signals, alerts, what could not be measured, what was meant."""

from datetime import timedelta
from decimal import Decimal

import httpx
import pytest
from django.utils import timezone

from apps.core.models import Alert, Event
from apps.evals import selectors, services
from apps.evals.asking import Listener
from apps.evals.models import Probe, ProbeRound
from apps.evals.panels import waiting_rows
from apps.evals.probe_prompts import DEFAULT_PROMPTS
from apps.evals.services import probe_rounds
from apps.versions import services as versions
from apps.versions.models import Deployment, ModelVersion
from tests.apps.evals.conftest import first_tokens

pytestmark = pytest.mark.django_db


@pytest.fixture
def probe(fake_model, project, version, actor):
    """Watches 1.0 standard, its reference taken."""
    made = services.probe_create(project=project, version=version, by=actor)
    services.probe_round(probe=made)
    made.refresh_from_db()
    return made


@pytest.fixture
def external(fake_model, project, endpoint, actor):
    """Watches an external endpoint, its reference taken."""
    Deployment.objects.filter(pk=endpoint.pk).update(base_url=fake_model.url + "/v1")
    endpoint.refresh_from_db()
    made = services.probe_create(project=project, deployment=endpoint, by=actor)
    services.probe_round(probe=made)
    return fresh(made)


def fresh(probe):
    return Probe.objects.select_related("deployment", "version__base", "project").get(pk=probe.pk)


def ask(probe):
    return services.probe_round(probe=fresh(probe))


def test_the_first_round_takes_the_reference_at_temperature_zero(probe, fake_model):
    row = probe.rounds.get()

    assert row.verdict == "reference"
    assert {body["temperature"] for body in fake_model.asked} == {0}
    assert {body["model"] for body in fake_model.asked} == {"pocket"}
    assert probe.reference["identity"]["models"] == {"big-1": 60}
    assert len(probe.reference["logprobs"]["prompts"]) == 8
    assert row.requests == len(fake_model.asked)


def test_an_unchanged_model_stays_unchanged_in_44_requests(probe, fake_model):
    before = len(fake_model.asked)

    row = ask(probe)

    assert row.verdict == "unchanged"
    assert row.signals["answers"]["value"] == row.signals["answers"]["n"] == len(DEFAULT_PROMPTS)
    assert row.signals["logprobs"]["value"] == pytest.approx(0.0, abs=1e-6)
    assert row.requests == len(fake_model.asked) - before == 44
    assert row.completion_tokens == 2 * 44
    assert row.cost_usd is None
    assert Event.objects.filter(topic=probe.lineage_key, kind="ProbeRoundFinished").count() == 2
    assert not Alert.objects.exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda fake: setattr(fake, "model", "big-2"), "calls itself “big-2”"),
        (lambda fake: setattr(fake, "fingerprint", "fp-2"), "fingerprint"),
        (lambda fake: setattr(fake, "answer", lambda prompt: "no"), "0 of 20 answers equal"),
        (
            lambda fake: setattr(fake, "logprobs", lambda prompt: first_tokens(prompt, 0.1)),
            "Log-probabilities of first tokens moved",
        ),
    ],
)
def test_a_change_flags_once_and_alarms_the_second_time(probe, fake_model, project, change, words):
    change(fake_model)

    first = ask(probe)
    assert first.verdict == "flagged"
    assert words in first.reasons[0]
    assert not Alert.objects.exists()

    ask(probe)
    alert = Alert.objects.get(key=f"probe:{probe.pk}", resolved_at=None)
    assert words in alert.detail
    assert [row["url"] for row in waiting_rows(project)] == [probe.get_absolute_url()]


def test_an_unchanged_round_between_two_flags_is_no_alarm(probe, fake_model):
    for name in ("big-2", "big-1", "big-2"):
        fake_model.model = name
        ask(probe)

    assert not Alert.objects.exists()


def test_a_round_that_could_not_measure_neither_alarms_nor_clears(probe, fake_model):
    fake_model.model = "big-2"
    ask(probe)
    fake_model.status = 500

    row = ask(probe)
    assert row.verdict == "unmeasured"
    assert "status 500" in row.reasons[-1]
    assert not Alert.objects.exists()

    fake_model.status = 200
    ask(probe)
    assert Alert.objects.filter(resolved_at=None).count() == 1


def test_a_partial_round_neither_alarms_nor_clears(probe, fake_model):
    fake_model.model = "big-2"
    ask(probe)
    fake_model.model, kept = "big-1", fake_model.logprobs
    fake_model.logprobs = None

    row = ask(probe)
    assert row.verdict == "partial"
    assert "Only 0 of 24 requests brought log-probabilities." in row.reasons
    assert not Alert.objects.exists()

    fake_model.model, fake_model.logprobs = "big-2", kept
    ask(probe)
    assert Alert.objects.filter(resolved_at=None).count() == 1


def test_three_rounds_without_a_measurement_raise_a_warning_that_the_next_one_clears(probe, fake_model):
    fake_model.status = 500
    for _ in range(2):
        ask(probe)
    assert not Alert.objects.exists()

    ask(probe)
    assert Alert.objects.get(resolved_at=None).title == "1.0 standard cannot be measured"

    fake_model.status = 200
    ask(probe)
    assert not Alert.objects.filter(resolved_at=None).exists()


def test_a_dead_target_is_given_up_after_two_prompts(probe, fake_model):
    before = len(fake_model.keys)
    fake_model.status = 500

    row = ask(probe)

    assert len(fake_model.keys) == before + 2
    assert row.requests == 2
    assert fresh(probe).busy_until is None


def test_no_reference_is_taken_from_a_target_that_does_not_answer(fake_model, project, version, actor):
    fake_model.status = 500
    made = services.probe_create(project=project, version=version, by=actor)

    row = services.probe_round(probe=made)

    made.refresh_from_db()
    assert row.verdict == "unmeasured"
    assert row.reasons[0] == "No complete reference yet."
    assert made.reference is None


def test_an_endpoint_is_asked_directly_with_its_own_key(external, fake_model):
    assert set(fake_model.keys) == {"Bearer sk-1"}
    assert {row["model"] for row in fake_model.asked} == {"big-1"}


def test_an_endpoint_whose_name_leads_to_a_metadata_service_is_not_asked(external, monkeypatch):
    found = [(2, 1, 6, "", ("169.254.169.254", 80))]
    monkeypatch.setattr("apps.versions.addresses.socket.getaddrinfo", lambda *a, **k: found)

    row = ask(external)

    assert row.verdict == "unmeasured"
    assert "no model may be served from" in row.reasons[-1]


def test_a_round_costs_what_the_endpoint_charges(external):
    Deployment.objects.filter(pk=external.deployment_id).update(
        input_usd_per_mtok=Decimal("3"), output_usd_per_mtok=Decimal("15")
    )

    row = ask(external)

    row.refresh_from_db()
    assert row.cost_usd == (3 * Decimal(row.prompt_tokens) + 15 * 88) / 1_000_000


def test_an_answer_that_is_not_like_a_model_measures_nothing(probe, monkeypatch):
    monkeypatch.setattr(
        Listener, "_received", lambda *a: httpx.Response(200, json={"choices": [{"message": None}]})
    )

    assert ask(probe).verdict == "unmeasured"


def test_a_new_reference_closes_the_alert_and_starts_again(probe, fake_model, actor):
    fake_model.model = "big-2"
    ask(probe)
    ask(probe)

    services.probe_reference_renew(probe=probe, by=actor)

    assert not Alert.objects.filter(resolved_at=None).exists()
    assert ask(probe).verdict == "reference"
    assert ask(probe).verdict == "unchanged"
    assert not Alert.objects.filter(resolved_at=None).exists()


def test_a_round_whose_reference_was_renewed_meanwhile_judges_nothing(probe, actor):
    stale = fresh(probe)
    services.probe_reference_renew(probe=probe, by=actor)

    row = services.probe_round(probe=stale)

    assert row.verdict == "unmeasured"


def test_two_rounds_of_one_probe_are_not_asked_at_the_same_time(probe, fake_model):
    Probe.objects.update(busy_until=timezone.now() + timedelta(minutes=1))
    before = len(fake_model.asked)

    assert ask(probe) is None

    assert len(fake_model.asked) == before


def test_a_round_whose_worker_died_does_not_block_the_next(probe):
    Probe.objects.update(busy_until=timezone.now() - timedelta(seconds=1))

    assert ask(probe).verdict == "unchanged"


def test_too_many_rounds_at_once_wait_for_the_next_tick(probe, project, endpoint, monkeypatch):
    monkeypatch.setattr(probe_rounds, "MAX_AT_ONCE", 1)
    Probe.objects.create(
        project=project,
        deployment=endpoint,
        model="other",
        prompts=[],
        busy_until=timezone.now() + timedelta(minutes=1),
    )

    assert ask(probe) is None

    assert fresh(probe).next_at <= timezone.now()


def test_a_promotion_renews_the_reference_of_a_probe_that_follows(fake_model, base, project, version, actor):
    version.state = ModelVersion.State.IN_SERVICE
    version.save()
    made = services.probe_create(project=project, follows=True, by=actor)
    ask(made)
    fake_model.answer = lambda prompt: "another model"
    ask(made)
    ask(made)
    assert Alert.objects.filter(resolved_at=None).count() == 1
    ModelVersion.objects.filter(pk=version.pk).update(state=ModelVersion.State.REGISTERED)
    newer = next_version(base, actor)

    row = ask(made)

    assert row.verdict == "reference"
    assert row.reasons[0] == "1.1 went into service in place of 1.0."
    assert fresh(made).version == newer
    assert {body["model"] for body in fake_model.asked[-44:]} == {newer.engine_model}
    assert not Alert.objects.filter(resolved_at=None).exists()
    assert ask(made).verdict == "unchanged"


def test_a_probe_of_one_version_does_not_follow_a_promotion(probe, base, version, actor):
    ModelVersion.objects.filter(pk=version.pk).update(state=ModelVersion.State.REGISTERED)
    next_version(base, actor)

    assert ask(probe).verdict == "unchanged"
    assert fresh(probe).version == version


def test_an_endpoint_changed_here_gets_a_new_reference_and_no_flag(external, fake_model, actor):
    versions.deployment_change_external(
        deployment=external.deployment,
        name="frontier",
        base_url=fake_model.url,
        model="big-9",
        api_key="sk-1",
        by=actor,
    )
    fake_model.model = "big-9"

    row = ask(external)

    assert row.verdict == "reference"
    assert row.reasons[0] == "The endpoint's address or model was changed here."
    assert fresh(external).model == "big-9"
    assert ask(external).verdict == "unchanged"


def test_a_retired_endpoint_is_unmeasured(external, actor):
    versions.deployment_retire(deployment=external.deployment, by=actor)

    row = ask(external)

    assert row.verdict == "unmeasured"
    assert row.reasons == ["frontier is not an external endpoint in use."]


def test_an_engine_that_is_gone_is_unmeasured_and_says_so(probe):
    Deployment.objects.update(retired_at=timezone.now())

    row = ask(probe)

    assert row.verdict == "unmeasured"
    assert row.reasons == ["No engine serves the standard edition."]


def test_what_was_changed_here_is_told_beside_a_flag(external, fake_model, actor):
    versions.deployment_test(deployment=external.deployment, by=actor)
    fake_model.model = "big-2"
    row = ask(external)

    assert [event.action for event in selectors.probe_changes(row)] == ["endpoint.test"]


def test_trailing_thresholds_start_again_with_a_new_reference(probe, actor):
    ProbeRound.objects.create(
        probe=probe,
        verdict="unchanged",
        signals={"logprobs": {"value": 0.2, "detail": {}}, "border": None},
    )
    assert probe_rounds._trails(probe)["logprobs"] == [0.2]

    services.probe_reference_renew(probe=probe, by=actor)
    ask(probe)

    assert probe_rounds._trails(probe)["logprobs"] == []


def next_version(base, actor):
    """1.1, put into service."""
    newer = ModelVersion.objects.create(
        project=base.project,
        base=base,
        major=1,
        minor=1,
        number="1.1",
        adapter_name="run-v1-a1",
        adapter_digest="a" * 64,
        state=ModelVersion.State.IN_SERVICE,
    )
    Deployment.objects.engines().update(loaded=["pocket", newer.engine_model])
    return newer
