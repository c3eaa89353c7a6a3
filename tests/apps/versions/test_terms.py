"""The terms of an endpoint: set by page and API, audited, checked, and carried to the workers."""

import json
import socket
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.core.errors import Refused
from apps.core.models import AuditEvent
from apps.versions import services
from apps.versions.models import Deployment
from apps.versions.selectors import engine_target, external_target
from apps.versions.terms import Terms, limits_lines, price_text, prices_lines

GIVEN = Terms(8, 60, 100_000, 30, 300, 3, Decimal("2.5"), Decimal("10"))


@pytest.fixture
def endpoint(project, base, actor):
    return services.deployment_register_external(
        project=project, name="rival", base_url="https://h/v1", model="m", api_key="k", terms=GIVEN, by=actor
    )


def change(endpoint, actor, **terms: Any) -> Deployment:
    values = {**GIVEN.as_dict(), **terms}
    return services.deployment_change_external(
        deployment=endpoint, name="rival", base_url="https://h/v1", model="m", terms=Terms(**values), by=actor
    )


def test_an_endpoint_without_terms_has_the_usual_ones(project, base, actor):
    row = services.deployment_register_external(
        project=project, name="x", base_url="https://h", model="m", api_key="", by=actor
    )

    assert Terms.of(row) == Terms(16, None, None, 60, 600, 5, None, None)


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        ({"max_concurrency": 0}, "Requests at once: enter a number from 1 to 1,024"),
        ({"max_concurrency": 5000}, "from 1 to 1,024"),
        ({"requests_per_minute": 0}, "Requests a minute"),
        ({"tokens_per_minute": -1}, "Tokens a minute"),
        ({"max_attempts": 21}, "Attempts: enter a number from 1 to 20"),
        ({"timeout_s": 0}, "Seconds for one attempt"),
        ({"deadline_s": 10**9}, "Seconds for all attempts"),
        ({"timeout_s": 60, "deadline_s": 59}, "at least as long as one"),
        ({"input_usd_per_mtok": Decimal("-0.01")}, "The price of input tokens"),
        ({"output_usd_per_mtok": Decimal("NaN")}, "The price of output tokens"),
        ({"output_usd_per_mtok": Decimal("Infinity")}, "The price of output tokens"),
        ({"output_usd_per_mtok": Decimal("1e40")}, "from 0 to 100,000"),
        ({"input_usd_per_mtok": Decimal("0.0000001")}, "at most 6 decimal places"),
    ],
)
def test_terms_that_let_nothing_through_are_refused(endpoint, actor, terms, sentence):
    with pytest.raises(Refused, match=sentence):
        change(endpoint, actor, **terms)

    endpoint.refresh_from_db()
    assert Terms.of(endpoint) == GIVEN


