"""A project's failure kinds and severities, as numbered revisions."""

from typing import Any

from django.db import transaction

from apps.core.errors import Conflict, Refused
from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.feedback.models import Label, LabelSchema
from domain.taxonomy import FAILURE_KINDS, SEVERITIES

NOT_A_FAILURE = "not_a_failure"


def schema_in_force(project: Project) -> LabelSchema:
    """The latest revision; a project without one works with the default kinds, as number 1."""
    latest = LabelSchema.objects.filter(project=project).first()
    return latest or LabelSchema(
        project=project, number=1, kinds=default_kinds(), severities=default_severities(), created_by="system"
    )


def schema_revise(
    *, project: Project, kinds: list[dict[str, str]], severities: list[dict[str, str]], by: Actor
) -> LabelSchema:
    """Make the next revision. A kind keeps its slug for ever: a new title renames it on every label
    that uses it. Raises ``Conflict`` when a kind or severity in use would vanish."""
    for rows, what in ((kinds, "kind"), (severities, "severity")):
        slugs = [row.get("slug", "") for row in rows]
        if (
            not rows
            or not all(slugs)
            or len(set(slugs)) != len(slugs)
            or not all(r.get("title") for r in rows)
        ):
            raise Refused(f"Every {what} needs its own slug and a title.", code="schema_invalid")
    with transaction.atomic():
        mine = Label.objects.filter(case__project=project, undone_at=None)
        for field, rows in (("kind", kinds), ("severity", severities)):
            used = set(mine.exclude(**{field: ""}).values_list(field, flat=True).distinct())
            gone = sorted(used - {row["slug"] for row in rows})
            if gone:
                raise Conflict(f"“{gone[0]}” is used by labels and cannot be removed.", code="label_used")
        number = schema_in_force(project).number + 1
        schema = LabelSchema.objects.create(
            project=project, number=number, kinds=kinds, severities=severities, created_by=by.name
        )
        audit(actor=by, action="label_schema.revise", obj=schema, number=number)
    return schema


def titles(schema: LabelSchema) -> dict[str, str]:
    """Slug to title, of kinds and severities together."""
    return {row["slug"]: row["title"] for row in [*schema.kinds, *schema.severities]}


def default_kinds() -> list[dict[str, Any]]:
    rows = [
        {"slug": kind.slug, "title": kind.name, "key": kind.key, "help": kind.description}
        for kind in FAILURE_KINDS
    ]
    return [
        *rows,
        {"slug": NOT_A_FAILURE, "title": "Not a failure", "key": "0", "help": "The answer is fine."},
    ]


def default_severities() -> list[dict[str, Any]]:
    return [{"slug": row.slug, "title": row.name, "help": row.description} for row in SEVERITIES]
