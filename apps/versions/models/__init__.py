"""Base models, versions, editions, deployments, routing, releases, evidence."""

from apps.versions.models.deployments import Deployment, ServiceChange
from apps.versions.models.registry import (
    EVALUATION_KINDS,
    BaseModel,
    Edition,
    EditionKind,
    Evidence,
    ModelVersion,
)
from apps.versions.models.releases import Release, ReleasePoint, ReleaseUnit
from apps.versions.models.routing import (
    RoutingRevision,
    RoutingRules,
    default_failure_signals,
    default_task_types,
)

__all__ = [
    "EVALUATION_KINDS",
    "BaseModel",
    "Deployment",
    "Edition",
    "EditionKind",
    "Evidence",
    "ModelVersion",
    "Release",
    "ReleasePoint",
    "ReleaseUnit",
    "RoutingRevision",
    "RoutingRules",
    "ServiceChange",
    "default_failure_signals",
    "default_task_types",
]
