"""What one key may use: requests and tokens a minute, and operations in flight.

Token buckets per process: with N gateway processes a key gets up to N times its limit. A bucket
holds one minute's worth, so a burst of that size passes.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from apps.gateway.errors import GatewayError


class Limits(NamedTuple):
    requests_per_minute: float
    tokens_per_minute: float
    in_flight: int


@dataclass
class _Bucket:
    level: float
    at: float

    def refill(self, capacity: float, now: float) -> None:
        self.level = min(capacity, self.level + (now - self.at) * capacity / 60.0)
        self.at = now


class LimitKeeper:
    """``enter`` takes a ticket or raises 429; ``leave`` returns it and charges the tokens used."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._requests: dict[str, _Bucket] = {}
        self._tokens: dict[str, _Bucket] = {}
        self._in_flight: dict[str, int] = {}

    def enter(self, key: str, limits: Limits) -> None:
        now = self._clock()
        requests = self._bucket(self._requests, key, limits.requests_per_minute, now)
        tokens = self._bucket(self._tokens, key, limits.tokens_per_minute, now)
        if requests.level < 1.0:
            wait_s = (1.0 - requests.level) * 60.0 / limits.requests_per_minute
            raise GatewayError(
                429, "This key sent too many requests.", code="rate_limited", retry_after_s=wait_s
            )
        if tokens.level < 1.0:
            wait_s = (1.0 - tokens.level) * 60.0 / limits.tokens_per_minute
            raise GatewayError(
                429, "This key used up its token budget.", code="token_budget_spent", retry_after_s=wait_s
            )
        if self._in_flight.get(key, 0) >= limits.in_flight:
            raise GatewayError(
                429, "This key has too many requests in flight.", code="too_many_in_flight", retry_after_s=1.0
            )
        requests.level -= 1.0
        self._in_flight[key] = self._in_flight.get(key, 0) + 1

    def leave(self, key: str, tokens_used: int) -> None:
        left = self._in_flight.get(key, 1) - 1
        if left > 0:
            self._in_flight[key] = left
        else:
            self._in_flight.pop(key, None)
        if key in self._tokens:
            self._tokens[key].level -= tokens_used

    def in_flight(self, key: str | None = None) -> int:
        return sum(self._in_flight.values()) if key is None else self._in_flight.get(key, 0)

    def forget_idle(self, older_than_s: float = 300.0) -> None:
        """Drop buckets that are full again, so that memory follows the keys in use."""
        horizon = self._clock() - older_than_s
        for buckets in (self._requests, self._tokens):
            for key in [key for key, bucket in buckets.items() if bucket.at < horizon]:
                if key not in self._in_flight and (buckets is self._requests or buckets[key].level > 0):
                    del buckets[key]

    def _bucket(self, buckets: dict[str, _Bucket], key: str, capacity: float, now: float) -> _Bucket:
        bucket = buckets.get(key)
        if bucket is None:
            bucket = buckets[key] = _Bucket(capacity, now)
        bucket.refill(capacity, now)
        return bucket
