"""Answers are kept until their unit is over, and found again only by the very same request."""

import errno
import io
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from artifacts import ArtifactStore, Scratch
from domain.contracts import (
    ChatMessage,
    EngineTarget,
    EpisodeResult,
    EvalBatchResult,
    RunEvalBatch,
    Sampling,
    TaskSpec,
    Verdict,
    VerifierSpec,
)
from domain.verifiers import verify
from tests.endpoints import EchoEndpoint
from tests.waiting import until
from tests.workers.conftest import FakeContext
from workers.answer_journal import KEEP_S, AnswerJournal, journals_sweep
from workers.engine.replies import ChatCompletion, Completion
from workers.evals import run_eval_batch
from workers.remembering import answer_key

TARGET = EngineTarget(base_url="http://gateway", model="endpoint:a", protocol="chat", identity="a1")
ASKED: dict[str, Any] = {"messages": [{"role": "user", "content": "6 * 7?"}], "tools": []}


@pytest.fixture
def endpoint() -> Iterator[EchoEndpoint]:
    with EchoEndpoint() as endpoint:
        yield endpoint


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYWHEEL_RESPONSE_CACHE", str(tmp_path / "cache"))


def key(target: EngineTarget = TARGET, **changes: Any) -> str:
    options = {"sampling": Sampling(), "max_tokens": 16, "seed": 1, "sample": 0, **changes}
    return answer_key(target, options.pop("asked", ASKED), options.pop("sampling"), **options)


@pytest.mark.parametrize(
    "changes",
    [
        {"target": TARGET.model_copy(update={"identity": "b1"})},
        {"target": TARGET.model_copy(update={"model": "endpoint:b"})},
        {"target": TARGET.model_copy(update={"adapter_digest": "f" * 64})},
        {"target": TARGET.model_copy(update={"protocol": "tokens"})},
        {"target": TARGET.model_copy(update={"identity": "", "base_url": "http://other"})},
        {"sampling": Sampling(temperature=0.7)},
        {"sampling": Sampling(top_p=0.9)},
        {"max_tokens": 17},
        {"seed": 2},
        {"sample": 1},
        {"asked": {**ASKED, "tools": [{"type": "function"}]}},
        {"asked": {**ASKED, "messages": [{"role": "user", "content": "6 * 8?"}]}},
        {"asked": {**ASKED, "messages": [{"role": "system", "content": "6 * 7?"}]}},
        {"asked": {"prompt_ids": [1, 2]}},
    ],
)
def test_whatever_could_change_an_answer_changes_its_key(changes: dict[str, Any]) -> None:
    assert key(**changes) != key()


def test_a_token_and_the_limits_change_no_key() -> None:
    other = TARGET.model_copy(update={"token": "fwr_2", "max_concurrency": 3, "timeout_s": 5.0})

    assert key(other) == key()


def test_lm_eval_4063_the_cache_of_model_a_says_nothing_about_model_b(
    ctx: FakeContext, endpoint: EchoEndpoint
) -> None:
    a, b = (_target(endpoint, identity=name, model=f"endpoint:{name}") for name in "ab")
    _evaluate(ctx, a, cache=True)
    asked = len(endpoint.asked)

    of_b = _evaluate(ctx, b, cache=True)
    again = _evaluate(ctx, a, cache=True)

    assert len(endpoint.asked) == 2 * asked
    assert not any(row.cached for row in of_b)
    assert all(row.cached and row.state == "passed" for row in again)


def test_without_being_asked_for_the_cache_is_neither_read_nor_written(
    ctx: FakeContext, endpoint: EchoEndpoint, tmp_path: Path
) -> None:
    for _ in range(2):
        rows = _evaluate(ctx, _target(endpoint))
        assert not any(row.cached for row in rows)

    assert len(endpoint.asked) == 8
    assert not (tmp_path / "cache").exists()


def test_a_cached_answer_was_not_timed(ctx: FakeContext, endpoint: EchoEndpoint) -> None:
    first = _evaluate(ctx, _target(endpoint), cache=True)
    again = _evaluate(ctx, _target(endpoint), cache=True)

    assert all(row.latency_ms is not None and row.ttft_ms is not None for row in first)
    assert all(row.latency_ms is None and row.ttft_ms is None and row.per_token_ms is None for row in again)
    assert [(row.answer, row.completion_tokens) for row in again] == [
        (row.answer, row.completion_tokens) for row in first
    ]


def test_samples_of_one_case_have_answers_of_their_own(ctx: FakeContext, endpoint: EchoEndpoint) -> None:
    _evaluate(ctx, _target(endpoint), cache=True, samples=3)

    assert len(endpoint.asked) == 12
    assert all(row.cached for row in _evaluate(ctx, _target(endpoint), cache=True, samples=3))


