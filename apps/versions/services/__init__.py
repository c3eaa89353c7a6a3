"""Writes of versions: the registry, routing, engines and endpoints, releases."""

from apps.versions.services.deployments import (
    deployment_change_external,
    deployment_register_external,
    deployment_retire,
    deployment_test,
    engines_register,
)
from apps.versions.services.engines import engines_reconcile
from apps.versions.services.gate import release_evaluate, releases_tick, segments_of
from apps.versions.services.listeners import ReleaseNews
from apps.versions.services.observations import UnitObservation, release_units_record
from apps.versions.services.promotion import version_promote, version_roll_back
from apps.versions.services.registry import (
    base_model_register,
    edition_parity_record,
    evidence_record,
    installation_base_register,
    version_register,
)
from apps.versions.services.releases import (
    release_abort,
    release_acknowledge,
    release_pause,
    release_resume,
    release_start,
)
from apps.versions.services.routing import routing_change, routing_publish

__all__ = [
    "ReleaseNews",
    "UnitObservation",
    "base_model_register",
    "deployment_change_external",
    "deployment_register_external",
    "deployment_retire",
    "deployment_test",
    "edition_parity_record",
    "engines_reconcile",
    "engines_register",
    "evidence_record",
    "installation_base_register",
    "release_abort",
    "release_acknowledge",
    "release_evaluate",
    "release_pause",
    "release_resume",
    "release_start",
    "release_units_record",
    "releases_tick",
    "routing_change",
    "routing_publish",
    "segments_of",
    "version_promote",
    "version_register",
    "version_roll_back",
]
