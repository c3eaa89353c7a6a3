"""What a unit reports, whatever happens to it."""

import os
import signal
import threading
import time
from typing import Any

import pytest

from domain.contracts import EvalBatchResult, UnitRequest
from tests.waiting import GUARD_S, until
from workers import tasks
from workers.runtime import UnitContext, run_unit

RESULT = EvalBatchResult(results_digest="0" * 64, counts={"passed": 1})


class Reports(list[dict[str, Any]]):
    """Stands for the web side's queue."""

    def __call__(self, report: dict[str, Any]) -> None:
        self.append(report)

    @property
    def types(self) -> list[str]:
        return [report["type"] for report in self]


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> Reports:
    found = Reports()
    monkeypatch.setattr(tasks, "send_report", found)
    return found


def request(**changes: Any) -> UnitRequest:
    return UnitRequest(**{"unit_id": 7, "attempt": 2, "kind": "eval_batch", "payload": {}, **changes})


def run(work: Any, reports: Reports, **options: Any) -> None:
    run_unit(request(), work, send=reports, worker="w1", **options)


def test_a_unit_that_ends_well_says_started_and_finished(reports: Reports) -> None:
    run(lambda context: RESULT, reports)

    assert reports == [
        {"type": "UnitStarted", "unit_id": 7, "attempt": 2, "worker": "w1"},
        {"type": "UnitFinished", "unit_id": 7, "attempt": 2, "result": RESULT.model_dump(mode="json")},
    ]


def test_heartbeats_carry_the_progress(reports: Reports) -> None:
    def work(context: UnitContext) -> EvalBatchResult:
        context.progress({"done": 3, "of": 10})
        already = len(reports)
        until(lambda: reports.types[already:].count("UnitHeartbeat") >= 2, what="two heartbeats")
        return RESULT

    run(work, reports, heartbeat_s=0.05)

    beats = [report for report in reports if report["type"] == "UnitHeartbeat"]
    assert len(beats) >= 2
    assert beats[-1]["progress"] == {"done": 3, "of": 10}
    assert reports.types[-1] == "UnitFinished"


def test_a_lost_heartbeat_does_not_end_the_unit(reports: Reports) -> None:
    lost: list[str] = []

    def flaky(report: dict[str, Any]) -> None:
        if report["type"] == "UnitHeartbeat":
            lost.append(report["type"])
            raise ConnectionError("broker away")
        reports(report)

    def work(context: UnitContext) -> EvalBatchResult:
        until(lambda: len(lost) >= 2, what="two heartbeats are lost")
        return RESULT

    run_unit(request(), work, send=flaky, worker="w1", heartbeat_s=0.03)

    assert reports.types == ["UnitStarted", "UnitFinished"]


def test_an_error_is_reported_by_type_and_place_and_without_its_text(
    reports: Reports, caplog: pytest.LogCaptureFixture
) -> None:
    def work(context: UnitContext) -> EvalBatchResult:
        raise RuntimeError("Ada Lovelace, 4111 1111 1111 1111")

    run(work, reports)

    assert reports[-1]["type"] == "UnitFailed"
    assert reports[-1]["retryable"] is True
    assert reports[-1]["error"].startswith("RuntimeError at ")
    assert "Ada" not in str(reports) + caplog.text


def test_what_another_attempt_cannot_mend_is_not_retried(reports: Reports) -> None:
    def work(context: UnitContext) -> EvalBatchResult:
        raise KeyError("gone")

    run(work, reports, permanent=(LookupError,))

    assert reports[-1]["retryable"] is False


def test_a_unit_asked_to_stop_may_still_finish(reports: Reports) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))

    def work(context: UnitContext) -> EvalBatchResult:
        os.kill(os.getpid(), signal.SIGTERM)
        assert context.cancelled()
        return RESULT

    try:
        run(work, reports, grace_s=GUARD_S)
    finally:
        signal.signal(signal.SIGTERM, before)

    assert reports.types[-1] == "UnitFinished"
    assert heard == [signal.SIGTERM]
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_unit_that_does_not_stop_is_ended_and_worth_another_attempt(reports: Reports) -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def work(context: UnitContext) -> EvalBatchResult:
        os.kill(os.getpid(), signal.SIGTERM)
        while True:
            try:
                time.sleep(60)
            except Exception:
                continue

    try:
        run(work, reports, grace_s=0.1)
    finally:
        signal.signal(signal.SIGTERM, before)

    assert reports[-1]["type"] == "UnitFailed"
    assert reports[-1]["retryable"] is True


def test_progress_may_come_from_many_threads(reports: Reports) -> None:
    def work(context: UnitContext) -> EvalBatchResult:
        threads = [threading.Thread(target=context.progress, args=({str(i): i},)) for i in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(context.snapshot()) == 20
        return RESULT

    run(work, reports)

    assert reports.types[-1] == "UnitFinished"


@pytest.mark.parametrize(
    "message",
    [
        {"unit_id": 7, "attempt": 2, "kind": "mine_coins", "payload": {}},
        {"unit_id": 7, "attempt": 2, "kind": "eval_batch", "payload": {"tasks": "Ada Lovelace"}},
        {"unit_id": 7, "attempt": 2, "kind": "eval_batch", "payload": {}, "extra": "Ada Lovelace"},
    ],
)
def test_a_malformed_message_fails_its_unit_for_good_and_logs_ids_only(
    reports: Reports, caplog: pytest.LogCaptureFixture, message: dict[str, Any]
) -> None:
    tasks.run_unit_task(message)

    assert reports.types == ["UnitFailed"]
    assert (reports[0]["unit_id"], reports[0]["retryable"]) == (7, False)
    assert "unit 7 attempt 2" in caplog.text
    assert "Ada" not in caplog.text + str(reports)


def test_a_message_that_names_no_unit_is_dropped_with_a_line(
    reports: Reports, caplog: pytest.LogCaptureFixture
) -> None:
    tasks.run_unit_task({"prompt": "Ada Lovelace"})

    assert reports == []
    assert "without a unit" in caplog.text
    assert "Ada" not in caplog.text


def test_every_kind_names_a_function_that_exists() -> None:
    import importlib.util
    from pathlib import Path

    for kind in tasks.KINDS.values():
        spec = importlib.util.find_spec(kind.module)
        assert spec is not None
        assert spec.origin is not None
        assert f"def {kind.function}(" in Path(spec.origin).read_text()
