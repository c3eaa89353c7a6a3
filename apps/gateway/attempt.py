"""One attempt's room at its endpoint, and the time that it may take."""

import asyncio
from typing import Any

from apps.gateway.endpoints import PATIENT, URGENT, EndpointKeeper, Slot
from apps.gateway.errors import UpstreamError
from apps.gateway.jobs import Job
from domain.routing import Target

# How long a person's request may wait for an endpoint's limits.
_PATIENCE_S = 5.0


class Attempt:
    """An attempt's room at its endpoint and its time; nothing of both where it goes to an engine of ours."""

    def __init__(self, keeper: EndpointKeeper, job: Job) -> None:
        self._keeper, self._job = keeper, job
        self._slot: Slot | None = None
        self._deadline: float | None = None

    async def enter(self, target: Target, body: bytes) -> None:
        """Wait for the endpoint's limits. Raises GatewayError 429 where that takes too long."""
        terms, job = self._job.terms, self._job
        if terms is None:
            return
        self.leave(None)
        self._slot = await self._keeper.enter(
            target.deployment_id,
            terms,
            tokens=job.tokens(body),
            patience_s=terms.deadline_s if job.run else _PATIENCE_S,
            rank=PATIENT if job.run else URGENT,
            share=job.gateways,
        )
        job.waited_s += self._slot.waited_s
        if job.run:
            self._deadline = asyncio.get_running_loop().time() + terms.timeout_s

    def time(self) -> "_Time":
        """Raises UpstreamError when the attempt's time is over; what the caller reads counts as well."""
        return _Time(self._deadline)

    def failed(self, target: Target, error: UpstreamError) -> None:
        """Nobody asks an endpoint before the time that it named."""
        if target.external and error.retry_after_s is not None:
            self._keeper.pause(target.deployment_id, error.retry_after_s)

    def leave(self, tokens_used: int | None) -> None:
        if self._slot is not None:
            self._slot.leave(tokens_used)
            self._slot = None


class _Time:
    """Until ``deadline``, a time of the loop; None: for ever."""

    def __init__(self, deadline: float | None) -> None:
        self._limit = None if deadline is None else asyncio.timeout_at(deadline)

    async def __aenter__(self) -> None:
        if self._limit is not None:
            await self._limit.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        if self._limit is not None:
            try:
                await self._limit.__aexit__(*error)
            except TimeoutError:
                raise UpstreamError("upstream_timeout", next_target=False) from None
