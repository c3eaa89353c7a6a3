"""Messages on the queues. Requests are imperatives, reports are past facts.

A queue message is only a hint; the database row is the truth. Small results ride in the
message, anything large is an artifact and the message carries its digest.
"""

from typing import Any

from pydantic import Field

from domain.contracts.base import Contract
from domain.contracts.tasks import EngineTarget, Sampling


class UnitRequest(Contract):
    """Web side to worker: run attempt ``attempt`` of unit ``unit_id``.

    ``payload`` is one of the ``Run…`` messages below, chosen by ``kind``.
    """

    unit_id: int
    attempt: int = Field(ge=1)
    kind: str
    payload: dict[str, Any]


class UnitStarted(Contract):
    unit_id: int
    attempt: int
    worker: str


class UnitHeartbeat(Contract):
    unit_id: int
    attempt: int
    progress: dict[str, Any] = Field(default_factory=dict)


class UnitFinished(Contract):
    """``result`` is one of the ``…Result`` messages below, as JSON."""

    unit_id: int
    attempt: int
    result: dict[str, Any]


class UnitFailed(Contract):
    """``retryable`` is False for what a new attempt cannot mend (bad task, refused adapter)."""

    unit_id: int
    attempt: int
    error: str
    retryable: bool = True


class RunEvalBatch(Contract):
    """Evaluate the ``TaskSpec`` list stored as a JSONL artifact under ``tasks_digest``.

    ``indexes`` selects lines of that artifact; results come back as a JSONL artifact of
    ``EpisodeResult``. ``cache`` lets answers of earlier runs to the very same request stand in for new
    ones. ``journal`` names what batches of one run share, so that a batch that runs some of the cases
    again finds answers whose scoring broke off; "": only another attempt of this batch finds them.
    """

    tasks_digest: str
    indexes: tuple[int, ...]
    sampling: Sampling
    target: EngineTarget
    concurrency: int = Field(default=16, ge=1, le=1024)
    judges: dict[str, EngineTarget] = Field(default_factory=dict)  # by the name that verifiers call; "": any
    cache: bool = False
    journal: str = ""


class EvalBatchResult(Contract):
    results_digest: str
    counts: dict[str, int]
    pipeline: dict[str, float] = Field(default_factory=dict)  # busy shares, queue depth, seconds


class RunRolloutBatch(Contract):
    """Generate ``group_size`` trajectories for each selected task under one policy version."""

    tasks_digest: str
    indexes: tuple[int, ...]
    group_size: int = Field(ge=2, le=256)
    temperature: float = Field(gt=0.0, le=2.0)
    seed: int
    target: EngineTarget
    policy_version: int
    concurrency: int = Field(default=64, ge=1, le=4096)
    retire: tuple[str, ...] = ()  # adapters that no unit needs any more; the engine forgets them
    judges: dict[str, EngineTarget] = Field(default_factory=dict)


class RolloutBatchResult(Contract):
    """``trajectories_digest`` names a Parquet artifact, one row per trajectory."""

    trajectories_digest: str
    policy_version: int
    counts: dict[str, int]
    reward_mean: float | None = None
    pass_rate: float | None = None
    completion_tokens_mean: float | None = None
    groups_zero_variance: int = 0
    families: dict[str, dict[str, float | int | None]] = Field(default_factory=dict)
    tasks: dict[str, float | None] = Field(default_factory=dict)  # task id -> pass rate in its group
    pipeline: dict[str, float] = Field(default_factory=dict)  # busy shares, queue depth, seconds


class RunTrainSegment(Contract):
    """Consume rollout artifacts and make policy version ``policy_version + 1``.

    ``checkpoint_digest`` is empty for the first segment. ``config`` is a ``TrainConfig``
    (``contracts.training``) as JSON; ``run_slug`` and the attempt name the adapter.
    """

    run_slug: str
    segment: int
    attempt: int = 1
    policy_version: int
    base_model: str
    base_digest: str = ""
    init_adapter_digest: str = ""
    checkpoint_digest: str = ""
    rollout_digests: tuple[str, ...]
    config: dict[str, Any]


class TrainSegmentResult(Contract):
    """``metrics`` are finite numbers only; what could not be measured is absent."""

    policy_version: int
    checkpoint_digest: str
    adapter_digest: str
    metrics: dict[str, float]
    tokens_trained: int = 0
    skipped: str = ""


class RunVerifyBatch(Contract):
    """Judge stored answers, without a model: the admission gauntlet of a verifier.

    ``items_digest`` names a JSONL artifact of ``{"task": TaskSpec, "answer": str, "turns": [str]}``.
    ``turns``, where not empty, are what a model says turn by turn in the task's environment; else
    ``answer`` is its one answer. Each is judged ``repeats`` times, because a verifier that changes
    its mind may not train anything. With ``keep_evidence`` no environment is played: answers are judged
    as they stand, and what the judges replied comes back with each result.
    """

    items_digest: str
    repeats: int = Field(default=3, ge=1, le=10)
    judges: dict[str, EngineTarget] = Field(default_factory=dict)
    keep_evidence: bool = False


class VerifyBatchResult(Contract):
    """``results_digest`` names a JSONL artifact in the order of the items: ``{"states": [...],
    "reasons": [...]}`` with states passed, failed, unscored or error, one per repeat. Where evidence was
    asked for each line also has ``scores``, one per repeat, and ``evidence``, that of the last one."""

    results_digest: str
    counts: dict[str, int]


class RunPackCheck(Contract):
    """Check families of the installed packs for real: ``sample`` tasks of each, drawn with ``seed``;
    known-good answers, doing nothing, and known-bad answers. No ``families``: all."""

    families: tuple[str, ...] = ()
    sample: int = Field(default=5, ge=1, le=1000)
    seed: int = 0


class FamilyCheck(Contract):
    """The record of one family's last check. Rates are shares of judged answers in [0, 1]: good ones
    that passed, empty ones that passed, bad ones that passed. None: there was none to judge, or the
    verifier decided nothing. ``problems`` are sentences, the first ten."""

    name: str
    pack: str
    tasks: int
    verifier_kinds: tuple[str, ...] = ()
    checked_at: str = ""  # ISO 8601, UTC
    seed: int = 0
    gold_pass: float | None = None
    noop_pass: float | None = None
    bad_pass: float | None = None
    errors: int = 0
    problems: tuple[str, ...] = ()


class PackCheckResult(Contract):
    families: tuple[FamilyCheck, ...]
