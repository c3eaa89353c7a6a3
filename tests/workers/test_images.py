"""Pictures on their way to a target: they arrive whole, and a model without eyes says so."""

import base64
import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from PIL import Image

from domain.contracts import EngineTarget, EpisodeResult, RunEvalBatch, Sampling, TaskSpec
from packs.visual import PACK
from tests.workers.conftest import FakeContext
from workers.evals import run_eval_batch


class Seeing:
    """A chat endpoint that takes images: it answers by what picture it was shown, and only by that."""

    def __init__(self, answers: dict[bytes, str]) -> None:
        self.shown: list[bytes] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                _, image = body["messages"][-1]["content"]
                png = base64.b64decode(image["image_url"]["url"].partition(",")[2])
                Image.open(io.BytesIO(png)).verify()
                endpoint.shown.append(png)
                self._stream(answers.get(png, "I see nothing."))

            def _stream(self, text: str) -> None:
                events: list[dict[str, Any]] = [
                    {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]},
                    {"choices": [], "usage": {"prompt_tokens": 300, "completion_tokens": 3}},
                ]
                data = "".join(f"data: {json.dumps({'model': 'eyes', **event})}\n\n" for event in events)
                sent = (data + "data: [DONE]\n\n").encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def tasks() -> list[TaskSpec]:
    return [PACK.generate(family.name, seed=11, count=1)[0] for family in PACK.families]


@pytest.fixture
def seeing(tasks: list[TaskSpec]) -> Iterator[Seeing]:
    endpoint = Seeing({_png(task): str(PACK.gold_answer(task)) for task in tasks[:-1]})
    yield endpoint
    endpoint.stop()


def _png(task: TaskSpec) -> bytes:
    return base64.b64decode(task.messages[-1].content[1]["image_url"]["url"].partition(",")[2])  # type: ignore


def _evaluate(ctx: FakeContext, tasks: list[TaskSpec], target: EngineTarget) -> list[EpisodeResult]:
    digest = ctx.store.put_jsonl(task.model_dump(mode="json") for task in tasks)
    message = RunEvalBatch(
        tasks_digest=digest, indexes=tuple(range(len(tasks))), sampling=Sampling(), target=target
    )
    result = run_eval_batch(message, ctx)
    return [EpisodeResult.model_validate(row) for row in ctx.store.iter_jsonl(result.results_digest)]


def test_every_picture_arrives_as_it_was_drawn_and_is_judged_by_its_answer(
    ctx: FakeContext, tasks: list[TaskSpec], seeing: Seeing
) -> None:
    target = EngineTarget(base_url=seeing.url, model="eyes", protocol="chat")

    rows = _evaluate(ctx, tasks, target)

    assert sorted(seeing.shown) == sorted(map(_png, tasks))
    assert [row.state for row in rows] == ["passed"] * (len(tasks) - 1) + ["failed"]
    assert all(row.prompt_tokens == 300 for row in rows)


@pytest.mark.parametrize("protocol", ["tokens", "chat"])
def test_a_model_that_reads_text_only_is_an_error_that_says_so(
    ctx: FakeContext, tasks: list[TaskSpec], engine_url: str, protocol: Any
) -> None:
    target = EngineTarget(base_url=engine_url, model="pocket", protocol=protocol)

    rows = _evaluate(ctx, tasks[:2], target)

    assert {row.state for row in rows} == {"error"}
    assert all("reads text only" in row.error for row in rows), rows[0].error
