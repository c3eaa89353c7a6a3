"""One operation of the data path as a row: what the spool holds and ``inferences_ingest`` takes.

A row is a flat dict of ids and numbers; text exists in it only as ciphertext (``content``):

    v                 1, the row's format
    project_id        int
    operation         "op_<32 hex>", unique: ingesting a row twice keeps one
    key_id            id of the ApiKey, None for a run-scoped token
    external_id       the caller's ``x-flywheel-external-id``, or "": one id is one capture
    family, source    ``x-flywheel-family``, ``x-flywheel-source`` (the cluster), or ""
    task_type         "interactive" | "batch" | "quality" | … or "" when none was named
    unit              keyed hash of session, user or key (32 hex)
    version_id        ModelVersion that served, None for external endpoints and when nothing served
    version, edition_kind   "1.1", "standard" | "high_speed", or "" for external endpoints
    deployment_id     what served, or None
    release_id, segment     the running release, None when there was none or the caller pinned a version
    assigned_arm      "control" | "canary", "" when the caller pinned a version or an endpoint
    served_arm        "control" | "canary", "" when nothing served or as above
    assigned_failed   True when the assigned arm was tried and could not answer, even if another did
    revision          number of the RoutingRevision that this process served
    status            HTTP status the caller got; 499 when it went away, 502 when its stream broke
    error             "" or a code: upstream_unreachable, upstream_timeout, upstream_error, upstream_cut,
                      upstream_malformed, model_not_loaded, client_disconnected, …
    failed            True when it failed by the service's fault (not for 499 and refused requests)
    attempts          [{"deployment_id", "arm", "edition_kind", "status", "error", "latency_ms"}], in order
    streamed          bool
    prompt_tokens, completion_tokens   int or None
    ttft_ms, latency_ms                float or None
    started_at        ISO 8601, UTC
    capture           "failure" | "sample" | "held" | "": why ``content`` is kept; "held" waits for feedback
    content           Fernet ciphertext (ASCII text; ``crypto.decrypt_json``) or None, of
                      {"messages": [...], "tools": [...], "answer": str, "tool_calls": [...]}
"""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

Row = dict[str, Any]
FORMAT = 1


def new_operation() -> str:
    return f"op_{secrets.token_hex(16)}"


def operation_is_sampled(operation: str, rate: float) -> bool:
    """Whether a success is kept as a sample: decided by its id, so that every reader agrees."""
    share = int(hashlib.sha256(operation.encode()).hexdigest()[:12], 16) / 16**12
    return share < rate


def capture_reason(record: "Record", policy: Mapping[str, Any]) -> str:
    """Why the operation's text is kept, "" when it is not: ``capture`` of the routing revision.

    Successes are held only as long as failures are wanted: feedback may turn one into a failure.
    """
    if record.content is None or record.error in _NOT_OURS:
        return ""
    if record.failed:
        return "failure" if policy.get("failures") else ""
    if operation_is_sampled(record.operation, float(policy.get("success_rate", 0.0))):
        return "sample"
    return "held" if policy.get("failures") else ""


# The caller went away, or the request itself was wrong: nothing to learn from.
_NOT_OURS = frozenset({"client_disconnected", "refused_by_model"})


@dataclass
class Record:
    """An operation while it runs; ``row()`` is what is written about it, once."""

    project_id: int
    operation: str
    unit: str
    revision: int | None
    key_id: int | None = None
    external_id: str = ""
    family: str = ""
    source: str = ""
    task_type: str = ""
    version_id: int | None = None
    version: str = ""
    edition_kind: str = ""
    deployment_id: int | None = None
    release_id: int | None = None
    segment: int | None = None
    assigned_arm: str = ""
    served_arm: str = ""
    assigned_failed: bool = False
    status: int = 0
    error: str = ""
    failed: bool = False
    attempts: list[dict[str, Any]] = field(default_factory=list)
    streamed: bool = False
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    ttft_ms: float | None = None
    latency_ms: float | None = None
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    capture: str = ""
    content: dict[str, Any] | None = None

    def row(self) -> Row:
        """Still with clear ``content``: the spool encrypts it before it writes."""
        return {**vars(self), "v": FORMAT, "started_at": self.started_at.isoformat()}
