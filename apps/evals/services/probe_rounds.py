"""One round of a probe: ask, judge, write down, and raise or leave alerts.

A round holds one thread of the worker for at most ``ROUND_BOUND_S`` (``REFERENCE_BOUND_S`` where it takes
the reference), and no more than ``MAX_AT_ONCE`` rounds are asked at the same time.
"""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.core.errors import Refused
from apps.core.events import publish
from apps.core.services import alert_raise, alert_resolve
from apps.evals.asking import Listener
from apps.evals.models import Probe, ProbeRound
from apps.evals.patience import Spent
from apps.evals.probe_sampling import take_reference, take_round
from apps.evals.services.probes import alert_key, blind_key, probe_target
from apps.evals.volley import PARALLEL, Volley
from apps.versions.selectors import version_in_service
from domain import drift
from domain.drift.signal import WINDOW

ROUND_BOUND_S, REFERENCE_BOUND_S, PATIENCE_S = 180.0, 480.0, 60.0
MAX_AT_ONCE = 3
BLIND_AFTER = 3  # rounds in a row that could not, or only partly, be measured
Verdict = ProbeRound.Verdict
SILENT = (Verdict.UNMEASURED, Verdict.PARTIAL)  # neither alarm nor clear


class _Found(NamedTuple):
    """What a round came to. ``reference`` is a new one where one was taken."""

    verdict: str
    reasons: list[str]
    signals: dict[str, Any]
    spent: Spent
    reference: dict[str, Any] | None = None


def probe_round(*, probe: Probe) -> ProbeRound | None:
    """Ask every prompt and judge the answers. Two flagged rounds in a row raise an alert.

    None where another round of this probe is being asked, or too many of others; the latter is tried
    again with the next tick.
    """
    bound_s = ROUND_BOUND_S if probe.reference is not None else REFERENCE_BOUND_S
    until = _claim(probe, bound_s)
    if until is None:
        return None
    try:
        why = _follow(probe)
        found = _ask(probe, why)
        return _write(probe, found)
    finally:  # a claim that ran out may be another round's by now
        Probe.objects.filter(pk=probe.pk, busy_until=until).update(busy_until=None)


def _claim(probe: Probe, bound_s: float) -> datetime | None:
    """Until when this round holds the probe; None where it may not be asked now."""
    now = timezone.now()
    free = Q(busy_until=None) | Q(busy_until__lte=now)
    if Probe.objects.exclude(free).exclude(pk=probe.pk).count() >= MAX_AT_ONCE:
        Probe.objects.filter(pk=probe.pk).update(next_at=now)
        return None
    until = now + timedelta(seconds=bound_s + PATIENCE_S + 60)
    if not Probe.objects.filter(free, pk=probe.pk).update(busy_until=until):
        return None
    publish(project=probe.project, topic=probe.lineage_key, kind="ProbeRoundStarted")
    return until


def _follow(probe: Probe) -> list[str]:
    """Forget a reference that an intended change of ours made void, and say why."""
    reference, why = probe.reference, []
    if probe.follows:
        now = version_in_service(probe.project)
        if now is not None and now.pk != probe.version_id:
            before, probe.version = probe.version, now
            why = [f"{now} went into service in place of {before}."]
    elif (
        probe.version is None
        and reference is not None
        and reference.get("target")
        not in (
            None,
            _told_target(probe),
        )
    ):
        why = ["The endpoint's address or model was changed here."]
    if why:
        probe.reference = None
        with transaction.atomic():
            if probe.follows or probe.version is None:
                probe.deployment, probe.model = _place(probe)
            probe.save(update_fields=["version", "deployment", "model", "reference"])
            alert_resolve(project=probe.project, key=alert_key(probe))
    return why


def _place(probe: Probe) -> tuple[Any, str]:
    try:
        return probe_target(
            probe.version, probe.edition_kind, probe.deployment if probe.version is None else None
        )
    except Refused:  # no engine now; the round will say so
        return probe.deployment, probe.version.engine_model if probe.version else probe.deployment.model


def _told_target(probe: Probe) -> dict[str, str]:
    return {"base_url": probe.deployment.base_url, "model": probe.deployment.model}


