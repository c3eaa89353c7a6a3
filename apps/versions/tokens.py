"""Run-scoped tokens: what a worker shows the gateway to reach one external endpoint, and nothing else.

Signed and timestamped, so the gateway checks them without a query. The provider's key stays in
the gateway process.
"""

from dataclasses import dataclass

from django.core import signing

PREFIX = "fwr_"
MAX_AGE_S = 24 * 3600
_SALT = "flywheel.run-token"
_PURPOSE = "endpoint"


@dataclass(frozen=True)
class RunClaims:
    """What a token allows. ``scope`` is the run it was made for, as ``<app>.<object>:<id>``."""

    project_id: int
    deployment_id: int
    scope: str


def make_run_token(*, project_id: int, deployment_id: int, scope: str) -> str:
    claims = {"p": project_id, "d": deployment_id, "s": scope, "u": _PURPOSE}
    return PREFIX + signing.dumps(claims, salt=_SALT)


def verify_run_token(token: str, *, max_age_s: int = MAX_AGE_S) -> RunClaims | None:
    """The claims, or None for a token that is forged, too old, or made for something else."""
    if not token.startswith(PREFIX):
        return None
    try:
        claims = signing.loads(token.removeprefix(PREFIX), salt=_SALT, max_age=max_age_s)
    except signing.BadSignature:  # expired tokens are a kind of it
        return None
    if claims.get("u") != _PURPOSE:
        return None
    return RunClaims(project_id=claims["p"], deployment_id=claims["d"], scope=claims["s"])
