"""Typed payloads that cross a process boundary: frozen, versioned by golden JSON tests.

Every model here ignores nothing and allows nothing extra, so that a misspelt field is an
error at the boundary rather than a default later on.
"""

from domain.contracts.base import Contract
from domain.contracts.messages import (
    EvalBatchResult,
    FamilyCheck,
    PackCheckResult,
    RolloutBatchResult,
    RunEvalBatch,
    RunPackCheck,
    RunRolloutBatch,
    RunTrainSegment,
    RunVerifyBatch,
    TrainSegmentResult,
    UnitFailed,
    UnitFinished,
    UnitHeartbeat,
    UnitRequest,
    UnitStarted,
    VerifyBatchResult,
)
from domain.contracts.tasks import ChatMessage, EngineTarget, HiddenCheck, Sampling, TaskSpec, VerifierSpec
from domain.contracts.trajectory import EpisodeResult, FileChange, Flag, SandboxStep, Step, Trajectory
from domain.contracts.verdicts import Check, Verdict

__all__ = [
    "ChatMessage",
    "Check",
    "Contract",
    "EngineTarget",
    "EpisodeResult",
    "EvalBatchResult",
    "FamilyCheck",
    "FileChange",
    "Flag",
    "HiddenCheck",
    "PackCheckResult",
    "RolloutBatchResult",
    "RunEvalBatch",
    "RunPackCheck",
    "RunRolloutBatch",
    "RunTrainSegment",
    "RunVerifyBatch",
    "Sampling",
    "SandboxStep",
    "Step",
    "TaskSpec",
    "TrainSegmentResult",
    "Trajectory",
    "UnitFailed",
    "UnitFinished",
    "UnitHeartbeat",
    "UnitRequest",
    "UnitStarted",
    "Verdict",
    "VerifierSpec",
    "VerifyBatchResult",
]
