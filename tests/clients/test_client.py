"""The client: paths, errors, waiting."""

import pytest

from clients.flywheel import ApiError, Client
from tests.clients.conftest import Server
from tests.ports import NOBODY
from tests.waiting import GUARD_S


@pytest.fixture
def client(server: Server):
    with Client(server.url + "/", "fw_secret", timeout_s=GUARD_S) as made:
        yield made


def test_a_path_is_below_the_api(client: Client, server: Server):
    server.says("GET", "/versions", (200, [{"number": "1.0"}]))

    assert client.get("/versions", state="x", limit=None) == [{"number": "1.0"}]
    assert server.seen == [("GET", "/api/v1/versions", None, "state=x")]


def test_a_body_is_sent_as_json(client: Client, server: Server):
    server.says("POST", "/runs", (201, {"id": 1}))

    client.post("/runs", {"seed": 3})

    assert server.seen[0][2] == {"seed": 3}


def test_an_empty_answer_is_none(client: Client, server: Server):
    server.says("DELETE", "/assets/1", (200, b""))

    assert client.delete("/assets/1") is None


def test_an_error_of_the_api_carries_code_message_and_detail(client: Client, server: Server):
    error = {"code": "run_too_large", "message": "Too many samples.", "detail": {"limit": 10}}
    server.says("POST", "/runs", (400, {"error": error}))

    with pytest.raises(ApiError) as raised:
        client.post("/runs", {})

    found = raised.value
    assert (found.status, found.code, found.message) == (400, "run_too_large", "Too many samples.")
    assert found.detail == {"limit": 10}
    assert not found.is_passing


@pytest.mark.parametrize("body", [b"<html>Bad gateway</html>", b'["no shape"]', b'{"error": "text"}'])
def test_an_error_in_another_shape_is_named_unexpected(client: Client, server: Server, body: bytes):
    server.says("GET", "/versions", (502, body))

    with pytest.raises(ApiError) as raised:
        client.get("/versions")

    assert (raised.value.status, raised.value.code) == (502, "unexpected")
    assert "html" not in raised.value.message


def test_a_success_that_is_not_json_is_named_unexpected(client: Client, server: Server):
    server.says("GET", "/versions", (200, b"<html>another program</html>"))

    with pytest.raises(ApiError, match=r"127\.0\.0\.1:\d+ gave an unexpected answer \(200\)"):
        client.get("/versions")


def test_nobody_there_is_status_0():
    url = f"http://127.0.0.1:{NOBODY}"

    with Client(url, "fw_secret") as client, pytest.raises(ApiError) as raised:
        client.get("/versions")

    assert (raised.value.status, raised.value.code) == (0, "unreachable")
    assert raised.value.message.startswith(f"{url} does not answer")
    assert raised.value.is_passing
    assert "fw_secret" not in str(raised.value)


def test_chat_goes_to_the_gateway_and_gives_its_headers(client: Client, server: Server):
    server.says("POST", "/v1/chat/completions", (200, {"choices": []}))

    answer = client.chat([{"role": "user", "content": "hi"}], max_tokens=3)

    assert answer.headers["x-flywheel-version"] == "1.1"
    assert server.seen[0][2]["max_tokens"] == 3


def test_a_chat_that_fails_is_an_api_error(client: Client, server: Server):
    error = {"code": "upstream_error", "message": "The model failed."}
    server.says("POST", "/v1/chat/completions", (502, {"error": error}))

    with pytest.raises(ApiError, match="The model failed"):
        client.chat([{"role": "user", "content": "hi"}])


def test_events_are_read_until_none_is_left(client: Client, server: Server):
    server.says("GET", "/events", (200, [{"id": 1}, {"id": 2}]), (200, [{"id": 5}]), (200, []))

    assert [event["id"] for event in client.events()] == [1, 2, 5]
    assert [seen[3] for seen in server.seen] == ["after=0", "after=2", "after=5"]


def test_wait_polls_until_done(client: Client, server: Server):
    server.says("GET", "/runs/1", (200, {"state": "running"}), (200, {"state": "done"}))

    found = client.wait("/runs/1", lambda run: run["state"] == "done", timeout_s=GUARD_S, every_s=0.01)

    assert found == {"state": "done"}


def test_wait_gives_up_in_words(client: Client, server: Server):
    server.says("GET", "/runs/1", (200, {"state": "running"}))

    with pytest.raises(TimeoutError, match="/runs/1 was not done after 0 s"):
        client.wait("/runs/1", lambda run: False, timeout_s=0.02, every_s=0.01)
