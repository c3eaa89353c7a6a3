"""The limits of external endpoints: whoever asks, all requests to one endpoint stand in one line.

A request waits here, in order of arrival, until the endpoint has room for it: requests at once,
requests a minute, tokens a minute. People's requests go before those of runs, which can wait. Rates are
token buckets that hold a tenth of a minute's worth, so no minute sees more than the limit and a tenth.
With several gateway processes each keeps an equal share.

Tokens are reserved by estimate when a request starts, and put right when its usage is known.
"""

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from apps.gateway.errors import GatewayError

_BURST = 0.1  # of a minute's worth
PAUSE_CAP_S = 120.0  # of what an endpoint may ask for
URGENT, PATIENT = 0, 1


class EndpointTerms(NamedTuple):
    """Rates are per minute; None is no limit. ``timeout_s`` bounds one attempt of a run."""

    max_concurrency: int = 16
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    timeout_s: float = 60.0
    deadline_s: float = 600.0


@dataclass
class _Bucket:
    """``rate`` a second into ``capacity``; None lets everything through."""

    rate: float | None = None
    capacity: float = 0.0
    level: float = 0.0
    at: float = 0.0

    def limit(self, per_minute: float | None, now: float) -> None:
        """Take over a limit. A changed one starts full."""
        rate = None if per_minute is None else per_minute / 60.0
        if rate == self.rate:
            return
        self.rate, self.capacity = rate, max(1.0, (per_minute or 0.0) * _BURST)
        self.level, self.at = self.capacity, now

    def wait_s(self, amount: float, now: float) -> float:
        """Seconds until ``amount`` is there; 0.0 when it is. More than fits waits until it is full."""
        if self.rate is None:
            return 0.0
        self.level = min(self.capacity, self.level + (now - self.at) * self.rate)
        self.at = now
        # A rounding error must not cost another turn of the clock.
        return max(0.0, min(amount, self.capacity) - self.level - 1e-9) / self.rate

    def take(self, amount: float) -> None:
        if self.rate is not None:
            self.level -= amount


@dataclass
class _Waiter:
    tokens: float
    ready: asyncio.Future[None]


@dataclass
class _Lane:
    """One endpoint's line."""

    most: int = 1
    in_flight: int = 0
    requests: _Bucket = field(default_factory=_Bucket)
    tokens: _Bucket = field(default_factory=_Bucket)
    closed_until: float = 0.0
    line: list[tuple[int, int, _Waiter]] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None


class Slot:
    """Room for one attempt. ``leave`` gives it back, once; ``waited_s`` is how long it took to get."""

    def __init__(self, keeper: "EndpointKeeper", key: int, reserved: float, waited_s: float) -> None:
        self.waited_s = waited_s
        self._keeper, self._key, self._reserved = keeper, key, reserved
        self._open = True

    def leave(self, tokens_used: int | None) -> None:
        """``tokens_used`` None: not known, so the estimate stands."""
        if self._open:
            self._open = False
            used = self._reserved if tokens_used is None else tokens_used
            self._keeper._leave(self._key, used - self._reserved)


class EndpointKeeper:
    """The lines of all endpoints of one process. For one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lanes: dict[int, _Lane] = {}
        self._order = itertools.count()

    async def enter(
        self,
        key: int,
        terms: EndpointTerms,
        *,
        tokens: float,
        patience_s: float,
        rank: int = PATIENT,
        share: int = 1,
    ) -> Slot:
        """Wait for room for a request of about ``tokens`` tokens. Raises GatewayError 429 after
        ``patience_s``. ``share`` is the number of gateway processes that keep these limits."""
        lane, started = self._lane(key, terms, share), self._clock()
        reserved = tokens if terms.tokens_per_minute is not None else 0.0
        if lane.line or self._wait_s(lane, reserved) != 0.0:
            waiter = _Waiter(reserved, asyncio.get_running_loop().create_future())
            heapq.heappush(lane.line, (rank, next(self._order), waiter))
            self._pump(lane)
            await self._turn(lane, waiter, patience_s)
        else:
            self._take(lane, reserved)
        return Slot(self, key, reserved, self._clock() - started)

    def pause(self, key: int, seconds: float) -> None:
        """The endpoint said when it may be asked again: nothing is sent before."""
        lane = self._lanes.get(key)
        if lane is not None:
            lane.closed_until = max(lane.closed_until, self._clock() + min(seconds, PAUSE_CAP_S))

    def waiting(self, key: int) -> int:
        lane = self._lanes.get(key)
        return 0 if lane is None else sum(not waiter.ready.done() for _, _, waiter in lane.line)

    def in_flight(self, key: int) -> int:
        return self._lanes[key].in_flight if key in self._lanes else 0

    async def _turn(self, lane: _Lane, waiter: _Waiter, patience_s: float) -> None:
        try:
            async with asyncio.timeout(patience_s):
                await waiter.ready
        except BaseException as error:
            if waiter.ready.done() and not waiter.ready.cancelled():  # its turn came in this very moment
                self._give_back(lane, -waiter.tokens)
            waiter.ready.cancel()
            if not isinstance(error, TimeoutError):
                raise
            raise GatewayError(
                429,
                "The endpoint's limits left no room for this request in time.",
                code="endpoint_busy",
                retry_after_s=max(1.0, self._wait_s(lane, waiter.tokens) or 0.0),
            ) from None

    def _lane(self, key: int, terms: EndpointTerms, share: int) -> _Lane:
        lane, now, share = self._lanes.setdefault(key, _Lane()), self._clock(), max(1, share)
        lane.most = max(1, terms.max_concurrency // share)
        for bucket, limit in (
            (lane.requests, terms.requests_per_minute),
            (lane.tokens, terms.tokens_per_minute),
        ):
            bucket.limit(None if limit is None else limit / share, now)
        return lane

    def _wait_s(self, lane: _Lane, tokens: float) -> float | None:
        """Seconds until a request could start; None: not before another one ends."""
        if lane.in_flight >= lane.most:
            return None
        now = self._clock()
        return max(
            0.0, lane.closed_until - now, lane.requests.wait_s(1.0, now), lane.tokens.wait_s(tokens, now)
        )

    def _take(self, lane: _Lane, tokens: float) -> None:
        lane.in_flight += 1
        lane.requests.take(1.0)
        lane.tokens.take(tokens)

    def _leave(self, key: int, tokens_more: float) -> None:
        self._give_back(self._lanes[key], tokens_more)

    def _give_back(self, lane: _Lane, tokens_more: float) -> None:
        lane.in_flight -= 1
        lane.tokens.take(tokens_more)
        self._pump(lane)

    def _pump(self, lane: _Lane) -> None:
        """Let in whoever is next while there is room; come back when there will be."""
        if lane.timer is not None:
            lane.timer.cancel()
            lane.timer = None
        while lane.line:
            waiter = lane.line[0][2]
            if waiter.ready.done():
                heapq.heappop(lane.line)
                continue
            wait_s = self._wait_s(lane, waiter.tokens)
            if wait_s is None:
                return
            if wait_s > 0.0:
                loop = waiter.ready.get_loop()
                lane.timer = loop.call_later(wait_s, self._pump, lane)
                return
            heapq.heappop(lane.line)
            self._take(lane, waiter.tokens)
            waiter.ready.set_result(None)
