"""External endpoints: keys in, never out; addresses that are not ours to ask are refused."""

import contextlib
import json
import time

import pytest

from apps.core.errors import Conflict, Refused
from apps.core.models import AuditEvent
from apps.versions import services
from apps.versions.models import Deployment
from apps.versions.selectors import deployment_key, routing_current
from apps.versions.services import deployments
from tests.endpoints import Handler, Served

SECRET = "sk-very-secret-0123456789"


@pytest.fixture
def endpoint(project, base, actor):
    return services.deployment_register_external(
        project=project,
        name="rival",
        base_url="https://models.example.com/v1/",
        model="rival-large",
        api_key=SECRET,
        by=actor,
    )


@pytest.fixture
def provider():
    """A provider that wants a key; ``answer`` is what it says to those who have it."""
    state = {"status": 200, "body": {"data": [{"id": "rival-large"}]}, "asked": []}

    class Models(Handler):
        def do_GET(self):
            state["asked"].append(self.path)
            known = self.headers.get("Authorization") == f"Bearer {SECRET}"
            moved = {"Location": "/elsewhere"} if state["status"] == 302 else {}
            self.answer(state["status"] if known else 401, state["body"] if known else {}, **moved)

    served = Served(Models)
    state["url"] = served.url
    yield state
    served.stop()


def test_registering_routes_to_it_and_encrypts_its_key(endpoint, project):
    assert SECRET.encode() not in bytes(endpoint.api_key)
    assert deployment_key(endpoint) == SECRET
    assert routing_current(project).snapshot["externals"]["rival"] == {
        "deployment_id": endpoint.pk,
        "base_url": "https://models.example.com/v1",
        "model": "rival-large",
    }


def test_the_key_is_nowhere_but_in_its_column(endpoint, project):
    assert SECRET not in json.dumps(routing_current(project).snapshot)
    assert SECRET not in json.dumps(list(AuditEvent.objects.values_list("detail", flat=True)))


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("file:///etc/passwd", "http:// or https://"),
        ("gopher://host/x", "http:// or https://"),
        ("models.example.com", "http:// or https://"),
        ("http://", "http:// or https://"),
        ("https://user:pass@host/v1", "its own field"),
        ("https://host/v1?key=1", "no “\\?”"),
        ("http://169.254.169.254/latest", "not one that a model"),
        ("http://[fe80::1]/v1", "not one that a model"),
        ("http://0.0.0.0:80", "not one that a model"),
        ("http://169.254.169.254.", "not one that a model"),
        ("http://2852039166", "not one that a model"),
        ("http://0xa9fea9fe/v1", "not one that a model"),
        ("http://169.254.43518", "not one that a model"),
        ("http://0251.0376.0251.0376", "not one that a model"),
        ("http://[::ffff:169.254.169.254]", "not one that a model"),
        ("http://[::ffff:a9fe:a9fe]", "not one that a model"),
        ("http://[fe80::1%25eth0]/v1", "not one that a model"),
        ("http://[fd00:ec2::254]", "not one that a model"),
        ("http://\uff11\uff16\uff19.254.169.254", "not one that a model"),
        ("http://169\u3002254\u3002169\u3002254", "not one that a model"),
        ("http://0/v1", "not one that a model"),
        ("http://metadata.google.internal", "not one that a model"),
        ("http://a b", "not an address"),
        ("http://exa%00mple", "not an address"),
        ("http://host:99999", "not an address"),
        ("http://[half", "not an address"),
    ],
)
def test_addresses_that_are_not_ours_to_ask_are_refused(project, base, actor, address, sentence):
    with pytest.raises(Refused, match=sentence):
        services.deployment_register_external(
            project=project, name="x", base_url=address, model="m", api_key="", by=actor
        )


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:8011", "http://10.1.2.3/v1", "http://[fd12::7]:80", "https://modèle.example"],
)
def test_models_on_private_networks_may_be_asked(project, base, actor, address):
    made = services.deployment_register_external(
        project=project, name="x", base_url=address, model="m", api_key="", by=actor
    )

    assert made.base_url == address


