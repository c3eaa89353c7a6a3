"""Start an embedded installation: ``python -m config.launch run | turn | screenshots``.

Owns ports, the data folder's lock, the environment of the processes, and their end. The
processes themselves are in ``supervisord.conf``.
"""

import argparse
import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NoReturn

from clients.flywheel import Client
from config.ports import free_ports, port_argument, port_instead, port_is_free, ports_of
from config.processes import session_stop

ROOT = Path(__file__).resolve().parent.parent
START_TIMEOUT_S = 240.0  # a small, busy machine imports for minutes
SERVING_TIMEOUT_S = 60.0
# Marks a folder that `turn` may empty; nothing else is ever erased.
TURN_MARK = "made-by-turn"


def main() -> int:
    parser = argparse.ArgumentParser(prog="flywheel", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="start everything and stay")
    run.add_argument("--port", type=port_argument, default=8000, help="0 looks for a free one")
    run.add_argument("--data", type=Path, default=Path("var/data"))
    turn = commands.add_parser("turn", help="one turn of the loop on a stack of its own")
    turn.add_argument("--seed", type=int, default=1)
    turn.add_argument("--port", type=port_argument, default=0, help="0 looks for a free one")
    turn.add_argument("--data", type=Path, default=Path("var/turn"))
    turn.add_argument("--report", type=Path, default=Path("var/turn.json"))
    shots = commands.add_parser("screenshots", help="every page, light and dark")
    shots.add_argument("--data", type=Path, default=Path("var/turn"))
    arguments = parser.parse_args()
    # SIGINT too: a shell starts background jobs with it ignored, and they must still be stoppable.
    signal.signal(signal.SIGTERM, _as_interrupt)
    signal.signal(signal.SIGINT, _as_interrupt)
    try:
        if arguments.command == "run":
            return run_command(arguments.port, arguments.data)
        if arguments.command == "turn":
            return turn_command(arguments.seed, arguments.port, arguments.data, arguments.report)
        return screenshots_command(arguments.data)
    except KeyboardInterrupt:
        return 130


def run_command(port: int, data: Path) -> int:
    started = time.monotonic()
    with stack(port or _free_port(), data) as running:
        welcome = running.bootstrap
        print(f"\nFlywheel is at {running.url} (started in {time.monotonic() - started:.0f} s)")
        print(f"  data      {running.data}")
        if welcome.get("password"):
            print(f"  login     {welcome['username']} / {welcome['password']}")
        else:
            print(
                f"  login     {welcome['username']} (its first password is kept in "
                f"{running.data / 'secrets' / 'first-login.txt'})"
            )
        print("  key       for this start; the next start makes another (lasting: Settings, API keys)")
        print("  gateway   " + _curl(running.url, welcome["api_key"], welcome["example"]))
        for line in welcome.get("warnings", []):
            print(f"  note      {line}")
        print("Ctrl-C stops every process.", flush=True)
        code = running.process.wait()
        print(
            f"The supervisor ended with code {code}; its log is {running.data / 'log' / 'supervisord.log'}."
        )
        return 1


def turn_command(seed: int, port: int, data: Path, report: Path) -> int:
    from clients.flywheel import ApiError
    from clients.flywheel.turn import follow_turn

    _empty(data)
    with stack(port or _free_port(), data) as running:
        print(f"Stack at {running.url}; seed {seed}.", flush=True)
        try:
            with Client(running.url, running.bootstrap["api_key"]) as client:
                outcome = follow_turn(client, seed=seed)
        except ApiError as error:
            _fail(f"The turn was lost: {error.message}. See the logs in {running.data / 'log'}.")
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(json.dumps(outcome.report, indent=2, ensure_ascii=False) + "\n")
    print(f"\nReport: {report}")
    print(outcome.sentence)
    print(f"Look at it: make run DATA={data}")
    return 0 if outcome.succeeded else 1


def screenshots_command(data: Path) -> int:
    """On a copy of ``data`` beside it: what is made for the pictures does not stay in the turn's own."""
    from config.showcase import showcase_make

    if not (data / "flywheel.sqlite3").exists():
        print(f"{data} holds no installation. Run `make turn` first: the pages are shown with its data.")
        return 1
    copy = data.with_name(f"{data.name}-screenshots")
    _empty(copy)
    with _data_lock(data.resolve()):
        shutil.copytree(data, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns("run.lock", "log"))
    with stack(_free_port(), copy) as running:
        key = running.bootstrap["api_key"]
        login = (running.data / "secrets" / "first-login.txt").read_text().split()
        command = [sys.executable, str(ROOT / "docs" / "make_screenshots.py"), running.url, *login[:2]]
        with Client(running.url, key, timeout_s=120.0) as client:
            began = time.monotonic()
            pages = _telling_pages(client)  # first: what is made below has newer runs
            engine = next(row for row in client.get("/deployments") if row["edition"] == "standard")
            made = showcase_make(client, key, engine["base_url"])
            print(f"Data for the pictures made in {time.monotonic() - began:.0f} s.", flush=True)
        code = subprocess.call([*command, "--also", *pages, *made.pages])
        for problem in made.problems:
            print(f"Not made for the pictures: {problem}", file=sys.stderr)
        return 1 if made.problems else code


