"""How far a judge can be trusted: its verdicts against people's, on answers that people have judged.

A failed answer is the positive class, because finding failures is what a judge is for. What the judge
left undecided is counted beside the figures and never inside them.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from domain.agreement import cohen_kappa, fleiss_kappa, kappa_interval, krippendorff_alpha
from domain.distributions import average_ranks, normal_quantile
from domain.intervals import Interval, clustered_rate

KAPPA_FLOOR = 0.6  # "substantial" begins above it: Landis and Koch, Biometrics 33 (1977)
COVERAGE_FLOOR = 0.9
FEW = 30  # decided answers
_FEW_LENGTHS = 10
SILENCES = ("error", "malformed", "unstable", "missing", "disagreement")


class Rated(NamedTuple):
    """One answer that people and the judge have judged. ``source`` is what answers share; ``silence``
    says why ``judged`` is None; ``votes`` has one entry per voice."""

    source: str
    human: bool
    judged: bool | None
    silence: str = ""
    score: float | None = None
    length: int = 0
    votes: tuple[bool | None, ...] = ()
    firsts: int = 0
    picks: int = 0
    compared: int = 0
    contradictions: int = 0


class Confusion(NamedTuple):
    """Counts of decided answers, people's verdict first."""

    fail_fail: int
    fail_pass: int  # a failure that the judge let through
    pass_fail: int  # a good answer that the judge refused
    pass_pass: int


class Calibration(NamedTuple):
    """None is "undefined" or "n too small", never 0. ``length_effect`` is the rank correlation of score
    and length among answers that people judged alike; ``first_place`` the share of picks that fell on
    the first of two answers, 0.5 without a bias."""

    n: int
    decided: int
    coverage: float | None
    silent: dict[str, int]
    confusion: Confusion
    kappa: float | None
    kappa_interval: Interval | None
    accuracy: float | None
    accuracy_interval: Interval | None
    precision: float | None
    recall: float | None
    f1: float | None
    f1_interval: Interval | None
    voices: int
    alpha: float | None
    fleiss: float | None
    length_effect: float | None
    length_interval: Interval | None
    first_place: float | None
    first_place_interval: Interval | None
    contradicting: float | None
    compared: int


def calibrate(rows: Sequence[Rated]) -> Calibration:
    """All figures over ``rows``; rows of one source are not independent, and the intervals know it."""
    decided = [row for row in rows if row.judged is not None]
    human, judged = [row.human for row in decided], [bool(row.judged) for row in decided]
    sources = [row.source for row in decided]
    pairs = Counter(zip(human, judged, strict=True))
    confusion = Confusion(
        *(pairs[key] for key in ((False, False), (False, True), (True, False), (True, True)))
    )
    right = [a == b for a, b in zip(human, judged, strict=True)]
    effect, effect_interval = length_effect(decided)
    picks, pick_sources = _picks(rows)
    compared = sum(row.compared for row in rows)
    return Calibration(
        n=len(rows),
        decided=len(decided),
        coverage=len(decided) / len(rows) if rows else None,
        silent={kind: n for kind in SILENCES if (n := sum(row.silence == kind for row in rows))},
        confusion=confusion,
        kappa=cohen_kappa(human, judged),
        kappa_interval=kappa_interval(human, judged, sources),
        accuracy=sum(right) / len(right) if right else None,
        accuracy_interval=clustered_rate(right, sources),
        precision=_share(confusion.fail_fail, confusion.fail_fail + confusion.pass_fail),
        recall=_share(confusion.fail_fail, confusion.fail_fail + confusion.fail_pass),
        f1=_f1(confusion),
        f1_interval=_f1_interval(decided),
        voices=max((len(row.votes) for row in rows), default=0),
        alpha=krippendorff_alpha([row.votes for row in rows if row.votes]),
        fleiss=fleiss_kappa([row.votes for row in rows if row.votes]),
        length_effect=effect,
        length_interval=effect_interval,
        first_place=sum(picks) / len(picks) if picks else None,
        first_place_interval=clustered_rate(picks, pick_sources),
        contradicting=_share(sum(row.contradictions for row in rows), compared),
        compared=compared,
    )


