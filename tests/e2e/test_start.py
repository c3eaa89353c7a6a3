"""Starting and stopping an installation as a user does."""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.stack import (
    PROGRAMS,
    ROOT,
    START_S,
    STOP_S,
    RunningStack,
    csrf_token,
    end_all,
    environment,
    launch,
    living_on,
    running_stack,
    stack_port,
)
from tests.waiting import until

pytestmark = pytest.mark.e2e

CODE_FAMILY = "Python functions"
FORBID = (sys.executable, str(Path(__file__).with_name("forbid_namespaces.py")))


@pytest.fixture(scope="module")
def confined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """A stack on a host that forbids user namespaces."""
    folder = tmp_path_factory.mktemp("confined") / "data"
    with running_stack(folder, command=FORBID) as started:
        yield started


def test_health_is_answered(stack: RunningStack):
    assert httpx.get(f"{stack.url}/healthz", timeout=240).status_code == 200


def test_the_printed_login_opens_the_loop_page(stack: RunningStack):
    with stack.browser() as pages:
        page = pages.get("/")

    assert page.url.path == "/"
    assert "Run the demo turn" in page.text


def test_a_wrong_password_is_refused(stack: RunningStack):
    with httpx.Client(base_url=stack.url, timeout=240, follow_redirects=True) as pages:
        token = csrf_token(pages.get("/login/").text)
        answer = pages.post(
            "/login/",
            data={"csrfmiddlewaretoken": token, "username": stack.username, "password": "wrong"},
        )
        home = pages.get("/")

    assert answer.url.path == "/login/"
    assert home.url.path == "/login/"


def test_the_printed_curl_line_is_answered_by_the_version_in_service(stack: RunningStack):
    line = next(text for text in stack.output.splitlines() if "curl " in text).partition("gateway")[2]
    arguments = shlex.split(line)
    assert arguments[0] == "curl"
    headers = dict(arguments[at + 1].split(": ", 1) for at, word in enumerate(arguments) if word == "-H")
    body = arguments[arguments.index("-d") + 1]

    if shutil.which("curl"):
        done = subprocess.run([*arguments, "-fsS", "-m", "240"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
    else:  # the same request by other means
        response = httpx.post(arguments[1], content=body, headers=headers, timeout=240)
        assert response.status_code == 200, response.text
        answer = response.json()

    assert answer["choices"][0]["message"]["role"] == "assistant"
    assert answer["usage"]["completion_tokens"] > 0


def test_every_program_runs(stack: RunningStack):
    programs = stack.programs()

    assert set(programs) == set(PROGRAMS)
    assert {row["statename"] for row in programs.values()} <= {"RUNNING", "STARTING"}


def test_secrets_are_readable_by_their_owner_only(stack: RunningStack):
    files = list((stack.data / "secrets").iterdir())

    assert files
    assert {oct(path.stat().st_mode & 0o777) for path in files} == {"0o600"}


def test_nothing_listens_beyond_this_machine(stack: RunningStack):
    listening = {
        connection.laddr.ip
        for process in stack.processes()
        for connection in process.net_connections(kind="inet")
        if connection.status == "LISTEN"
    }

    assert listening == {"127.0.0.1"}


def test_a_second_start_on_the_same_data_is_refused(stack: RunningStack):
    done = launch("run", "--port", str(stack_port()), "--data", str(stack.data))

    assert done.returncode not in (0, None)
    assert f"Flywheel already runs on {stack.data}." in done.stderr
    assert httpx.get(f"{stack.url}/healthz", timeout=240).status_code == 200


@pytest.mark.parametrize("taken_by", [0, 11])
def test_a_taken_port_is_refused_by_name(stack: RunningStack, data: Path, taken_by: int):
    done = launch("run", "--port", str(stack.port + taken_by), "--data", str(data))

    assert done.returncode not in (0, None)
    assert re.search(
        rf"Port {stack.port + taken_by} is taken \(.+\)\. Choose another: make run PORT=\d+", done.stderr
    )
    assert not (data / "flywheel.sqlite3").exists()


def test_without_namespaces_the_start_names_cause_and_fix(confined: RunningStack):
    note = next(line for line in confined.output.splitlines() if "No sandbox" in line)

    assert CODE_FAMILY in note
    assert "namespace" in note
    assert re.search(r"Allow|Run sysctl|Install|start it with", note)


def test_without_namespaces_the_gateway_still_answers(confined: RunningStack):
    with confined.client() as client:
        answer = client.chat([{"role": "user", "content": "Add 12 and 30."}], max_tokens=8)

    assert answer.status_code == 200


def test_without_namespaces_the_loop_page_alerts(confined: RunningStack):
    with confined.browser() as pages:
        page = pages.get("/").text

    assert f"No sandbox: {CODE_FAMILY}" in page


def test_without_namespaces_code_families_are_shown_as_unavailable(confined: RunningStack):
    with confined.browser() as pages:
        page = pages.get("/training/families/")
        family = confined.value("SELECT id FROM feedback_family WHERE name = 'python_functions'")
        detail = pages.get(f"/training/families/{family}/")

    assert page.status_code == 200
    assert detail.status_code == 200
    assert "Unavailable here: " in page.text
    assert "cannot be verified on this installation" in detail.text
    for text in (page.text, detail.text):
        assert "namespace" in text


def test_without_namespaces_only_code_families_are_unavailable(confined: RunningStack):
    rows = dict(confined.rows("SELECT name, unavailable FROM feedback_family"))

    assert {name for name, why in rows.items() if why} == {"python_functions"}


def test_terminating_the_start_stops_every_process(confined: RunningStack):
    """The last test of this stack."""
    assert len(confined.processes()) > len(PROGRAMS)

    code = confined.stop(signal.SIGTERM)

    assert code == 130
    assert [process.cmdline() for process in confined.processes()] == []
    assert confined.busy_ports() == []
    assert "Traceback" not in confined.output


def test_interrupting_a_start_that_is_not_up_yet_leaves_nothing(data: Path):
    port = stack_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "config.launch", "run", "--port", str(port), "--data", str(data)],
        cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        until(lambda: (data / "supervisord.pid").exists(), what="the supervisor started", timeout_s=START_S)

        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=STOP_S)

        assert code != 0
        assert [left.cmdline() for left in living_on(data)] == []
    finally:
        end_all(data)
        process.kill()
        process.wait()
