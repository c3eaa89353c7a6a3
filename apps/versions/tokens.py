"""Run-scoped tokens: what a worker shows the gateway to reach one external endpoint, and nothing else.

Signed and timestamped, so the gateway checks them without a query. The provider's key stays in
the gateway process.
"""

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

from django.conf import settings
from django.core import signing

PREFIX = "fwr_"
MAX_AGE_S = 24 * 3600
_SALT = "flywheel.run-token"
_PURPOSE = "endpoint"
_KNOWN_MOST = 256


@dataclass(frozen=True)
class RunClaims:
    """What a token allows. ``scope`` is the run it was made for, as ``<app>.<object>:<id>``."""

    project_id: int
    deployment_id: int
    scope: str


class _Known(NamedTuple):
    claims: RunClaims
    signed_at: float  # seconds since the epoch


# A run shows its one token thousands of times. Only what was found genuine is kept, under the key it was
# signed with, so that nobody's forgeries push it out.
_known: OrderedDict[tuple[str, str], _Known] = OrderedDict()


def make_run_token(*, project_id: int, deployment_id: int, scope: str) -> str:
    claims = {"p": project_id, "d": deployment_id, "s": scope, "u": _PURPOSE}
    return PREFIX + signing.dumps(claims, salt=_SALT)


def verify_run_token(token: str, *, max_age_s: int = MAX_AGE_S) -> RunClaims | None:
    """The claims, or None for a token that is forged, too old, or made for something else."""
    if not token.startswith(PREFIX):
        return None
    place = (token, settings.SECRET_KEY)
    known = _known.get(place) or _verified(token)
    if known is None or time.time() - known.signed_at > max_age_s:
        return None
    if place not in _known:
        _known[place] = known
        if len(_known) > _KNOWN_MOST:
            _known.popitem(last=False)
    return known.claims


def _verified(token: str) -> _Known | None:
    signed = token.removeprefix(PREFIX)
    try:
        claims = signing.loads(signed, salt=_SALT)
        signed_at = signing.b62_decode(signed.rsplit(":", 2)[1])
    except (signing.BadSignature, IndexError, ValueError):
        return None
    if claims.get("u") != _PURPOSE:
        return None
    return _Known(RunClaims(project_id=claims["p"], deployment_id=claims["d"], scope=claims["s"]), signed_at)
