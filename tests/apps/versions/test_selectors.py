"""Where requests go, and run-scoped tokens."""

import time

import pytest
from django.core import signing

from apps.core.errors import Refused
from apps.versions import services, tokens
from apps.versions.models import Deployment
from apps.versions.selectors import engine_target, external_target, judge_targets
from apps.versions.tokens import MAX_AGE_S, PREFIX, make_run_token, verify_run_token


@pytest.fixture
def endpoint(project, base, actor):
    return services.deployment_register_external(
        project=project, name="rival", base_url="https://h", model="m", api_key="k", by=actor
    )


def test_a_version_is_reached_at_the_engine_of_its_edition(candidate):
    Deployment.objects.filter(edition_kind="high_speed").update(base_url="http://fast:1")

    target = engine_target(candidate, "high_speed")

    assert (target.base_url, target.model, target.protocol) == ("http://fast:1", "run1-v1", "tokens")
    assert target.adapter_digest == candidate.adapter_digest


def test_a_healthy_engine_is_preferred(candidate, project):
    first = Deployment.objects.get(edition_kind="standard")
    first.healthy = False
    first.save()
    Deployment.objects.create(
        project=project,
        name="spare",
        kind="engine",
        edition_kind="standard",
        base_url="http://spare",
        healthy=True,
    )

    assert engine_target(candidate, "standard").base_url == "http://spare"


def test_no_engine_is_said(candidate):
    Deployment.objects.all().delete()

    with pytest.raises(Refused, match="No engine serves the high-speed edition"):
        engine_target(candidate, "high_speed")


def test_an_external_endpoint_is_reached_through_our_gateway_without_its_key(endpoint, settings):
    target = external_target(endpoint, "evals.run:3")

    claims = verify_run_token(target.token)
    assert (target.base_url, target.model, target.protocol) == (settings.BASE_URL, "endpoint:rival", "chat")
    assert (claims.project_id, claims.deployment_id, claims.scope) == (
        endpoint.project_id,
        endpoint.pk,
        "evals.run:3",
    )


def test_a_retired_endpoint_is_no_target(endpoint, actor):
    services.deployment_retire(deployment=endpoint, by=actor)
    endpoint.refresh_from_db()

    with pytest.raises(Refused):
        external_target(endpoint, "evals.run:3")


def test_a_projects_endpoints_are_its_judges_under_their_names(endpoint, actor):
    judges = judge_targets(endpoint.project, "evals.run:3")

    assert {name: target.model for name, target in judges.items()} == {
        "": "endpoint:rival",
        "rival": "endpoint:rival",
    }
    services.deployment_retire(deployment=endpoint, by=actor)
    assert judge_targets(endpoint.project, "evals.run:3") == {}


def test_forged_old_and_foreign_tokens_are_refused():
    good = make_run_token(project_id=1, deployment_id=2, scope="evals.run:3")

    assert verify_run_token(good) is not None
    assert verify_run_token(good[:-1] + ("A" if good[-1] != "A" else "B")) is None
    assert verify_run_token(good, max_age_s=-1) is None
    assert verify_run_token("fw_" + good) is None
    assert verify_run_token("") is None
    assert (
        verify_run_token(
            PREFIX + signing.dumps({"p": 1, "d": 2, "s": "", "u": "else"}, salt="flywheel.run-token")
        )
        is None
    )
    assert verify_run_token(PREFIX + signing.dumps({"p": 1, "d": 2, "s": "", "u": "endpoint"})) is None


def test_a_token_that_was_seen_before_expires_all_the_same(monkeypatch):
    token = make_run_token(project_id=1, deployment_id=2, scope="evals.run:3")
    assert verify_run_token(token) is not None
    later = time.time() + MAX_AGE_S + 2

    monkeypatch.setattr(time, "time", lambda: later)

    assert verify_run_token(token) is None


def test_a_token_that_was_seen_before_is_worth_nothing_under_another_secret_key(settings):
    token = make_run_token(project_id=1, deployment_id=2, scope="evals.run:3")
    assert verify_run_token(token) is not None

    settings.SECRET_KEY = "another key, of fifty characters and more, for this one test"

    assert verify_run_token(token) is None


def test_only_so_many_tokens_are_remembered():
    for run in range(300):
        verify_run_token(make_run_token(project_id=1, deployment_id=2, scope=f"evals.run:{run}"))

    assert len(tokens._known) <= 256