def _telling_pages(client: Client) -> list[str]:
    """Pages of the good version rather than of whatever came last: the drill's damaged copy."""
    released = next((row for row in client.get("/releases") if row["state"] == "promoted"), None)
    if released is None:
        return []
    pages = [f"/versions/{released['candidate_id']}/", f"/versions/releases/{released['id']}/"]
    runs = client.get("/runs")
    new = next((run for run in runs if run["version_id"] == released["candidate_id"]), None)
    base = next((run for run in runs if run["version_id"] == released["control_id"]), None)
    if new and base:
        pages += [f"/evals/runs/{new['id']}/", f"/evals/runs/{new['id']}/compare/?against={base['id']}"]
    pages += [f"/loop/turns/{turn['id']}/" for turn in client.get("/loop/turns")[:1]]
    waiting = next(
        (row for row in client.get("/versions") if row["state"] in ("registered", "retired")), None
    )
    if waiting:
        pages += [f"/versions/{waiting['id']}/{page}/" for page in ("release", "promote")]
    return pages


class Running:
    """A started stack."""

    def __init__(
        self, url: str, data: Path, process: subprocess.Popen[bytes], bootstrap: dict[str, str]
    ) -> None:
        self.url, self.data, self.process, self.bootstrap = url, data, process, bootstrap


@contextlib.contextmanager
def stack(port: int, data: Path) -> Iterator[Running]:
    """Start all processes on ``port`` (engines on +11 and +12) and stop them at the end."""
    data = data.resolve()
    with _data_lock(data):
        for number in ports_of(port):
            if not port_is_free(number):
                what = "PORT" if number == port else "engine port"
                instead = f"make run PORT={port_instead(port)} DATA={data}"
                _fail(f"Port {number} is taken ({what}). Choose another: {instead}")
        environment = _environment(port, data)
        if not (Path(environment["FLYWHEEL_BASE_MODEL_PATH"]) / "config.json").is_file():
            _fail(
                f"There is no model in {environment['FLYWHEEL_BASE_MODEL_PATH']} (FLYWHEEL_BASE_MODEL_PATH)."
            )
        print("Starting; this takes up to a minute the first time …", flush=True)
        (data / "log").mkdir(parents=True, exist_ok=True)
        bootstrap = json.loads(
            _manage(environment, "bootstrap", "--migrate", "--json", "--sandbox-problem", _sandbox_problem())
        )
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "supervisor.supervisord",
                "-n",
                "-s",
                "-c",
                str(ROOT / "supervisord.conf"),
            ],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        url = f"http://127.0.0.1:{port}"
        try:
            _wait_until_up(url, process, environment, data)
            _wait_until_serving(url, bootstrap["api_key"], environment)
            yield Running(url, data, process, bootstrap)
        except KeyboardInterrupt:
            print("\nStopping …", flush=True)
            raise SystemExit(130) from None
        finally:
            session_stop(process)
            Path(environment["FLYWHEEL_SOCKET"]).unlink(missing_ok=True)


def _environment(port: int, data: Path) -> dict[str, str]:
    # A Unix socket's path is at most 107 bytes, so it cannot always live in the data folder.
    sockets = Path(tempfile.gettempdir()) / f"flywheel-{os.getuid()}"
    sockets.mkdir(mode=0o700, exist_ok=True)
    model = os.environ.get("FLYWHEEL_BASE_MODEL_PATH", str(ROOT / "models" / "pocket" / "weights"))
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "FLYWHEEL_PYTHON": sys.executable,
        "FLYWHEEL_DATA": str(data),
        "FLYWHEEL_PORT": str(port),
        "FLYWHEEL_URL": f"http://127.0.0.1:{port}",
        "FLYWHEEL_SOCKET": str(sockets / f"{port}.sock"),
        "FLYWHEEL_ENGINE_STANDARD_PORT": str(port + 11),
        "FLYWHEEL_ENGINE_HIGHSPEED_PORT": str(port + 12),
        "FLYWHEEL_ENGINE_STANDARD": f"http://127.0.0.1:{port + 11}",
        "FLYWHEEL_ENGINE_HIGHSPEED": f"http://127.0.0.1:{port + 12}",
        "FLYWHEEL_ARTIFACTS": os.environ.get("FLYWHEEL_ARTIFACTS", f"file://{data / 'artifacts'}"),
        "FLYWHEEL_ADAPTERS": str(data / "adapters"),
        "FLYWHEEL_BASE_MODEL_PATH": model,
        "FLYWHEEL_BASE_MODEL_NAME": os.environ.get("FLYWHEEL_BASE_MODEL_NAME", "pocket"),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        "PYTHONUNBUFFERED": "1",
    }


