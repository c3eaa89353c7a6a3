"""Endpoints on this machine for the pictures of ``make screenshots``: nothing outside is asked.

``pocket-live`` passes requests on to our own engine, and what it passes them to can be changed behind the
name. ``pack-reader`` is no model: it says the known answers of packs, some of them wrong on purpose, and
overlooks what stands early in a long text. ``judge-facts`` and ``judge-length`` judge by a rule each.
"""

import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import httpx

from domain.contracts import TaskSpec
from packs.registry import UnknownPack, pack_of_family

LIVE, READER, JUDGES = "pocket-live", "pack-reader", ("judge-facts", "judge-length")
EVERY_WRONG = 5  # of the reader's tasks every fifth is answered as a known bad answer
SEEN_BACK = 300  # tokens before the end of a long text that the reader looks at
Json = dict[str, Any]


class Endpoints:
    """``with Endpoints(engine) as endpoints``: all of them at ``url``, told apart by the model's name."""

    def __init__(self, engine: str) -> None:
        self.engine, self.behind = engine.rstrip("/"), ""
        self._scripts: dict[str, tuple[str, ...]] = {}
        endpoints = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                names = [LIVE, READER, *JUDGES]
                self._send(json.dumps({"object": "list", "data": [{"id": name} for name in names]}).encode())

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if body["model"] == LIVE:
                    self._pass_on(body)
                    return
                said = endpoints.said(body)
                data = _events(body, said) if body.get("stream") else json.dumps(_answer(body, said)).encode()
                self._send(data, "text/event-stream" if body.get("stream") else "application/json")

            def _pass_on(self, body: Json) -> None:
                asked = {**body, "model": endpoints.behind}
                with (
                    httpx.Client(timeout=120.0) as http,
                    http.stream("POST", endpoints.engine + self.path, json=asked) as answer,
                ):
                    self.send_response(answer.status_code)
                    self.send_header("content-type", answer.headers.get("content-type", "application/json"))
                    self.end_headers()
                    for line in answer.iter_lines():
                        self.wfile.write(_renamed(line).encode() + b"\n")
                        self.wfile.flush()

            def _send(self, data: bytes, kind: str = "application/json") -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def learn(self, tasks: Sequence[Mapping[str, Any]]) -> None:
        """What ``pack-reader`` says to each task of a suite, as the REST API shows it."""
        for number, row in enumerate(tasks):
            task = TaskSpec.model_validate(row)
            self._scripts[_key(row["messages"])] = _script(task, number)

    def said(self, body: Json) -> str:
        """What a rule says to a request."""
        if body["model"] in JUDGES:
            return _judged(body)
        turns = self._scripts.get(_key(body["messages"]), ())
        done = sum(message["role"] == "assistant" for message in body["messages"])
        return turns[done] if done < len(turns) else "I do not know."


def _script(task: TaskSpec, number: int) -> tuple[str, ...]:
    if "length" in task.tags:  # of a long-context map
        length, depth = int(str(task.tags["length"])), int(str(task.tags["depth"]))
        return (str(task.reference) if length * (100 - depth) / 100 <= SEEN_BACK else "0",)
    try:
        pack = pack_of_family(task.family)
    except UnknownPack:
        return (str(task.reference),)
    wrong = list(pack.bad_answers(task).values())
    solution = wrong[number % len(wrong)] if wrong and not number % EVERY_WRONG else pack.gold_answer(task)
    return (solution,) if isinstance(solution, str) else tuple(solution)


def _key(messages: Sequence[Mapping[str, Any]]) -> str:
    """Of the first thing that the user says, pictures included."""
    first = next((message["content"] for message in messages if message["role"] == "user"), "")
    return hashlib.sha256(json.dumps(list(_parts(first))).encode()).hexdigest()


def _parts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content.strip()
        return
    for part in content:
        yield (part["text"] if part["type"] == "text" else part["image_url"]["url"]).strip()


def _judged(body: Json) -> str:
    """``judge-facts`` wants a number in the answer and no shrug, ``judge-length`` ten words."""
    answer = _quoted(str(body["messages"][-1]["content"]))[-1]
    if body["model"] == JUDGES[0]:
        shrugs = re.search(r"not sure|cannot say|no idea|look it up", answer)
        met, why = bool(re.search(r"\d", answer)) and not shrugs, "It names a number the customer can use."
    else:
        met, why = len(answer.split()) >= 10, "It is a whole sentence or more."
    if not met:
        why = why.replace("It names", "It does not name").replace("It is", "It is not")
    return f"{why}\n" + json.dumps({"score": 0.9 if met else 0.1, "pass": met})


def _quoted(text: str) -> list[str]:
    """The quoted texts of a judge's request, in their order: question, answer."""
    blocks = [
        [line[2:] for line in block.split("\n") if line.startswith("| ")]
        for block in re.split(r"\n\n(?!\|)", text)
    ]
    return ["\n".join(lines) for lines in blocks if lines] or [""]


def _renamed(line: str) -> str:
    """An answer under the name that was asked for, as endpoints give it that hide what serves."""
    return re.sub(r'("model":\s*)"[^"]*"', rf'\1"{LIVE}"', line)


def _answer(body: Json, text: str) -> Json:
    asked = "".join("".join(_parts(message["content"] or "")) for message in body["messages"])
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": max(1, min(len(asked), 40_000) // 4),
            "completion_tokens": max(1, len(text) // 4),
        },
    }


def _events(body: Json, text: str) -> bytes:
    """The same answer as a stream."""
    whole = _answer(body, text)
    head = {**whole, "object": "chat.completion.chunk", "choices": []}
    usage = head.pop("usage")
    delta = whole["choices"][0]["message"]
    parts = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {**head, "usage": usage},
    ]
    return "".join(f"data: {json.dumps(part)}\n\n" for part in parts).encode() + b"data: [DONE]\n\n"
