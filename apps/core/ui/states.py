"""How a state looks: an icon and a tone for every word, so that colour never stands alone."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """``tone`` is pass, fail, warn, info, none or plain; ``spin`` turns the icon while work goes on."""

    icon: str
    tone: str
    word: str
    spin: bool = False


# tone, icon, and the states that share them. A state's word is its own name in plain text
# unless _WORDS says otherwise.
_GROUPS: tuple[tuple[str, str, str], ...] = (
    (
        "pass",
        "✓",
        "passed pass better done succeeded finished completed clear even admitted healthy ready active"
        " warm promoted equivalent no_worse decided available ok unchanged sound added",
    ),
    ("pass", "●", "serving in_service current"),
    (
        "fail",
        "✕",
        "failed fail worse rejected unhealthy lost unavailable refused dead not_admitted unsound nonzero"
        " signal timeout cpu oom output_limit removed",
    ),
    ("fail", "↩", "rolled_back roll_back"),
    ("fail", "▲", "high blocking critical"),
    (
        "warn",
        "!",
        "error errored warn warning stale overdue exhausted degraded too_hard too_easy interrupted flagged"
        " infra_error bad_action overridden unjudged",
    ),
    ("warn", "‖", "holding hold paused pausing blocked awaiting_approval"),
    ("warn", "▲", "medium"),
    ("info", "◔", "running started training evaluating in_progress live generating verifying"),
    ("info", "◑", "canary shadow releasing ramping watching"),
    ("info", "→", "sent dispatched leased"),
    ("info", "i", "info"),
    (
        "none",
        "?",
        "undecided cannot_tell cannot_tell_yet unknown unscored no_data too_small unmeasured partial",
    ),
    (
        "none",
        "○",
        "pending queued waiting new planned draft open created captured scheduled unlabelled to_label"
        " candidate registered cold",
    ),
    (
        "none",
        "–",
        "cancelled cancelling skipped retired revoked expired archived closed discarded dismissed"
        " superseded inactive none",
    ),
    ("none", "▼", "low"),
    (
        "plain",
        "◆",
        "labelled anonymized train held_out heldout validation test published frozen locked"
        " reference measured modified",
    ),
)
_WORDS = {
    "pass": "passed",
    "fail": "failed",
    "errored": "error",
    "cannot_tell": "cannot tell yet",
    "cannot_tell_yet": "cannot tell yet",
    "undecided": "cannot tell yet",
    "too_small": "n too small",
    "heldout": "held out",
    "warn": "warning",
    "hold": "holding",
    "unsound": "not sound",
    "nonzero": "ended with an error",
    "signal": "ended by a signal",
    "timeout": "ran out of time",
    "cpu": "ran out of processor time",
    "oom": "ran out of memory",
    "output_limit": "wrote too much",
    "infra_error": "sandbox broke",
    "bad_action": "no action read",
    "unjudged": "no answer yet",
}
_SPINNING = {"running", "training", "evaluating", "in_progress", "generating", "verifying"}
_LOOKS = {
    state: Look(icon, tone, _WORDS.get(state, state.replace("_", " ")), state in _SPINNING)
    for tone, icon, states in _GROUPS
    for state in states.split()
}


def look_of(state: object, word: str = "") -> Look:
    """The look of ``state`` (any spelling: "Rolled back", "rolled_back"); unknown states look plain."""
    key = str(getattr(state, "value", state)).strip().lower().replace(" ", "_").replace("-", "_")
    look = _LOOKS.get(key, Look("•", "plain", key.replace("_", " ") or "no state"))
    return Look(look.icon, look.tone, word, look.spin) if word else look