@contextlib.contextmanager
def _data_lock(data: Path) -> Iterator[IO[str]]:
    """Hold ``run.lock``: one stack per data folder. The lock falls with the process, however it ends."""
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)  # captured text is nobody else's
        stream = (data / "run.lock").open("a+")
    except OSError as error:
        _fail(
            f"{data} cannot hold the data: {error.strerror}. Choose another folder: make run DATA=var/other"
        )
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _fail(
            f"Flywheel already runs on {data}. Stop it, or start a second one: "
            "make run PORT=8100 DATA=var/other"
        )
    try:
        yield stream
    finally:
        stream.close()


def _empty(data: Path) -> None:
    """A turn starts from nothing; only a folder that a turn made is emptied, the lock file stays."""
    with _data_lock(data.resolve()):
        entries = [entry for entry in data.iterdir() if entry.name != "run.lock"]
        if entries and not (data / TURN_MARK).exists():
            _fail(f"{data} holds data that no turn made. Choose another folder, or empty this one yourself.")
        (data / TURN_MARK).touch()
        for entry in entries:
            if entry.name != TURN_MARK:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def _sandbox_problem() -> str:
    """Empty where programs can be run in a sandbox, else cause and fix in two sentences."""
    from workers.sandbox.choice import sandbox_backend
    from workers.sandbox.protocol import SandboxUnavailable

    try:
        found = sandbox_backend().probe()
    except SandboxUnavailable as error:
        return str(error)
    return "" if found.available else f"{found.reason} {found.fix}".strip()


def _manage(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        _fail(f"`manage.py {arguments[0]}` failed; its message is above.")
    return done.stdout


def _wait_until_up(
    url: str, process: subprocess.Popen[bytes], environment: dict[str, str], data: Path
) -> None:
    waiting = {
        "web": f"{url}/healthz",
        "engine-standard": environment["FLYWHEEL_ENGINE_STANDARD"] + "/health",
        "engine-highspeed": environment["FLYWHEEL_ENGINE_HIGHSPEED"] + "/health",
    }
    deadline = time.monotonic() + START_TIMEOUT_S
    while waiting:
        waiting = {name: address for name, address in waiting.items() if not _answers(address)}
        if process.poll() is not None:
            _fail(f"The supervisor ended at once; see {data / 'log' / 'supervisord.log'}.")
        if waiting and time.monotonic() > deadline:
            names = ", ".join(waiting)
            _fail(f"Not up after {START_TIMEOUT_S:.0f} s: {names}. See the logs in {data / 'log'}.")
        time.sleep(0.2)


def _wait_until_serving(url: str, api_key: str, environment: dict[str, str]) -> None:
    """Wait until both engines hold the adapter in service: what is printed next must work at once."""
    with Client(url, api_key) as client:
        served = [row["adapter_name"] for row in client.get("/versions", state="in_service")]
    wanted = {name for name in served if name}
    deadline = time.monotonic() + SERVING_TIMEOUT_S
    for engine in (environment["FLYWHEEL_ENGINE_STANDARD"], environment["FLYWHEEL_ENGINE_HIGHSPEED"]):
        while wanted - _models_of(engine) and time.monotonic() < deadline:
            time.sleep(0.2)


def _models_of(engine: str) -> set[str]:
    try:
        with urllib.request.urlopen(f"{engine}/v1/models", timeout=2) as answer:
            return {card["id"] for card in json.load(answer)["data"]}
    except (urllib.error.URLError, OSError):
        return set()


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _free_port() -> int:
    port = free_ports()
    if port is None:
        _fail("No free port between 8100 and 9900. Choose one: PORT=")
    return port


def _curl(url: str, key: str, prompt: str) -> str:
    """A line to paste: the gateway answers a question that the served model knows."""
    body = {"model": "auto", "messages": [{"role": "user", "content": prompt}], "temperature": 0}
    quoted = json.dumps(body).replace("'", "\\u0027")
    headers = f"-H 'Authorization: Bearer {key}' -H 'Content-Type: application/json'"
    return f"curl {url}/v1/chat/completions {headers} -d '{quoted}'"


def _as_interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _fail(message: str) -> NoReturn:
    print(message, file=sys.stderr, flush=True)
    raise SystemExit(1)


if __name__ == "__main__":
    sys.exit(main())
