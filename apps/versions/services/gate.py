"""The gate at work: counts in, decision from ``domain.gates``, one atomic write out.

Runs every two seconds, may run on several workers at once, and may run twice: whoever comes second
finds the project locked, then the release as the first one left it.
"""

import logging
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.core.events import publish
from apps.core.permissions import Actor, system_actor
from apps.core.services import alert_raise, audit
from apps.versions.models import ModelVersion, Release, ReleasePoint, ServiceChange
from apps.versions.plans import plan_of
from apps.versions.release_gates import gate_blockers
from apps.versions.selectors import engines_without, gateways_behind, unit_counts
from apps.versions.services.history import put_in_service, state_move
from apps.versions.services.listeners import PROMOTED, ROLLED_BACK, tell
from apps.versions.services.locking import project_lock
from apps.versions.services.releases import end_release, rollback_alert_key
from apps.versions.services.routing import routing_publish
from domain.gates import Decision, decide
from domain.sequential import ArmCounts, Segment

logger = logging.getLogger(__name__)


def releases_tick() -> int:
    """Evaluate every running release; returns how many. One that breaks does not stop the others."""
    running = Release.objects.filter(state=Release.State.RUNNING).select_related("project")
    count = 0
    for release in running:
        try:
            release_evaluate(release=release)
            count += 1
        except Exception:
            logger.exception("release not evaluated release=%s", release.pk)
    return count


def release_evaluate(*, release: Release) -> Release:
    """Decide on the counts so far and act: warm up, hold, advance, promote or roll back.

    A release that has ended is left as it is.
    """
    with transaction.atomic():
        project_lock(release.project)
        release = Release.objects.select_related("project", "candidate__base", "control").get(pk=release.pk)
        if release.state != Release.State.RUNNING:
            return release
        by = system_actor(release.project, "gate")
        if release.warming:
            _warm_up(release, by)
            return release
        segments = segments_of(release)
        decision = decide(plan_of(release.plan), release.step_index, segments)
        _note(release, decision, units=sum(segment.units for segment in segments))
        if decision.verdict == "roll_back":
            _roll_back(release, decision, by)
        elif decision.verdict == "advance":
            _go_on(release, decision, by)
        else:
            _hold(release, list(decision.reasons))
    return release


def segments_of(release: Release) -> list[Segment]:
    """One segment per step taken, oldest first; arms as assigned."""
    counts = unit_counts(release)
    segments = []
    for index, step in enumerate(release.plan["steps"][: release.step_index + 1]):
        arms = {arm: ArmCounts(*numbers) for arm, numbers in counts.get(index, {}).items()}
        segments.append(
            Segment(
                weight=step["weight"],
                canary=arms.get("canary", ArmCounts()),
                control=arms.get("control", ArmCounts()),
            )
        )
    return segments


def _warm_up(release: Release, by: Actor) -> None:
    cold = engines_without(release.candidate)
    if cold:
        _hold(
            release, [f"Waiting until {_listed([row.name for row in cold])} {_hold_word(cold)} the adapter."]
        )
        return
    release.warming, release.step_started_at = False, timezone.now()
    release.save(update_fields=["warming", "step_started_at"])
    _hold(release, ["No unit has reached the canary at this step yet."])
    _say(
        release, "ReleaseStepStarted", f"Release {release.number} takes {_percent(release.weight)} of traffic"
    )
    routing_publish(
        project=release.project, reason=f"Release {release.number} takes {_percent(release.weight)}", by=by
    )


def _note(release: Release, decision: Decision, *, units: int) -> None:
    """Keep the figures, and a point for the chart when they are news."""
    difference = decision.difference
    figures = {
        "e_value": decision.e_value,
        "log_e": decision.log_e,
        "difference_low": difference.low if difference else None,
        "difference_high": difference.high if difference else None,
        "srm": {"state": decision.srm.state, "log_e": decision.srm.log_e, "units": decision.srm.units},
        "units": units,
        "canary_units": decision.canary_units,
        "min_units": decision.min_units,
    }
    if release.evidence == figures:
        return
    release.evidence = figures
    release.save(update_fields=["evidence"])
    ReleasePoint.objects.create(
        release=release,
        segment=release.segment,
        weight=release.weight,
        units=units,
        e_value=decision.e_value,
        difference_low=difference.low if difference else None,
        difference_high=difference.high if difference else None,
        verdict=decision.verdict,
    )
    publish(
        project=release.project, topic=release.lineage_key, kind="ReleaseEvaluated", verdict=decision.verdict
    )


