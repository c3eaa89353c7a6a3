"""What surrounds one unit: its reports to the web side, its heartbeat, its end.

Reports are one-way. There is no cancel signal to a worker: the web side discards the result of a
unit that nobody wants any more, and units are short. ``cancelled()`` is therefore true only when
this process has been asked to stop (SIGTERM). The unit then has a few seconds to finish; after them
it is ended where it stands and reported as worth another attempt.
"""

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

from artifacts import ArtifactStore, get_store
from domain.contracts import UnitFailed, UnitFinished, UnitHeartbeat, UnitRequest, UnitStarted
from domain.contracts.base import Contract
from workers.context import UnitRefused

logger = logging.getLogger(__name__)

HEARTBEAT_S = 5.0
GRACE_S = 4.0  # supervisord kills after 8


class Send(Protocol):
    """Puts one report on the web side's queue."""

    def __call__(self, report: dict[str, Any]) -> None: ...


class UnitStopped(SystemExit):
    """The worker is shutting down. Like ``SystemExit`` it passes through an event loop and through
    code that handles every ``Exception``."""


class UnitContext:
    """What the function that does the work may use. Thread-safe."""

    def __init__(self, *, store: ArtifactStore, worker: str) -> None:
        self.store = store
        self.worker = worker
        self._progress: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._when_reported: list[Callable[[], object]] = []

    def progress(self, values: dict[str, Any]) -> None:
        """Remember ``values`` (JSON) for the next heartbeat; cheap, later values win."""
        with self._lock:
            self._progress.update(values)

    def when_reported(self, action: Callable[[], object]) -> None:
        """Run ``action`` after the unit's result was sent: what another attempt would need until then
        may go."""
        self._when_reported.append(action)

    def reported(self) -> None:
        for action in self._when_reported:
            try:
                action()
            except Exception as error:  # the result is out; what is left behind expires by itself
                logger.warning("not tidied up after a unit: %s", describe(error))

    def cancelled(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        self._stopping.set()

    def snapshot(self) -> dict[str, Any]:
        with self._lock:
            return dict(self._progress)


Work = Callable[[UnitContext], Contract]


def run_unit(
    request: UnitRequest,
    work: Work,
    *,
    send: Send,
    worker: str,
    permanent: tuple[type[Exception], ...] = (),
    heartbeat_s: float = HEARTBEAT_S,
    grace_s: float = GRACE_S,
) -> None:
    """Do ``work`` and report started, heartbeats, and finished or failed. Raises what ``send`` raises.

    Errors in ``permanent`` are not worth another attempt. The report names an error by its type:
    its text may hold what a customer wrote.
    """
    ids = {"unit_id": request.unit_id, "attempt": request.attempt}
    context = UnitContext(store=get_store(), worker=worker)
    send(as_report(UnitStarted(**ids, worker=worker)))
    logger.info("unit %d attempt %d started", request.unit_id, request.attempt)
    try:
        with _heartbeat(ids, context, send, heartbeat_s), _stops_on_sigterm(context, grace_s):
            result = work(context)
    except BaseException as error:
        retryable = not isinstance(error, permanent)
        send(as_report(UnitFailed(**ids, error=describe(error), retryable=retryable)))
        logger.warning("unit %d attempt %d failed: %s", request.unit_id, request.attempt, describe(error))
        if isinstance(error, KeyboardInterrupt):
            raise
        return
    send(as_report(UnitFinished(**ids, result=result.model_dump(mode="json"))))
    context.reported()
    logger.info("unit %d attempt %d finished", request.unit_id, request.attempt)


def as_report(message: Contract) -> dict[str, Any]:
    """``message`` as JSON with its class name under ``type``."""
    return {"type": type(message).__name__, **message.model_dump(mode="json")}


def describe(error: BaseException) -> str:
    """Type and place in our code: enough to find it, and no text of anyone. A refusal's text is
    written for people and holds none either."""
    if isinstance(error, UnitRefused):
        return str(error)
    frames, trace = [], error.__traceback__
    while trace is not None:
        frames.append(f"{trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}")
        trace = trace.tb_next
    ours = [frame for frame in frames if frame.split(".")[0] in ("workers", "domain", "artifacts")]
    return f"{type(error).__name__} at {(ours or frames or ['?'])[-1]}"


@contextmanager
def _heartbeat(ids: dict[str, int], context: UnitContext, send: Send, every_s: float) -> Iterator[None]:
    done = threading.Event()

    def beat() -> None:
        while not done.wait(every_s):
            try:
                send(as_report(UnitHeartbeat(**ids, progress=context.snapshot())))
            except Exception as error:  # the next beat may get through; a few lost ones are harmless
                logger.warning("unit %d heartbeat not sent: %s", ids["unit_id"], describe(error))

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(timeout=2.0)


@contextmanager
def _stops_on_sigterm(context: UnitContext, grace_s: float) -> Iterator[None]:
    """SIGTERM goes on to Celery, which ends the process once the unit has ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)

    def stop(number: int, frame: FrameType | None) -> None:
        context.stop()
        signal.setitimer(signal.ITIMER_REAL, grace_s)
        if callable(before):
            before(number, frame)

    def end(number: int, frame: FrameType | None) -> None:
        raise UnitStopped("the worker is shutting down")

    signal.signal(signal.SIGTERM, stop)
    alarm = signal.signal(signal.SIGALRM, end)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarm)
        signal.signal(signal.SIGTERM, before)
