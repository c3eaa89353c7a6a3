"""A project's anonymization rules: what is masked, what is kept, and own patterns; numbered revisions."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import regex  # type: ignore[import-untyped]
from django.db import transaction

from apps.core.errors import Refused
from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.services import audit
from apps.feedback.models import AnonymizationRules

MASK_FROM = 0.5
PATTERN_TIMEOUT_S = 0.2
# Kinds that need less certainty, because a leak costs more than a needless mask.
DEFAULT_THRESHOLDS = {"EMAIL_ADDRESS": 0.4}
DEFAULT_KEEP = ("LOCATION", "DATE", "DATE_TIME", "AMOUNT", "MONEY")
_SECRETS = frozenset({"SECRET", "API_KEY", "TOKEN", "PASSWORD", "PRIVATE_KEY", "JWT", "CONNECTION_STRING"})
_ENTITY = re.compile(r"[A-Z][A-Z_]{1,29}")
_LIMITS = {"allow": 500, "deny": 500, "patterns": 50, "keep": 50}


@dataclass(frozen=True)
class Rules:
    """``allow``: words never masked. ``deny``: words always masked. ``thresholds``: score per entity
    from which it is masked. ``patterns``: ``{"entity", "regex"}``. ``keep``: entities never masked."""

    number: int = 0
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    patterns: tuple[Mapping[str, str], ...] = ()
    keep: tuple[str, ...] = DEFAULT_KEEP

    def as_json(self) -> dict[str, Any]:
        """As the API and the table hold them: without the number."""
        return {key: value for key, value in asdict(self).items() if key != "number"}


def rules_in_force(project: Project) -> Rules:
    latest = AnonymizationRules.objects.filter(project=project).first()
    return Rules() if latest is None else rules_read(latest.rules, latest.number)


def rules_read(data: Mapping[str, Any], number: int = 0) -> Rules:
    return Rules(
        number=number,
        allow=tuple(data.get("allow", ())),
        deny=tuple(data.get("deny", ())),
        thresholds=dict(data.get("thresholds", {})),
        patterns=tuple(data.get("patterns", ())),
        keep=tuple(data.get("keep", DEFAULT_KEEP)),
    )


def rules_revise(*, project: Project, rules: Mapping[str, Any], by: Actor) -> AnonymizationRules:
    """Make the next revision. Raises ``Refused`` and says which rule is wrong."""
    checked = rules_checked(rules)
    with transaction.atomic():
        latest = AnonymizationRules.objects.select_for_update().filter(project=project).first()
        made = AnonymizationRules.objects.create(
            project=project,
            number=latest.number + 1 if latest else 1,
            rules=checked.as_json(),
            created_by=by.name,
        )
        audit(actor=by, action="anonymization_rules.revise", obj=made, number=made.number)
    return made


def rules_checked(data: Mapping[str, Any]) -> Rules:
    """The rules in ``data``; raises ``Refused`` with the first problem."""
    for name, limit in _LIMITS.items():
        if not isinstance(data.get(name, []), list) or len(data.get(name, [])) > limit:
            raise Refused(f"{name}: a list of at most {limit} entries.", code="rules_invalid")
    words = {
        name: [str(word).strip() for word in data.get(name, []) if str(word).strip()]
        for name in ("allow", "deny")
    }
    short = next((word for word in words["deny"] if len(word) < 2), None)
    if short is not None:
        raise Refused(
            f"deny: “{short}” is too short; it would mask parts of other words.", code="rules_invalid"
        )
    for entity, score in dict(data.get("thresholds", {})).items():
        _check_entity(entity, "thresholds")
        if entity in _SECRETS and score > MASK_FROM:
            raise Refused("thresholds: secrets are always masked.", code="rules_invalid")
        if isinstance(score, bool) or not isinstance(score, int | float) or not 0.0 <= score <= 1.0:
            raise Refused(f"thresholds: {entity} must lie between 0 and 1.", code="rules_invalid")
    for entity in data.get("keep", []):
        _check_entity(entity, "keep")
        if entity in _SECRETS:
            raise Refused("keep: secrets are always masked.", code="rules_invalid")
    for pattern in data.get("patterns", []):
        _check_pattern(pattern)
    return rules_read({**data, **words})


def _check_pattern(pattern: Any) -> None:
    if not isinstance(pattern, Mapping) or set(pattern) != {"entity", "regex"}:
        raise Refused("patterns: each needs exactly an entity and a regex.", code="rules_invalid")
    _check_entity(pattern["entity"], "patterns")
    try:
        compiled = regex.compile(pattern["regex"])
        if compiled.search("", timeout=PATTERN_TIMEOUT_S):
            raise Refused(f"patterns: {pattern['entity']} matches the empty text.", code="rules_invalid")
        for probe in ("a" * 2000 + "!", "1" * 2000 + "!", "a1 -" * 500 + "!"):
            compiled.search(probe, timeout=PATTERN_TIMEOUT_S)
    except regex.error as problem:
        raise Refused(f"patterns: {pattern['entity']}: {problem}.", code="rules_invalid") from None
    except TimeoutError:
        raise Refused(
            f"patterns: {pattern['entity']} takes too long on long texts; make it more specific.",
            code="rules_invalid",
        ) from None


def _check_entity(entity: Any, where: str) -> None:
    if not isinstance(entity, str) or not _ENTITY.fullmatch(entity):
        raise Refused(
            f"{where}: “{str(entity)[:30]}” is not an entity; write it like ORDER.", code="rules_invalid"
        )
