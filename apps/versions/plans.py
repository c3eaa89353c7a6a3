"""A release's plan as JSON: kept with the release, fixed before traffic flows.

``{"steps": [{"weight", "min_units"}], "alpha", "margin", "srm_alpha", "failure_signals"}``; what the
numbers mean is said by ``domain.gates.ReleasePlan``.
"""

from collections.abc import Mapping
from typing import Any

from apps.core.errors import Refused
from apps.core.models import Project
from apps.versions.models import RoutingRules
from apps.versions.services.routing import checked_signals
from domain.gates import ReleasePlan, Step

DEFAULT_STEPS = ({"weight": 0.10, "min_units": 200}, {"weight": 0.50, "min_units": 400})
DEFAULT_ALPHA = 0.05
DEFAULT_MARGIN = 0.02
DEFAULT_SRM_ALPHA = 0.001
MAX_STEPS = 10
_KEYS = {"steps", "alpha", "margin", "srm_alpha", "failure_signals"}


def default_plan(project: Project) -> dict[str, Any]:
    """10 %, then 50 %, then everything; the project's own failure signals."""
    rules = RoutingRules.objects.filter(project=project).first() or RoutingRules(project=project)
    return {
        "steps": [dict(step) for step in DEFAULT_STEPS],
        "alpha": DEFAULT_ALPHA,
        "margin": DEFAULT_MARGIN,
        "srm_alpha": DEFAULT_SRM_ALPHA,
        "failure_signals": list(rules.failure_signals),
    }


def plan_checked(plan: Mapping[str, Any] | None, project: Project) -> dict[str, Any]:
    """``plan`` completed with defaults; Refused with a sentence if it could not be run."""
    given = dict(plan or {})
    unknown = sorted(set(given) - _KEYS)
    if unknown:
        raise _bad(f"A plan has no “{unknown[0][:40]}”. It has {', '.join(sorted(_KEYS))}.")
    whole = default_plan(project) | given
    try:
        steps = [
            {"weight": float(step["weight"]), "min_units": _whole(step["min_units"])}
            for step in whole["steps"]
        ]
        numbers = {name: float(whole[name]) for name in ("alpha", "margin", "srm_alpha")}
        signals = checked_signals([str(signal) for signal in whole["failure_signals"]])
    except (KeyError, TypeError, ValueError):
        raise _bad("Each step needs a weight and a whole number of units.") from None
    if len(steps) > MAX_STEPS:
        raise _bad(f"A plan has at most {MAX_STEPS} steps.")
    checked = {"steps": steps, **numbers, "failure_signals": signals}
    try:
        plan_of(checked)
    except ValueError as error:
        raise _bad(str(error)) from None
    if any(step["min_units"] < 1 for step in steps):
        raise _bad("Each step needs at least one unit.")
    return checked


def plan_of(plan: Mapping[str, Any]) -> ReleasePlan:
    """The plan as the gate reads it. Raises ValueError with a sentence."""
    return ReleasePlan(
        steps=tuple(Step(weight=step["weight"], min_units=step["min_units"]) for step in plan["steps"]),
        alpha=plan["alpha"],
        margin=plan["margin"],
        srm_alpha=plan["srm_alpha"],
    )


def _whole(value: Any) -> int:
    number = int(value)
    if isinstance(value, bool) or number != float(value):
        raise ValueError
    return number


def _bad(sentence: str) -> Refused:
    return Refused(sentence, code="plan_invalid")
