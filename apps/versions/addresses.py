"""Which addresses an external endpoint may be served from.

Link-local addresses and those of metadata services carry a machine's credentials: nobody may point an
endpoint there, neither by number nor by a name that is made to resolve there. So a name is looked at
twice: when it is entered, and every time it was resolved, just before a connection is made.

Private networks are allowed, because models run there; ``FLYWHEEL_PRIVATE_ENDPOINTS=false`` forbids
them where people who may register endpoints must not reach the inside.
"""

import ipaddress
import socket
import unicodedata
from functools import lru_cache

from django.conf import settings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Where clouds answer with a machine's credentials outside of the link-local ranges.
_METADATA = frozenset(ipaddress.ip_address(text) for text in ("fd00:ec2::254", "100.100.100.200"))
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_COMPATIBLE = ipaddress.ip_network("::/96")


class AddressRefused(OSError):
    """A name resolves to nothing but addresses that models are not served from."""


def host_refused(host: str) -> bool:
    """Whether ``host``, as it stands in a URL, names such an address without being resolved."""
    host = host_normalized(host)
    address = address_of(host)
    if address is not None:
        return address_refused(address)
    return host == "metadata" or host.endswith(".google.internal")


def address_refused(address: Address | str) -> bool:
    """Whether a connection to ``address`` may not be made."""
    return _refused(str(address).partition("%")[0], settings.PRIVATE_ENDPOINTS)


def resolve_allowed(host: str, port: int) -> list[str]:
    """The addresses of ``host`` that may be asked. Raises AddressRefused if there is none, and what
    the resolver raises."""
    found = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    return allowed(host, found)


def allowed(host: str, found: list[str]) -> list[str]:
    """Those of the addresses ``found`` for ``host`` that may be asked. Raises AddressRefused for none."""
    kept = [] if host_refused(host) else [address for address in found if not address_refused(address)]
    if not kept:
        raise AddressRefused("the name resolves to an address that no model may be served from")
    return kept


def host_normalized(host: str) -> str:
    return unicodedata.normalize("NFKC", host).replace("\u3002", ".").rstrip(".").lower()


def address_of(host: str) -> Address | None:
    """``host`` as the number that a connection would go to, None if it is a name.

    Resolvers also take 2852039166, 0xa9fea9fe, 169.254.43518 and ::ffff:169.254.169.254.
    """
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except (OSError, ValueError):
            return None


@lru_cache(maxsize=4096)
def _refused(text: str, private_allowed: bool) -> bool:
    try:
        address = _inner(ipaddress.ip_address(text))
    except ValueError:
        return True
    if address.is_link_local or address.is_multicast or address.is_unspecified or address in _METADATA:
        return True
    return not private_allowed and not address.is_global


def _inner(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one, where the network would take it out."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and (address in _NAT64 or (address in _COMPATIBLE and int(address) > 1)):
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return inner or address