def doubts(found: Calibration) -> list[str]:
    """Why scores of this judge need a warning; empty where nothing speaks against it."""
    said = []
    if found.decided == 0:
        return ["It decided none of the answers that people have judged."]
    if found.kappa is None:
        said.append("Its agreement with people is undefined: all verdicts are the same.")
    elif not (found.confusion.fail_fail + found.confusion.fail_pass):
        said.append("People failed none of these answers, so κ says nothing. Add some that fail.")
    elif not (found.confusion.pass_fail + found.confusion.pass_pass):
        said.append("People passed none of these answers, so κ says nothing. Add some that pass.")
    elif found.kappa < KAPPA_FLOOR:
        said.append(f"Its agreement with people is low: κ {_signed(found.kappa)}, under {KAPPA_FLOOR:g}.")
    if found.decided < FEW:
        said.append(f"It was compared with people on {found.decided} answers only; {FEW} are the least.")
    if found.coverage is not None and found.coverage < COVERAGE_FLOOR:
        said.append(f"It left {math.ceil(100 * (1 - found.coverage) - 1e-9)} % of the answers undecided.")
    return said


def length_effect(rows: Sequence[Rated]) -> tuple[float | None, Interval | None]:
    """Spearman's ρ of score and length, ranks centred within people's verdicts: longer answers may well
    be better ones. None with under ten scored answers, or where nothing varies.

    Interval: Fisher's z with the variance 1.06 / (n − 3) of Fieller, Hartley and Pearson (1957), one
    degree of freedom less for the covariate.
    """
    scored = [(row.score, row) for row in rows if row.score is not None]
    n = len(scored)
    if n < _FEW_LENGTHS:
        return None, None
    human = np.array([row.human for _, row in scored])
    ranks = [average_ranks([score for score, _ in scored]), average_ranks([row.length for _, row in scored])]
    for values in ranks:
        for side in (True, False):
            if (human == side).any():
                values[human == side] -= values[human == side].mean()
    spread = math.sqrt(float((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
    if spread < 1e-9:
        return None, None
    rho = max(-1.0, min(1.0, float((ranks[0] * ranks[1]).sum()) / spread))
    z, half = (
        math.atanh(max(-0.999999, min(0.999999, rho))),
        normal_quantile(0.975) * math.sqrt(1.06 / (n - 4)),
    )
    return rho, Interval(math.tanh(z - half), math.tanh(z + half), n, "Fisher z, Spearman")


def _picks(rows: Sequence[Rated]) -> tuple[list[bool], list[str]]:
    picks, sources = [], []
    for row in rows:
        picks += [True] * row.firsts + [False] * (row.picks - row.firsts)
        sources += [row.source] * row.picks
    return picks, sources


def _f1(found: Confusion) -> float | None:
    """2·TP / (2·TP + FP + FN); None where nobody said "fail"."""
    return _share(2 * found.fail_fail, 2 * found.fail_fail + found.fail_pass + found.pass_fail)


def _f1_interval(decided: Sequence[Rated]) -> Interval | None:
    """F1 = 2F* / (1 + F*) rises with F* = TP / (TP + FP + FN), a rate over the answers that anybody
    failed, whose interval it takes. Source: Hand, Christen and Kirielle, Machine Learning 110 (2021)."""
    rows = [row for row in decided if not (row.human and row.judged)]
    rate = clustered_rate([not row.human and not row.judged for row in rows], [row.source for row in rows])
    if rate is None:
        return None
    low, high = (2 * bound / (1 + bound) for bound in (rate.low, rate.high))
    return Interval(low, high, rate.n, f"{rate.method}, of F*", rate.clusters)


def _share(count: int, of: int) -> float | None:
    return count / of if of else None


def _signed(kappa: float) -> str:
    return f"{kappa:.2f}".replace("-", "−")