def test_errors_are_never_cached(ctx: FakeContext, endpoint: EchoEndpoint) -> None:
    endpoint.statuses = [400] * 4
    failed = _evaluate(ctx, _target(endpoint), cache=True)

    answered = _evaluate(ctx, _target(endpoint), cache=True)

    assert {row.state for row in failed} == {"error"}
    assert all(row.state == "passed" and not row.cached for row in answered)


def test_attempts_are_counted_for_each_result(ctx: FakeContext, endpoint: EchoEndpoint) -> None:
    endpoint.statuses = [500, 429]

    rows = _evaluate(ctx, _target(endpoint), concurrency=1)

    assert [row.attempts for row in rows] == [3, 1, 1, 1]
    assert all(row.state == "passed" for row in rows)


def test_an_error_says_how_many_attempts_it_took(ctx: FakeContext, endpoint: EchoEndpoint) -> None:
    endpoint.statuses = [500] * 100

    rows = _evaluate(ctx, _target(endpoint, max_attempts=2))

    assert [(row.state, row.attempts) for row in rows] == [("error", 2)] * 4
    assert "answered 500" in rows[0].error


def test_a_finished_unit_leaves_no_journal(ctx: FakeContext, endpoint: EchoEndpoint) -> None:
    _evaluate(ctx, _target(endpoint))

    assert Scratch(ctx.store).names("journals") == []


