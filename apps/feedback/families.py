"""Families of tasks, each with the verifier that judges its next tasks."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.feedback.models import Family
from apps.feedback.verifiers import verifier_create


def family_ensure(
    *,
    project: Project,
    name: str,
    title: str = "",
    description: str = "",
    pack: str = "",
    verifier_kind: str,
    verifier_params: Mapping[str, Any] | None = None,
    by: Actor,
) -> Family:
    """The family called ``name`` with a verifier of this kind; making it again returns it."""
    with transaction.atomic():
        verifier = verifier_create(
            project=project, name=name, kind=verifier_kind, params=dict(verifier_params or {}), by=by
        )
        family, created = Family.objects.get_or_create(
            project=project,
            name=name,
            defaults={
                "title": title or name.replace("_", " ").capitalize(),
                "description": description,
                "pack": pack,
                "verifier": verifier,
            },
        )
        if created:
            audit(actor=by, action="family.create", obj=family)
        elif family.verifier_id != verifier.pk:
            family.verifier = verifier
            family.save(update_fields=["verifier"])
            audit(actor=by, action="family.verifier", obj=family, verifier=verifier.pk)
    return family
