"""Token buckets and tickets."""

import pytest

from apps.gateway.errors import GatewayError
from apps.gateway.limits import LimitKeeper, Limits


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_fills_with_time() -> None:
    clock = Clock()
    keeper = LimitKeeper(clock)
    limits = Limits(60, 1000, 10)
    for _ in range(60):
        keeper.enter("k", limits)
        keeper.leave("k", 0)

    with pytest.raises(GatewayError) as caught:
        keeper.enter("k", limits)
    clock.now = 1.0
    keeper.enter("k", limits)

    assert caught.value.code == "rate_limited"
    assert caught.value.headers() == [(b"retry-after", b"1")]


def test_tokens_used_beyond_the_budget_are_paid_back_before_the_next_request() -> None:
    clock = Clock()
    keeper = LimitKeeper(clock)
    limits = Limits(1000, 60, 10)
    keeper.enter("k", limits)
    keeper.leave("k", 90)

    with pytest.raises(GatewayError) as caught:
        keeper.enter("k", limits)
    clock.now = 31.0
    keeper.enter("k", limits)

    assert caught.value.code == "token_budget_spent"
    assert caught.value.retry_after_s == pytest.approx(31.0)


def test_keys_do_not_share_limits() -> None:
    keeper = LimitKeeper(Clock())
    keeper.enter("a", Limits(1, 10, 1))

    keeper.enter("b", Limits(1, 10, 1))

    assert keeper.in_flight() == 2


def test_a_ticket_is_returned() -> None:
    keeper = LimitKeeper(Clock())
    limits = Limits(100, 100, 1)
    keeper.enter("k", limits)

    with pytest.raises(GatewayError) as caught:
        keeper.enter("k", limits)
    keeper.leave("k", 0)
    keeper.enter("k", limits)

    assert caught.value.code == "too_many_in_flight"


def test_idle_keys_are_forgotten_and_debts_are_not() -> None:
    clock = Clock()
    keeper = LimitKeeper(clock)
    for key, used in (("idle", 0), ("debtor", 10_000)):
        keeper.enter(key, Limits(10, 10, 1))
        keeper.leave(key, used)
    clock.now = 1000.0

    keeper.forget_idle()

    with pytest.raises(GatewayError):
        keeper.enter("debtor", Limits(10, 10, 1))
    assert set(keeper._tokens) == {"debtor"}