def test_lm_eval_2140_all_answers_are_there_and_scoring_crashes(
    ctx: FakeContext, endpoint: EchoEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rerun is another unit of the run: other cases in it, another token, nothing left to generate."""
    target = _target(endpoint)
    with monkeypatch.context() as broken:
        broken.setattr("workers.episode.verify", _crash_at_the_last())
        with pytest.raises(ZeroDivisionError):
            _evaluate(ctx, target, journal="evals.run:3", concurrency=16)
    asked = len(endpoint.asked)
    assert asked == 4

    later = target.model_copy(update={"token": "fwr_another"})
    rows = _evaluate(ctx, later, journal="evals.run:3", indexes=(1, 2, 3))

    assert len(endpoint.asked) == asked
    assert [(row.state, row.cached) for row in rows] == [("passed", False)] * 3
    assert all(row.latency_ms is not None for row in rows)


def test_the_journal_of_another_run_says_nothing(
    ctx: FakeContext, endpoint: EchoEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("workers.episode.verify", _crash_at_the_last())
        with pytest.raises(ZeroDivisionError):
            _evaluate(ctx, _target(endpoint), journal="evals.run:3")

    _evaluate(ctx, _target(endpoint), journal="evals.run:4")

    assert len(endpoint.asked) == 8


def test_a_worker_killed_between_generation_and_judging_costs_no_answer(
    ctx: FakeContext, endpoint: EchoEndpoint, tmp_path: Path
) -> None:
    """A real process and a real SIGKILL: its judge never returns from the last of four answers."""
    message = _message(ctx, _target(endpoint))
    (tmp_path / "message.json").write_text(message.model_dump_json())
    command = [
        sys.executable,
        "-m",
        "tests.workers.stuck_judge",
        ctx.store.url,
        str(tmp_path / "message.json"),
    ]
    worker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: _journaled(ctx) >= 4 or worker.poll() is not None, what="the worker keeps its answers")
        assert worker.poll() is None, "the worker ended by itself"
    finally:
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
    assert len(endpoint.asked) == 4

    rows = _rows(ctx, run_eval_batch(message, ctx))

    assert len(endpoint.asked) == 4
    assert [row.state for row in rows] == ["passed"] * 4
    assert Scratch(ctx.store).names("journals") == []


def test_a_torn_journal_costs_the_torn_answers_only(
    ctx: FakeContext, endpoint: EchoEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("workers.episode.verify", _crash_at_the_last())
        with pytest.raises(ZeroDivisionError):
            _evaluate(ctx, _target(endpoint), concurrency=16)
    scratch = Scratch(ctx.store)
    kept = b"".join(scratch.get(name) or b"" for name in scratch.names("journals"))
    for name in scratch.names("journals"):
        scratch.put(name, b"")
    scratch.put(scratch.names("journals")[0], kept[: len(kept) - 30] + b"\n[1]\n{}\nnull\n")

    rows = _evaluate(ctx, _target(endpoint))

    assert len(endpoint.asked) == 5
    assert [row.state for row in rows] == ["passed"] * 4


async def test_tokens_come_back_from_the_journal_as_they_were(ctx: FakeContext) -> None:
    message = _message(ctx, TARGET)
    reply = Completion((5, 2), (-0.5, -0.25), "x", "stop", 3, 2, "m", 7.0)
    journal = AnswerJournal(ctx.store, message)
    await journal.keep("k", {**_slots(reply)})
    journal.close()

    later = AnswerJournal(ctx.store, message)
    later.load()

    assert Completion(**later.find("k")).token_ids == [5, 2]  # type: ignore[comparison-overlap]
    assert later.found == 1


@pytest.mark.parametrize("place", ["file://{}", "memory://{}"])
async def test_an_answer_is_kept_before_its_judging_begins_wherever_artifacts_lie(
    ctx: FakeContext, tmp_path: Path, place: str
) -> None:
    store = ArtifactStore(place.format(tmp_path / "artifacts"))
    message = _message(ctx, TARGET)
    journal = AnswerJournal(store, message)

    for number in range(3):
        await journal.keep(f"k{number}", {"text": "é"})
        later = AnswerJournal(store, message)
        later.load()
        assert later.found == number + 1

    journal.close()
    journal.remove()
    assert Scratch(store).names("journals") == []


async def test_a_full_disk_costs_the_journal_and_not_the_evaluation(
    ctx: FakeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.RawIOBase):
        def write(self, data: Any) -> int:
            raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(Scratch, "begin", lambda self, name: Full())
    journal = AnswerJournal(ctx.store, _message(ctx, TARGET))

    await journal.keep("k", {})

    assert journal.found == 0


async def test_a_line_that_was_torn_does_not_tear_the_next(
    ctx: FakeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, begun = Scratch.begin, []

    def torn_at_first(self: Scratch, name: str) -> Any:
        begun.append(name)
        file = begin(self, name)
        if len(begun) > 1:
            return file
        return SimpleNamespace(write=lambda data: file.write(data[:5]), close=file.close)

    monkeypatch.setattr(Scratch, "begin", torn_at_first)
    message = _message(ctx, TARGET)
    journal = AnswerJournal(ctx.store, message)

    await journal.keep("torn", {})
    await journal.keep("whole", {"text": "yes"})

    journal.close()
    later = AnswerJournal(ctx.store, message)
    later.load()
    assert (later.find("torn"), later.find("whole")) == (None, {"text": "yes"})


async def test_what_nobody_came_back_for_is_swept_away(ctx: FakeContext) -> None:
    journal = AnswerJournal(ctx.store, _message(ctx, TARGET))
    await journal.keep("k", {})
    journal.close()
    now = datetime.now(UTC)

    assert journals_sweep(ctx.store, now + timedelta(seconds=KEEP_S - 60)) == 0
    assert journals_sweep(ctx.store, now + timedelta(seconds=KEEP_S + 60)) == 1
    assert Scratch(ctx.store).names("journals") == []


def _crash_at_the_last(episodes: int = 4) -> Callable[..., Verdict]:
    """Judges all but the last episode: when that is judged, every answer has been given and kept."""
    judged = itertools.count(1)

    def judge(*arguments: Any) -> Verdict:
        if next(judged) == episodes:
            raise ZeroDivisionError
        return verify(*arguments)

    return judge


def _slots(reply: Completion | ChatCompletion) -> dict[str, Any]:
    return {name: getattr(reply, name) for name in type(reply).__slots__}


def _target(endpoint: EchoEndpoint, **changes: Any) -> EngineTarget:
    values = {"identity": "a", "model": "endpoint:a", "max_attempts": 5, "deadline_s": 60.0, **changes}
    return EngineTarget(base_url=endpoint.url, protocol="chat", token="fwr_x", **values)


def _message(ctx: FakeContext, target: EngineTarget, **changes: Any) -> RunEvalBatch:
    tasks = [
        TaskSpec(
            id=f"q{n}",
            family="f",
            messages=(ChatMessage(role="user", content=f"Say {n}."),),
            verifier=VerifierSpec(kind="exact"),
            reference=f"Say {n}.",
        )
        for n in range(4)
    ]
    values = {"indexes": tuple(range(4)), "sampling": Sampling(samples=changes.pop("samples", 1)), **changes}
    digest = ctx.store.put_jsonl(task.model_dump(mode="json") for task in tasks)
    return RunEvalBatch(tasks_digest=digest, target=target, **values)


def _evaluate(ctx: FakeContext, target: EngineTarget, **changes: Any) -> list[EpisodeResult]:
    return _rows(ctx, run_eval_batch(_message(ctx, target, **changes), ctx))


def _rows(ctx: FakeContext, result: EvalBatchResult) -> list[EpisodeResult]:
    return [EpisodeResult.model_validate(row) for row in ctx.store.iter_jsonl(result.results_digest)]


def _journaled(ctx: FakeContext) -> int:
    scratch = Scratch(ArtifactStore(ctx.store.url))
    return sum((scratch.get(name) or b"").count(b"\n") for name in scratch.names("journals"))
