"""The gates table of a release: what must hold, how it stands for control and canary."""

from dataclasses import dataclass

from apps.versions.models import EVALUATION_KINDS, Release
from apps.versions.release_gates import GATE
from apps.versions.wording import e_words, figure
from domain.sequential import Segment


@dataclass(frozen=True)
class Gate:
    """One row. ``state`` picks the badge, ``word`` replaces its word."""

    name: str
    control: str
    canary: str
    needs: str
    state: str
    word: str = ""
    url: str = ""


def gates_table(release: Release, segments: list[Segment]) -> list[Gate]:
    control = _arm(segments, "control")
    canary = _arm(segments, "canary")
    return [
        _harm_gate(release, control, canary),
        _margin_gate(release),
        _units_gate(release, segments),
        _split_gate(release, control, canary),
        *_evidence_gates(release),
    ]


def _harm_gate(release: Release, control: tuple[int, int], canary: tuple[int, int]) -> Gate:
    alpha = release.plan["alpha"]
    log_e = figure(release.evidence, "log_e")
    seen = control[0] + canary[0] > 0
    if not seen or log_e is None:
        state, word = "no_data", ""
    elif release.verdict == "roll_back":
        state, word = "failed", f"E = {e_words(log_e)}"
    else:
        state, word = "clear", f"E = {e_words(log_e)}"
    return Gate(
        "Failed units",
        _share(control),
        _share(canary),
        f"E below {1 / alpha:,.0f} (α = {alpha:g}), whenever one looks",
        state,
        word,
    )


def _margin_gate(release: Release) -> Gate:
    low, high = (figure(release.evidence, f"difference_{side}") for side in ("low", "high"))
    margin = release.plan["margin"]
    needs = f"upper limit at most {100 * margin:g} points"
    if low is None or high is None:
        return Gate("Difference", "", "no data", needs, "no_data")
    text = f"{100 * low:+.1f} to {100 * high:+.1f} points".replace("-", "−")
    state = "clear" if high <= margin else "failed" if low > margin else "cannot_tell"
    return Gate("Difference", "", text, needs, state, "above the margin" if state == "failed" else "")


def _units_gate(release: Release, segments: list[Segment]) -> Gate:
    need = release.plan["steps"][release.step_index]["min_units"]
    have = 0 if release.warming or not segments else segments[-1].canary.units
    units = f"{segments[-1].control.units:,}" if segments and not release.warming else "0"
    return Gate(
        "Units at this step",
        units,
        f"{have:,}",
        f"{need:,} on the canary",
        "clear" if have >= need else "waiting",
    )


def _split_gate(release: Release, control: tuple[int, int], canary: tuple[int, int]) -> Gate:
    split = release.evidence.get("srm") or {}
    limit = 1 / release.plan["srm_alpha"]
    state, word = {"ok": ("even", "as planned"), "mismatch": ("failed", "not as planned")}.get(
        split.get("state", ""), ("no_data", "")
    )
    if split.get("units"):
        word = f"{word}, E = {e_words(split['log_e'])}"
    return Gate(
        "Split", f"{control[0]:,}", f"{canary[0]:,}", f"planned shares, E below {limit:,.0f}", state, word
    )


def _evidence_gates(release: Release) -> list[Gate]:
    return [
        Gate(
            row.title + (f", {row.get_edition_kind_display().lower()}" if row.edition_kind else ""),
            "",
            row.sentence,
            _needs(row.kind),
            row.verdict or "done",
            url=row.url,
        )
        for row in release.candidate.evidence.all()[:10]
    ]


def _needs(kind: str) -> str:
    if kind == GATE:
        return "passed, or a reason why not"
    return "a finished evaluation" if kind in EVALUATION_KINDS else "for the record"


def _arm(segments: list[Segment], arm: str) -> tuple[int, int]:
    counts = [getattr(segment, arm) for segment in segments]
    return sum(c.units for c in counts), sum(c.failures for c in counts)


def _share(arm: tuple[int, int]) -> str:
    units, failed = arm
    return f"{100 * failed / units:.1f} % of {units:,}" if units else "no data"
