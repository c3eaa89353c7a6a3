"""Who calls: an API key or a run-scoped token, checked against the snapshot, without a query."""

from dataclasses import dataclass

from apps.core.crypto import key_digest, keyed_hash
from apps.gateway.errors import GatewayError
from apps.gateway.http import Request
from apps.gateway.limits import Limits
from apps.gateway.snapshot import Snapshot, SnapshotHolder
from apps.versions.tokens import PREFIX as RUN_PREFIX
from apps.versions.tokens import RunClaims, verify_run_token

_KEY_PREFIX = "fw_"
# A run is held back by its endpoint's limits alone: those of keys are for people.
_RUN_LIMITS = Limits(1e9, 1e12, 1_000_000)


@dataclass(frozen=True)
class Caller:
    """``identity`` names the caller in limits and, hashed, as the unit of last resort."""

    project_id: int
    scopes: frozenset[str]
    limits: Limits
    identity: str
    key_id: int | None = None
    run: RunClaims | None = None

    def require(self, *scopes: str) -> None:
        """Any one of ``scopes`` is enough."""
        if not self.scopes.intersection(scopes):
            wanted = " or ".join(f"“{scope}”" for scope in scopes)
            raise GatewayError(403, f"This API key lacks the scope {wanted}.", code="missing_scope")


async def identify(request: Request, snapshots: SnapshotHolder) -> Caller:
    """Raises GatewayError 401 for a missing, unknown, revoked or expired credential."""
    token = request.bearer()
    if not token:
        raise GatewayError(401, "Send an API key: “Authorization: Bearer fw_…”.", code="missing_api_key")
    if token.startswith(RUN_PREFIX):
        return _run_caller(token)
    if not token.startswith(_KEY_PREFIX):
        raise _unknown_key()
    digest = key_digest(token)
    caller = _key_caller(snapshots.current, digest)
    if caller is None:  # made a moment ago, it is in the next snapshot
        await snapshots.next_load()
        caller = _key_caller(snapshots.current, digest)
    if caller is None and snapshots.loaded_at is None:
        raise GatewayError(
            503, "The gateway has not reached its database yet.", code="not_ready", retry_after_s=2.0
        )
    if caller is None:
        raise _unknown_key()
    return caller


def unit_of(request: Request, body: dict[str, object], caller: Caller) -> str:
    """The keyed hash of session, user or caller: what stays on one arm. Never the value itself."""
    value = request.header("x-flywheel-session", 500) or body.get("user") or caller.identity
    return keyed_hash(f"unit:{caller.project_id}", str(value))


def _key_caller(snapshot: Snapshot, digest: str) -> Caller | None:
    key = snapshot.keys.get(digest)
    if key is None:
        return None
    return Caller(key.project_id, key.scopes, key.limits, f"key:{key.id}", key_id=key.id)


def _run_caller(token: str) -> Caller:
    claims = verify_run_token(token)
    if claims is None:
        raise GatewayError(401, "This run token is forged or expired.", code="invalid_run_token")
    identity = f"run:{claims.project_id}:{claims.scope}"
    return Caller(claims.project_id, frozenset({"gateway"}), _RUN_LIMITS, identity, run=claims)


def _unknown_key() -> GatewayError:
    return GatewayError(401, "This API key is unknown or revoked.", code="invalid_api_key")