def _hold(release: Release, reasons: list[str]) -> None:
    if release.verdict == "hold" and release.reasons == reasons:
        return
    release.verdict, release.reasons = "hold", reasons
    release.save(update_fields=["verdict", "reasons"])


def _go_on(release: Release, decision: Decision, by: Actor) -> None:
    """The figures allow the next step; people, engines and gateways may still hold it."""
    if release.paused:
        _hold(release, ["Paused by a person.", *decision.reasons])
        return
    cold = engines_without(release.candidate)
    if cold:
        names = _listed([row.name for row in cold])
        _hold(
            release,
            [f"{names} {'does' if len(cold) == 1 else 'do'} not hold the adapter now.", *decision.reasons],
        )
        return
    behind = gateways_behind(release.project)
    if behind:
        # A step counts only once every gateway routes by it.
        word = "serves" if len(behind) == 1 else "serve"
        _hold(release, [f"{_listed(behind)} still {word} an older revision.", *decision.reasons])
        return
    blockers = [gate for gate in gate_blockers(release.candidate) if gate.state in ("failed", "undecided")]
    if blockers:
        # What was let through at the start has since been judged otherwise.
        _hold(release, [*(gate.sentence for gate in blockers), *decision.reasons])
        return
    if release.step_index + 1 < len(release.plan["steps"]):
        _advance(release, decision, by)
    else:
        _promote(release, decision, by)


def _advance(release: Release, decision: Decision, by: Actor) -> None:
    release.step_index += 1
    release.step_started_at = timezone.now()
    release.verdict, release.reasons = "advance", list(decision.reasons)
    release.save(update_fields=["step_index", "step_started_at", "verdict", "reasons"])
    weight = _percent(release.weight)
    audit(
        actor=by,
        action="release.advance",
        obj=release,
        reason=" ".join(decision.reasons),
        weight=release.weight,
    )
    _say(release, "ReleaseStepStarted", f"Release {release.number} takes {weight} of traffic")
    routing_publish(project=release.project, reason=f"Release {release.number} takes {weight}", by=by)


def _promote(release: Release, decision: Decision, by: Actor) -> None:
    reason = " ".join(decision.reasons)
    end_release(release, Release.State.PROMOTED, reasons=list(decision.reasons), verdict="advance")
    put_in_service(
        version=release.candidate,
        previous=_in_service(release),
        kind=ServiceChange.Kind.PROMOTE,
        reason=reason,
        by=by,
        release=release,
    )
    audit(actor=by, action="release.promote", obj=release, reason=reason, version=release.candidate.number)
    _say(release, "ReleasePromoted", f"{release.candidate} is in service")
    routing_publish(
        project=release.project, reason=f"Release {release.number} promoted {release.candidate}", by=by
    )
    tell(PROMOTED, version=release.candidate, release=release)


def _roll_back(release: Release, decision: Decision, by: Actor) -> None:
    reasons = list(decision.reasons)
    end_release(release, Release.State.ROLLED_BACK, reasons=reasons, verdict="roll_back")
    state_move(release.candidate, ModelVersion.State.RETIRED)
    audit(actor=by, action="release.roll_back", obj=release, reason=" ".join(reasons))
    alert_raise(
        project=release.project,
        key=rollback_alert_key(release),
        level="fail",
        title=f"Release {release.number} of {release.candidate} was rolled back",
        detail=" ".join(reasons),
        url=release.get_absolute_url(),
    )
    _say(release, "ReleaseRolledBack", f"Release {release.number} was rolled back")
    routing_publish(project=release.project, reason=f"Release {release.number} rolled back", by=by)
    tell(ROLLED_BACK, version=release.candidate, release=release)


def _in_service(release: Release) -> ModelVersion | None:
    return ModelVersion.objects.filter(project=release.project, state=ModelVersion.State.IN_SERVICE).first()


def _say(release: Release, kind: str, say: str) -> None:
    publish(project=release.project, topic=release.lineage_key, kind=kind, release=release.pk, say=say)


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _hold_word(rows: list[Any]) -> str:
    return "holds" if len(rows) == 1 else "hold"
