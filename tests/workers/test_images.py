"""Pictures on their way to a target: they arrive whole, and a model without eyes says so."""

import base64
import io
from collections.abc import Iterator
from typing import Any

import pytest
from PIL import Image

from domain.contracts import EngineTarget, EpisodeResult, RunEvalBatch, Sampling, TaskSpec
from packs.visual import PACK
from tests.endpoints import ChatEndpoint
from tests.workers.conftest import FakeContext
from workers.evals import run_eval_batch


class Seeing(ChatEndpoint):
    """A chat endpoint that takes images: it answers by what picture it was shown, and only by that."""

    def __init__(self, answers: dict[bytes, str]) -> None:
        self.shown: list[bytes] = []
        self._answers = answers
        super().__init__(self._says, tokens=(300, 3))

    def _says(self, body: dict[str, Any]) -> str:
        _, image = body["messages"][-1]["content"]
        png = base64.b64decode(image["image_url"]["url"].partition(",")[2])
        Image.open(io.BytesIO(png)).verify()
        self.shown.append(png)
        return self._answers.get(png, "I see nothing.")


@pytest.fixture
def tasks() -> list[TaskSpec]:
    return [PACK.generate(family.name, seed=11, count=1)[0] for family in PACK.families]


@pytest.fixture
def seeing(tasks: list[TaskSpec]) -> Iterator[Seeing]:
    with Seeing({_png(task): str(PACK.gold_answer(task)) for task in tasks[:-1]}) as endpoint:
        yield endpoint


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
