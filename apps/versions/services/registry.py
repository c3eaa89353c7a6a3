"""The registry: base models, versions with their two editions, and evidence about them."""

import re
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from apps.core.errors import Refused
from apps.core.events import publish
from apps.core.lineage import Node, lineage_record
from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.versions.models import BaseModel, Edition, EditionKind, Evidence, ModelVersion, ServiceChange
from apps.versions.services.deployments import engines_register
from apps.versions.services.history import put_in_service
from apps.versions.services.locking import project_lock
from apps.versions.services.routing import routing_publish
from artifacts import get_store

_DIGEST = re.compile(r"[0-9a-f]{64}")
_ADAPTER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
# What an edition is served with when nobody chose otherwise.
_PROFILES: dict[str, dict[str, Any]] = {
    EditionKind.STANDARD: {"speculation": "none"},
    EditionKind.HIGH_SPEED: {"speculation": "prompt_lookup"},
}


def installation_base_register(*, project: Project, by: Actor) -> BaseModel:
    """The base model that this installation's engines hold, so that a project can serve at once."""
    return base_model_register(
        project=project,
        name=settings.BASE_MODEL_NAME,
        engine_name=settings.BASE_MODEL_NAME,
        path=settings.BASE_MODEL_PATH,
        by=by,
    )


def base_model_register(
    *, project: Project, name: str, engine_name: str, path: str, by: Actor, digest: str = ""
) -> BaseModel:
    """Register fixed weights and their first version ``<major>.0``; a known name finds its row.

    A project's very first version goes into service at once: there is nothing to compare it with,
    and without it the gateway has no one to ask.
    """
    name = name.strip()
    if not name or not engine_name.strip() or not path.strip():
        raise Refused(
            "A base model needs a name, the name its engines use, and a path.", code="base_incomplete"
        )
    with transaction.atomic():
        project_lock(project)
        base = BaseModel.objects.filter(project=project, name=name).first()
        if base is None:
            base = BaseModel.objects.create(
                project=project, name=name, engine_name=engine_name.strip(), path=path.strip(), digest=digest
            )
            audit(actor=by, action="base_model.register", obj=base)
        engines_register(project=project, by=by)
        version_register(project=project, base=base, by=by)
    return base


def version_register(
    *,
    project: Project,
    base: BaseModel,
    by: Actor,
    parent: ModelVersion | None = None,
    adapter_name: str = "",
    adapter_digest: str = "",
    origin: str = "",
    origin_label: str = "",
    origin_url: str = "",
    notes: str = "",
) -> ModelVersion:
    """Register a version with both editions. Idempotent per ``origin``.

    Without an adapter this is the base itself, ``<major>.0``, of which there is one. With one it is
    the next minor number. Refused: an adapter that is not in the store, a name that is taken.
    """
    origin = origin or ("" if adapter_digest else f"versions.base:{base.pk}")
    with transaction.atomic():
        project_lock(project)
        known = ModelVersion.objects.filter(project=project, origin=origin).first() if origin else None
        if known is not None:
            return known
        _check_adapter(project, base, parent, adapter_name, adapter_digest)
        major, minor = _next_number(project, base, is_base=not adapter_digest)
        version = ModelVersion.objects.create(
            project=project,
            base=base,
            parent=parent or (_base_version(base) if adapter_digest else None),
            number=f"{major}.{minor}",
            major=major,
            minor=minor,
            adapter_name=adapter_name,
            adapter_digest=adapter_digest,
            origin=origin,
            origin_label=origin_label or (origin if adapter_digest else f"base {base.name}"),
            notes=notes,
            created_by=by.name,
        )
        Edition.objects.bulk_create(
            Edition(version=version, kind=kind, profile=profile) for kind, profile in _PROFILES.items()
        )
        if adapter_digest:
            parent_node = Node(origin, origin_label or origin, origin_url) if origin else None
            if parent_node is None and version.parent is not None:
                parent_node = Node(
                    version.parent.lineage_key, f"version {version.parent}", version.parent.get_absolute_url()
                )
            if parent_node is not None:
                lineage_record(
                    project=project,
                    parent=parent_node,
                    child=Node(version.lineage_key, f"version {version}", version.get_absolute_url()),
                )
        audit(actor=by, action="version.register", obj=version, number=version.number, origin=origin)
        publish(project=project, topic=version.lineage_key, kind="VersionRegistered", version=version.number)
        _serve_if_first(version, by)
    return version


def _base_version(base: BaseModel) -> ModelVersion | None:
    return base.versions.filter(adapter_digest="").first()


