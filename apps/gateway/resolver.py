"""Name resolution for external endpoints: what may not be asked is not connected to.

The check is made on the very addresses that the connection then uses, so a name that resolves to
something else the second time gains nothing.
"""

import socket

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from apps.versions.addresses import AddressRefused, allowed


class CheckedResolver(AbstractResolver):
    """aiohttp's resolver without the addresses that no model may be served from. Raises AddressRefused
    (an OSError) where none is left. Hosts that are numbers never come here; ``Upstream`` looks at them.
    """

    def __init__(self, resolver: AbstractResolver | None = None) -> None:
        self._resolver = resolver or ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        kept = set(allowed(host, [entry["host"] for entry in found]))
        return [entry for entry in found if entry["host"] in kept]

    async def close(self) -> None:
        await self._resolver.close()


__all__ = ["AddressRefused", "CheckedResolver"]