def _ask(probe: Probe, why: list[str]) -> _Found:
    reference = probe.reference
    bound_s = ROUND_BOUND_S if reference is not None else REFERENCE_BOUND_S
    volley = Volley(
        bound_s=bound_s,
        parallel=min(PARALLEL, probe.deployment.max_concurrency),
        per_minute=probe.deployment.requests_per_minute,
    )
    try:
        if probe.version is None:
            probe_target(None, "", probe.deployment)  # refuses one that is retired
        with Listener(
            version=probe.version,
            edition_kind=probe.edition_kind,
            deployment=probe.deployment,
            patience_s=PATIENCE_S,
        ) as model:
            if reference is None:
                return _taken(probe, model, volley, why)
            found = take_round(model, reference, volley)
            spent = model.tally.spent
    except Refused as refused:
        return _Found(Verdict.UNMEASURED, [*why, refused.message], {}, Spent(0, 0, 0))
    rng = np.random.default_rng([probe.pk, probe.rounds.count()])
    reading = drift.read_round(reference, found, _trails(probe), rng)
    reasons = list(reading.reasons)
    if volley.problem and reading.verdict != "unchanged":
        reasons.append(volley.problem)
    signals = {signal.name: _kept(signal) for signal in reading.signals}
    return _Found(str(reading.verdict), reasons, signals, spent)


def _taken(probe: Probe, model: Listener, volley: Volley, why: list[str]) -> _Found:
    taken = take_reference(model, probe.prompts, volley)
    spent = model.tally.spent
    if taken.reference is None:
        return _Found(Verdict.UNMEASURED, [*why, "No complete reference yet.", taken.problem], {}, spent)
    taken.reference["target"] = _told_target(probe)
    return _Found(Verdict.REFERENCE, [*why, *taken.reference["notes"]], {}, spent, taken.reference)


def _write(probe: Probe, found: _Found) -> ProbeRound:
    with transaction.atomic():
        locked = Probe.objects.select_for_update(of=("self",)).select_related("project").get(pk=probe.pk)
        verdict, reasons = found.verdict, found.reasons
        if locked.reference != probe.reference:  # renewed while we asked
            verdict, reasons = Verdict.UNMEASURED, ["The reference changed during this round."]
        elif found.reference is not None:
            locked.reference = found.reference
            locked.save(update_fields=["reference"])
        row = ProbeRound.objects.create(
            probe=locked,
            verdict=verdict,
            signals=found.signals,
            reasons=[reason for reason in reasons if reason],
            requests=found.spent.requests,
            prompt_tokens=found.spent.prompt_tokens,
            completion_tokens=found.spent.completion_tokens,
            cost_usd=_cost(probe, found.spent),
        )
        publish(project=locked.project, topic=locked.lineage_key, kind="ProbeRoundFinished", verdict=verdict)
        _alert(locked, row)
    return row


def alarming(probe: Probe) -> bool:
    """Whether the last two rounds that say something were both flagged."""
    telling = probe.rounds.exclude(verdict__in=SILENT).order_by("-pk")
    return drift.alarming(list(telling.values_list("verdict", flat=True)[:2]))


def _alert(probe: Probe, row: ProbeRound) -> None:
    if row.verdict == Verdict.FLAGGED and alarming(probe):
        alert_raise(
            project=probe.project,
            key=alert_key(probe),
            title=f"{probe.title} seems to have changed",
            detail=" ".join(row.reasons),
            url=probe.get_absolute_url(),
            level="fail",
        )
    last = list(probe.rounds.order_by("-pk").values_list("verdict", flat=True)[:BLIND_AFTER])
    if len(last) == BLIND_AFTER and all(verdict in SILENT for verdict in last):
        alert_raise(
            project=probe.project,
            key=blind_key(probe),
            title=f"{probe.title} cannot be measured",
            detail=f"The last {BLIND_AFTER} rounds say nothing about a change. " + " ".join(row.reasons),
            url=probe.get_absolute_url(),
            level="warn",
        )
    elif row.verdict not in SILENT:
        alert_resolve(project=probe.project, key=blind_key(probe))


def _trails(probe: Probe) -> dict[str, list[float]]:
    """By signal, what unchanged rounds since the reference showed, oldest first."""
    last = probe.rounds.filter(verdict=Verdict.REFERENCE).order_by("-pk").values_list("pk", flat=True).first()
    rows = probe.rounds.filter(verdict=Verdict.UNCHANGED, pk__gt=last or 0).order_by("-pk")
    trails: dict[str, list[float]] = {"logprobs": [], "border": []}
    for signals in reversed(list(rows.values_list("signals", flat=True)[:WINDOW])):
        for name, trail in trails.items():
            found = signals.get(name)
            if found and found["value"] is not None:
                trail.append(found["detail"].get("g", found["value"]))
    return trails


def _kept(signal: drift.Signal) -> dict[str, Any]:
    kept = signal._asdict()
    del kept["name"]
    return kept


def _cost(probe: Probe, spent: Spent) -> Decimal | None:
    into, out = probe.deployment.input_usd_per_mtok, probe.deployment.output_usd_per_mtok
    if into is None or out is None:
        return None
    return (into * spent.prompt_tokens + out * spent.completion_tokens) / 1_000_000