@pytest.mark.parametrize(("name", "model"), [("", "m"), ("with space", "m"), ("a:b", "m"), ("ok", " ")])
def test_names_that_routing_cannot_carry_are_refused(project, base, actor, name, model):
    with pytest.raises(Refused):
        services.deployment_register_external(
            project=project, name=name, base_url="https://h", model=model, api_key="", by=actor
        )


def test_a_taken_name_is_refused_and_a_retired_one_is_free(endpoint, project, actor):
    again = {"name": "rival", "base_url": "https://h", "model": "m", "api_key": ""}
    with pytest.raises(Conflict, match="already an endpoint"):
        services.deployment_register_external(project=project, by=actor, **again)

    services.deployment_retire(deployment=endpoint, by=actor)

    assert services.deployment_register_external(project=project, by=actor, **again).pk != endpoint.pk


def test_retiring_leaves_routing_and_forgets_the_key(endpoint, project, actor):
    for _ in range(2):
        services.deployment_retire(deployment=endpoint, by=actor)

    endpoint.refresh_from_db()
    assert endpoint.api_key is None
    assert routing_current(project).snapshot["externals"] == {}


def test_changing_without_a_key_keeps_the_key(endpoint, actor):
    changed = services.deployment_change_external(
        deployment=endpoint, name="rival2", base_url=endpoint.base_url, model="larger", by=actor
    )

    assert (changed.name, changed.model, deployment_key(changed)) == ("rival2", "larger", SECRET)


def test_a_new_address_needs_the_key_again(endpoint, actor):
    with pytest.raises(Refused, match="Enter the API key again"):
        services.deployment_change_external(
            deployment=endpoint, name="rival", base_url="https://attacker.example", model="m", by=actor
        )


def test_an_engine_cannot_be_retired_by_hand(engines, actor):
    with pytest.raises(Conflict, match="settings"):
        services.deployment_retire(deployment=engines[0], by=actor)


def probe(project, actor, url, key=SECRET):
    row = services.deployment_register_external(
        project=project, name="probe", base_url=url, model="rival-large", api_key=key, by=actor
    )
    return services.deployment_test(deployment=row, by=actor)


def test_a_working_endpoint_says_so(project, base, actor, provider):
    assert probe(project, actor, provider["url"] + "/v1") == (True, "It answers and offers “rival-large”.")
    assert provider["asked"] == ["/v1/models"]


def test_a_wrong_key_is_named(project, base, actor, provider):
    result = probe(project, actor, provider["url"], key="wrong")

    assert (result.ok, "refuses the API key" in result.sentence) == (False, True)


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (200, {"data": [{"id": "other"}]}, "does not offer the model"),
        (200, {"models": []}, "not like an OpenAI-compatible"),
        (200, [], "not like an OpenAI-compatible"),
        (200, b"[" * 100_000, "not like an OpenAI-compatible"),
        (200, bytes(5 * 2**20), "not like an OpenAI-compatible"),
        (500, {}, "status 500"),
        (302, {}, "status 302"),
    ],
)
def test_what_is_wrong_is_said(project, base, actor, provider, status, body, sentence):
    provider.update(status=status, body=body)

    result = probe(project, actor, provider["url"])

    assert not result.ok
    assert sentence in result.sentence
    assert provider["asked"] == ["/v1/models"], "redirects are not followed"


def test_an_endpoint_that_drips_for_ever_gave_no_answer(project, base, actor, monkeypatch):
    monkeypatch.setattr(deployments, "TEST_TIMEOUT_S", 0.2)

    class Drips(Handler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(200):
                    self.wfile.write(b" ")
                    time.sleep(0.02)

    with Served(Drips) as served:
        result = probe(project, actor, served.url)

    assert (result.ok, "No answer within" in result.sentence) == (False, True)


def test_an_unreachable_endpoint_is_named(project, base, actor):
    result = probe(project, actor, "http://127.0.0.1:9")

    assert not result.ok
    assert "could not be reached" in result.sentence
    assert Deployment.objects.get(name="probe").healthy is False
