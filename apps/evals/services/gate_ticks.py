"""Judging runs as they end. What a run is judged by is in ``gates``."""

import logging

from django.db import OperationalError, transaction
from django.utils import timezone

from apps.core.errors import Refused, place_of
from apps.core.events import publish
from apps.core.permissions import system_actor
from apps.core.services import audit
from apps.evals.models import GateDecision, Run
from apps.evals.selectors import gates
from apps.evals.services.gates import decision_push, digest_of, gate_decide

logger = logging.getLogger(__name__)


def gates_tick() -> int:
    """Judge runs that have ended since their suite has a gate; returns how many. One that cannot be judged
    is undecided, with the reason, until somebody asks again."""
    count = 0
    for run in gates.runs_to_decide():
        try:
            gate_decide(run=run, by=system_actor(run.project, "gate"))
            count += 1
        except Refused:
            continue  # it was started again, or the gate taken away, since it was read
        except OperationalError as error:  # the database was busy or away: the next tick asks again
            logger.warning("gate not decided yet run=%s type=%s", run.pk, type(error).__name__)
        except Exception as error:
            logger.exception("gate not decided run=%s", run.pk)
            _undecidable(run, error)
    return count


def _undecidable(run: Run, error: Exception) -> None:
    """Keep that ``run`` could not be judged, and say so on its version; its text stays in the log."""
    revision = gates.gate_in_force(run.suite_version.suite)
    if revision is None:
        return
    why = f"{type(error).__name__} at {place_of(error)}"
    by = system_actor(run.project, "gate")
    with transaction.atomic():
        decision = GateDecision.objects.create(
            project=run.project,
            run=run,
            revision=revision,
            decision=GateDecision.Decision.UNDECIDED,
            sentence=f"The run could not be judged: {why}. The log says more. Once that is mended, judge it "
            "again from its page.",
            results=[],
            suite_digest=run.suite_version.digest,
            rules_digest=revision.digest,
            digest=digest_of({"undecidable": why, "at": f"{timezone.now()}"}),
            created_by=by.name,
        )
        audit(actor=by, action="gate.undecidable", obj=run, decision=decision.pk, type=type(error).__name__)
        publish(
            project=run.project,
            topic=run.lineage_key,
            kind="GateDecided",
            decision=decision.decision,
            say=f"Gate of run {run.pk} could not be judged",
        )
    if run.version is not None:
        try:
            with transaction.atomic():
                decision_push(run, decision)
        except Exception:
            logger.exception("evidence of a gate not recorded run=%s", run.pk)
