"""A whole installation as a user starts it: ``python -m config.launch run`` in a process of its own.

Waiting is always for a condition, with a guard (see ``tests/waiting.py``): these tests also run on small,
busy machines.
"""

import contextlib
import ctypes
import os
import re
import signal
import sqlite3
import subprocess
import sys
import xmlrpc.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
from supervisor.xmlrpc import SupervisorTransport

from clients.flywheel import Client
from config.ports import ENGINE_OFFSETS, ports_of
from tests.ports import free_port, is_free
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
START_S = 600.0
STOP_S = 240.0
PROGRAMS = (
    "web", "worker-web", "worker-anonymize", "worker-heavy", "worker-train", "beat", "engine-standard",
    "engine-highspeed",
)  # fmt: skip


def stack_port() -> int:
    """One that is free together with the engines'."""
    return free_port(*ENGINE_OFFSETS)


def environment(**changes: str) -> dict[str, str]:
    """What a shell would have: nothing of the test run's own settings."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FLYWHEEL_", "DJANGO_", "PYTEST_"))
    }
    return {**kept, **changes}


def launch(*arguments: str, **changes: str) -> "subprocess.CompletedProcess[str]":
    """A start that is expected to end by itself."""
    return subprocess.run(
        [sys.executable, "-m", "config.launch", *arguments],
        cwd=ROOT, env=environment(**changes), capture_output=True, text=True, timeout=START_S,
    )  # fmt: skip


def living_on(data: Path) -> list[psutil.Process]:
    """Every process of an installation, whoever started it: they carry its data folder with them."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            if process.environ().get("FLYWHEEL_DATA") == str(data.resolve()):
                found.append(process)
    return found


def end_all(data: Path) -> None:
    """Kill what is left of an installation."""
    for process in living_on(data):
        with contextlib.suppress(psutil.Error):
            process.kill()


def _end_with_the_tests() -> None:
    """In the child: be told to stop when the test run is killed, so that no stack outlives it."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


class RunningStack:
    """A started installation and what its start printed. ``stop`` ends it; twice is harmless."""

    def __init__(self, data: Path, *, command: tuple[str, ...] = (), port: int | None = None) -> None:
        self.data = data.resolve()
        self.port = port or stack_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._output = self.data.with_name(f"{self.data.name}-output.txt")
        with self._output.open("wb") as stream:
            self.process = subprocess.Popen(
                [
                    *command, sys.executable, "-m", "config.launch", "run",
                    "--port", str(self.port), "--data", str(self.data),
                ],
                cwd=ROOT, env=environment(), stdout=stream, stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=_end_with_the_tests,
            )  # fmt: skip
        try:
            until(self._is_up, what="the stack is up", timeout_s=START_S, every_s=0.3)
            self.key = self._printed(r"Bearer (fw_[\w-]+)").group(1)
            self.username, self.password = self._login()
        except BaseException as error:
            error.add_note(self.logs())
            self.kill()
            raise

    @property
    def output(self) -> str:
        return self._output.read_text(errors="replace")

    def client(self, timeout_s: float = 240.0) -> Client:
        return Client(self.url, self.key, timeout_s=timeout_s)

    @contextlib.contextmanager
    def browser(self) -> Iterator[httpx.Client]:
        """A signed-in visitor of the pages, through the login form."""
        with httpx.Client(base_url=self.url, timeout=240.0, follow_redirects=True) as pages:
            token = csrf_token(pages.get("/login/").text)
            form = {"csrfmiddlewaretoken": token, "username": self.username, "password": self.password}
            answer = pages.post("/login/", data=form)
            assert answer.status_code == 200, answer.text[:500]
            yield pages

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Straight from the database file, beside all the code under test."""
        with contextlib.closing(self._database()) as database:
            return database.execute(query, values).fetchall()

    def value(self, query: str, *values: Any) -> Any:
        return self.rows(query, *values)[0][0]

    def programs(self) -> dict[str, dict[str, Any]]:
        """What the supervisor says of each program: ``pid``, ``statename`` and more."""
        rows = self._supervisor().supervisor.getAllProcessInfo()
        return {row["name"]: row for row in rows}

    @contextlib.contextmanager
    def without(self, program: str) -> Iterator[None]:
        """While one program is stopped on purpose; afterwards it runs again."""
        self._supervisor().supervisor.stopProcess(f"flywheel:{program}")
        try:
            yield
        finally:
            self._supervisor().supervisor.startProcess(f"flywheel:{program}", False)

    def processes(self) -> list[psutil.Process]:
        return living_on(self.data)

    def stop(self, number: int = signal.SIGINT) -> int:
        """Send the signal as a shell does; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=STOP_S)

    def kill(self) -> None:
        """Last resort: leave nothing behind whatever went wrong."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.stop()
        end_all(self.data)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def busy_ports(self) -> list[int]:
        return [port for port in ports_of(self.port) if not is_free(port)]

    def logs(self, lines: int = 40) -> str:
        parts = [f"--- start\n{self.output}"]
        for path in sorted((self.data / "log").glob("*.log")):
            tail = path.read_text(errors="replace").splitlines()[-lines:]
            parts.append(f"--- {path.name}\n" + "\n".join(tail))
        return "\n".join(parts)

    def _is_up(self) -> bool:
        assert self.process.poll() is None, f"the start ended with {self.process.returncode}"
        return "Ctrl-C stops every process." in self.output

    def _login(self) -> tuple[str, str]:
        """Printed by the first start; a later one names the file that keeps it."""
        if "its first password is kept in" in self.output:
            username, password = (self.data / "secrets" / "first-login.txt").read_text().split()[:2]
            return username, password
        login = self._printed(r"login +(\S+) / (\S+)")
        return login.group(1), login.group(2)

    def _printed(self, shape: str) -> re.Match[str]:
        found = re.search(shape, self.output)
        assert found is not None, f"the start did not print {shape}"
        return found

    def _database(self) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{self.data / 'flywheel.sqlite3'}?mode=ro", uri=True, timeout=240)

    def _supervisor(self) -> xmlrpc.client.ServerProxy:
        socket_path = next(
            process.environ()["FLYWHEEL_SOCKET"]
            for process in self.processes()
            if "FLYWHEEL_SOCKET" in process.environ()
        )
        transport = SupervisorTransport(None, None, serverurl=f"unix://{socket_path}")
        return xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport)


@contextlib.contextmanager
def running_stack(data: Path, **options: Any) -> Iterator[RunningStack]:
    """A stack that is stopped at the end, however the body ends, and has left nothing behind."""
    stack = RunningStack(data, **options)
    try:
        yield stack
        stack.stop()
        assert [process.cmdline() for process in stack.processes()] == []
        assert stack.busy_ports() == []
    finally:
        stack.kill()


def csrf_token(page: str) -> str:
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert found is not None, "the page has no form"
    return found.group(1)