def _check_adapter(
    project: Project, base: BaseModel, parent: ModelVersion | None, name: str, digest: str
) -> None:
    if base.project_id != project.pk or (parent is not None and parent.project_id != project.pk):
        raise Refused("Base and parent must belong to this project.", code="base_foreign")
    if not digest and not name:
        return
    if parent is not None and parent.base_id != base.pk:
        raise Refused(
            f"An adapter fits one base only: {parent} rests on {parent.base}, not on {base}.",
            code="parent_on_other_base",
        )
    if not _DIGEST.fullmatch(digest):
        raise Refused("The adapter digest is 64 hexadecimal characters (SHA-256).", code="digest_malformed")
    if not _ADAPTER_NAME.fullmatch(name):
        raise Refused(
            "An adapter name has letters, digits, dots, dashes and underscores, at most 120.",
            code="adapter_name",
        )
    # Engines keep what they once loaded under a name, so a name never gets other weights.
    if ModelVersion.objects.filter(adapter_name=name).exclude(adapter_digest=digest).exists():
        raise Refused(
            f"The adapter name “{name}” already stands for other weights. Choose a new name.",
            code="adapter_name_taken",
        )
    if not get_store().exists(digest):
        raise Refused(
            f"There is no artifact {digest[:12]}… in the store.", code="adapter_missing", status=404
        )


def _next_number(project: Project, base: BaseModel, *, is_base: bool) -> tuple[int, int]:
    """The base's own major number, or a fresh one; minors count up and are never reused."""
    known = base.versions.aggregate(major=Max("major"), minor=Max("minor"))
    if known["major"] is not None:
        return known["major"], known["minor"] + 1
    top = ModelVersion.objects.filter(project=project).aggregate(major=Max("major"))["major"]
    return (top or 0) + 1, 0 if is_base else 1


def _serve_if_first(version: ModelVersion, by: Actor) -> None:
    if version.adapter_digest or ServiceChange.objects.filter(project=version.project).exists():
        return
    reason = "First version of the project"
    put_in_service(
        version=version,
        previous=None,
        kind=ServiceChange.Kind.PROMOTE,
        reason=reason,
        by=by,
        without_evidence=True,
    )
    audit(actor=by, action="version.promote", obj=version, reason=reason, without_evidence=True)
    routing_publish(project=version.project, reason=f"{version} in service: {reason.lower()}", by=by)


def evidence_record(
    *,
    version: ModelVersion,
    kind: str,
    source: str,
    title: str,
    sentence: str,
    edition_kind: str = "",
    verdict: str = "",
    data: dict[str, Any] | None = None,
    url: str = "",
) -> Evidence:
    """Store what was found out about a version (or one edition of it); the same source replaces its finding.

    ``kind`` is suite, comparison, speed, non_inferiority, gate or gate_override; ``verdict`` is a state of
    the measurement (passed, better, worse, undecided, …).
    """
    if edition_kind and edition_kind not in EditionKind.values:
        raise Refused(f"“{edition_kind}” is not an edition.", code="edition_unknown")
    with transaction.atomic():
        evidence, _ = Evidence.objects.update_or_create(
            version=version,
            edition_kind=edition_kind,
            kind=kind,
            source=source,
            defaults={
                "title": title[:200],
                "sentence": sentence,
                "verdict": verdict,
                "data": data or {},
                "url": url,
            },
        )
        publish(
            project=version.project, topic=version.lineage_key, kind="EvidenceRecorded", evidence=evidence.pk
        )
    return evidence


def edition_parity_record(
    *, version: ModelVersion, compared: int, differing: int, ties: int, source: str, url: str = ""
) -> Evidence:
    """Record how often the high-speed edition answered otherwise than the standard one at temperature 0.

    ``compared`` is the number of prompts, ``differing`` how many answers differed, ``ties`` how many of
    those split where the two best tokens were within 1e-4 (rounding, not another model).
    """
    if not 0 <= ties <= differing <= compared:
        raise Refused(
            "Ties are part of the differing answers, and those of all compared.", code="parity_counts"
        )
    unexplained = differing - ties
    if compared == 0:
        verdict, sentence = "no_data", "No prompts were compared yet."
    elif unexplained == 0:
        verdict = "passed"
        sentence = f"Identical to standard on {compared:,} prompts" + (
            f"; {ties} ended in a tie of the two best tokens." if ties else "."
        )
    else:
        verdict = "failed"
        sentence = f"{unexplained} of {compared:,} answers differ from standard without a tie to explain it."
    return evidence_record(
        version=version,
        edition_kind=EditionKind.HIGH_SPEED,
        kind="non_inferiority",
        source=source,
        title="High-speed against standard",
        sentence=sentence,
        verdict=verdict,
        data={"compared": compared, "differing": differing, "ties": ties},
        url=url,
    )