def test_the_database_holds_no_limit_that_lets_nothing_through(endpoint):
    for broken in ({"max_concurrency": 0}, {"requests_per_minute": 0}, {"deadline_s": 1}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Deployment.objects.filter(pk=endpoint.pk).update(**broken)


def test_a_change_says_in_the_audit_trail_what_changed(endpoint, actor):
    change(endpoint, actor, requests_per_minute=None, output_usd_per_mtok=Decimal("12.25"))

    detail = AuditEvent.objects.filter(action="endpoint.change").latest("pk").detail
    assert {name: detail[name] for name in detail if name in Terms.names()} == {
        "requests_per_minute": None,
        "output_usd_per_mtok": "12.25",
    }


def test_changed_terms_keep_the_last_test(endpoint, actor):
    Deployment.objects.filter(pk=endpoint.pk).update(healthy=True)

    assert change(endpoint, actor, max_attempts=4).healthy is True


def test_terms_travel_to_the_workers(endpoint):
    target = external_target(endpoint, "evals.run:3")

    assert (target.max_concurrency, target.requests_per_minute, target.tokens_per_minute) == (8, 60, 100_000)
    assert (target.timeout_s, target.deadline_s, target.max_attempts) == (30, 300, 3)


def test_an_engine_of_ours_has_no_terms(candidate):
    target = engine_target(candidate, "standard")

    assert (target.max_attempts, target.deadline_s, target.max_concurrency) == (None, None, None)


def test_what_answers_differently_has_another_identity(endpoint, candidate, control):
    def told(**changes: Any) -> str:
        for name, value in changes.items():
            setattr(endpoint, name, value)
        return external_target(endpoint, "evals.run:3").identity

    identities = [told(), told(model="m2"), told(base_url="https://other"), told(pk=endpoint.pk + 1)]
    identities += [engine_target(row, "standard").identity for row in (candidate, control)]
    identities.append(engine_target(candidate, "high_speed").identity)

    assert len(set(identities)) == len(identities)
    assert told() == told(max_attempts=1, api_key=b"x")


def test_terms_are_set_and_shown_on_the_pages(page, base):
    form = {
        "name": "rival", "base_url": "https://h/v1", "model": "m",
        "requests_per_minute": "60", "input_usd_per_mtok": "0.15",
    }  # fmt: skip
    page.post(reverse("versions:endpoint_create"), form)
    row = Deployment.objects.get(name="rival")

    listed = page.get(reverse("versions:endpoints")).content.decode()
    edit = page.get(reverse("versions:endpoint_edit", args=[row.pk])).content.decode()

    assert Terms.of(row) == Terms(requests_per_minute=60, input_usd_per_mtok=Decimal("0.15"))
    assert "16 at once" in listed
    assert "60 requests a minute" in listed
    assert "$0.15 in" in listed
    assert 'value="0.15"' in edit
    page.post(reverse("versions:endpoint_edit", args=[row.pk]), form | {"requests_per_minute": ""})
    row.refresh_from_db()
    assert row.requests_per_minute is None


def test_a_wrong_limit_is_said_on_the_page_and_what_was_typed_stays(page, base):
    form = {"name": "rival", "base_url": "https://h/v1", "model": "m", "max_concurrency": "9999"}

    answer = page.post(reverse("versions:endpoint_create"), form)

    assert answer.status_code == 400
    assert "Requests at once: enter a number from 1 to 1,024." in answer.content.decode()
    assert 'value="9999"' in answer.content.decode()


def test_the_list_of_endpoints_asks_as_often_for_one_as_for_twenty(
    page, project, base, actor, django_assert_num_queries
):
    def register(name: str) -> None:
        services.deployment_register_external(
            project=project, name=name, base_url="https://h", model="m", api_key="", terms=GIVEN, by=actor
        )

    register("one")
    page.get(reverse("versions:endpoints"))
    with CaptureQueriesContext(connection) as first:
        page.get(reverse("versions:endpoints"))
    for number in range(19):
        register(f"more-{number}")

    with django_assert_num_queries(len(first)):
        page.get(reverse("versions:endpoints"))


def send(api, method: str, path: str, body: Any) -> Any:
    return getattr(api, method)(f"/api/v1{path}", json.dumps(body), content_type="application/json")


def test_terms_are_set_and_changed_over_the_api(api, base):
    body = {"name": "rival", "base_url": "https://h", "model": "m", "tokens_per_minute": 5000}
    made = send(api, "post", "/deployments", body | {"output_usd_per_mtok": "0.6"})
    path = f"/deployments/{made.json()['id']}"

    changed = send(api, "patch", path, {"tokens_per_minute": None, "max_attempts": 2})

    assert made.status_code == 201
    assert (made.json()["tokens_per_minute"], made.json()["max_concurrency"]) == (5000, 16)
    assert (changed.json()["tokens_per_minute"], changed.json()["max_attempts"]) == (None, 2)
    assert Decimal(changed.json()["output_usd_per_mtok"]) == Decimal("0.6")


@pytest.mark.parametrize("body", [{"max_attempts": 0}, {"timeout_s": 700}, {"input_usd_per_mtok": "-1"}])
def test_wrong_terms_over_the_api_are_a_sentence(api, endpoint, body):
    answer = send(api, "patch", f"/deployments/{endpoint.pk}", body)

    assert answer.status_code == 400
    assert answer.json()["error"]["message"].endswith(".")


def test_a_name_that_leads_to_a_clouds_credentials_is_not_tested(endpoint, actor, monkeypatch):
    """It was harmless when it was entered."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", 443))]
    monkeypatch.setattr("socket.getaddrinfo", lambda *args, **options: found)

    result = services.deployment_test(deployment=endpoint, by=actor)

    assert (result.ok, result.sentence) == (
        False,
        "Its name leads to an address that no model may be served from.",
    )


@pytest.mark.parametrize("address", ["http://127.0.0.1:8011", "http://10.1.2.3/v1", "http://[::1]/v1"])
def test_an_installation_may_forbid_private_networks(project, base, actor, settings, address):
    settings.PRIVATE_ENDPOINTS = False

    with pytest.raises(Refused, match="not one that a model"):
        services.deployment_register_external(
            project=project, name="x", base_url=address, model="m", api_key="", by=actor
        )


@pytest.mark.parametrize(
    ("price", "text"), [("2.5", "2.50"), ("10", "10.00"), ("0.000001", "0.000001"), ("0", "0.00")]
)
def test_prices_are_written_as_people_write_them(price, text):
    assert price_text(Decimal(price)) == text


def test_limits_and_prices_in_words():
    assert limits_lines(GIVEN) == ["8 at once", "60 requests a minute", "100,000 tokens a minute"]
    assert limits_lines(Terms()) == ["16 at once"]
    assert prices_lines(GIVEN) == ["$2.50 in", "$10.00 out"]
    assert prices_lines(Terms()) == []
