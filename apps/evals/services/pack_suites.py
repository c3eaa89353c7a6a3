"""Suites drawn from installed packs: tasks that packs hold in reserve, which training never sees.

Some families take seconds to draw, so the cases are made in the background; the suite is there at
once, and an alert says what went wrong.
"""

from collections.abc import Sequence

from django.db import transaction

from apps.core.dispatch import dispatch
from apps.core.errors import Refused
from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.services import alert_raise, alert_resolve, audit
from apps.evals.models import Suite, SuiteVersion
from apps.evals.services.suites import suite_create, suite_slug, suite_version_create
from domain.contracts import TaskSpec
from packs.registry import Pack, UnknownPack, pack_of_family

MAX_FAMILIES, MAX_PER_FAMILY, MAX_CASES = 200, 500, 10_000


def pack_suite_create(
    *, project: Project, name: str, families: Sequence[str], per_family: int = 20, seed: int = 0, by: Actor
) -> Suite:
    """The suite ``name``, new or known; its next version, with ``per_family`` tasks of each family, follows
    in the background. Raises Refused for a family that no pack brings."""
    names = list(dict.fromkeys(families))
    if not 1 <= len(names) <= MAX_FAMILIES:
        raise Refused(f"Choose 1 to {MAX_FAMILIES} families.", code="families_count")
    if not 1 <= per_family <= MAX_PER_FAMILY:
        raise Refused(f"Take 1 to {MAX_PER_FAMILY} tasks of each family.", code="per_family_invalid")
    if len(names) * per_family > MAX_CASES:
        raise Refused(
            f"That would be {len(names) * per_family:,} cases; at most {MAX_CASES:,} are drawn at once.",
            code="suite_too_large",
        )
    for family in names:
        _pack(family)
    with transaction.atomic():
        suite = Suite.objects.filter(project=project, slug=suite_slug(name)).first()
        suite = suite or suite_create(
            project=project, name=name, description="Tasks that packs hold in reserve.", by=by
        )
        audit(actor=by, action="suite.draw", obj=suite, families=len(names), per_family=per_family, seed=seed)
        dispatch("evals.pack_suite_draw", suite.pk, names, per_family, seed, by.name)
    return suite


def pack_suite_draw(
    *, suite: Suite, families: Sequence[str], per_family: int, seed: int, by: Actor
) -> SuiteVersion | None:
    """Draw the cases and make the version. What a pack cannot do is an alert, and there is no version."""
    tasks: list[TaskSpec] = []
    for family in families:
        try:
            tasks += _pack(family).generate(family, seed=seed, count=per_family, reserved=True)
        except Exception as problem:  # a pack is somebody's code
            _alert(suite, family, problem)
            return None
    listed = ", ".join(families[:4]) + (f" and {len(families) - 4} more" if len(families) > 4 else "")
    try:
        version = suite_version_create(suite=suite, tasks=tasks, note=f"{listed}, seed {seed}", by=by)
    except Refused as problem:
        _alert(suite, families[0], problem)
        return None
    alert_resolve(project=suite.project, key=_key(suite))
    return version


def _alert(suite: Suite, family: str, problem: Exception) -> None:
    said = problem.message if isinstance(problem, Refused) else f"{type(problem).__name__}: {problem}"
    alert_raise(
        project=suite.project,
        key=_key(suite),
        title=f"The cases of {suite.name} could not be drawn",
        detail=f"Family {family}: {said}"[:500],
        url=suite.get_absolute_url(),
        level="warn",
    )


def _key(suite: Suite) -> str:
    return f"pack_suite:{suite.pk}"


def _pack(family: str) -> Pack:
    try:
        return pack_of_family(family)
    except UnknownPack:
        raise Refused(f"No installed pack brings the family “{family[:100]}”.", code="pack_missing") from None
