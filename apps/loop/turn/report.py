"""The report of a turn: figures as the API gave them, and whether the turn showed what it should."""

from typing import Any

from django.utils import timezone

from apps.core.lineage import lineage_strip
from apps.loop.turn.context import Turn


def turn_report(turn: Turn) -> dict[str, Any]:
    """The turn succeeded only if the paired improvement's interval excludes zero, the good version was
    promoted and serves, and the damaged one was rolled back."""
    found = turn.state["comparison"]
    good = turn.api.get(f"/releases/{turn.state['release']}")
    bad = turn.api.get(f"/releases/{turn.state['drill']}")
    served = turn.state["in_service"]
    checks = {
        "improved": found["low"] is not None and found["low"] > 0,
        "promoted": good["state"] == "promoted",
        "rolled_back": bad["state"] == "rolled_back",
        "good_version_serves": served["version"] == turn.state["trained"]["number"],
    }
    return {
        "seed": turn.seed,
        "baseline": _rate(found["base"]),
        "trained": _rate(found["new"]),
        "difference": {
            name: found[name] for name in ("mean", "low", "high", "n", "clusters", "verdict", "sentence")
        },
        "release": {"decision": _decision(good), "reasons": good["reasons"], "units": good["units_at_end"]},
        "damaged": {
            "decision": _decision(bad),
            "reasons": bad["reasons"],
            "units_to_rollback": bad["units_at_end"],
            "version": turn.state["damaged"]["number"],
        },
        "in_service": served,
        "lineage": [node.label for node in lineage_strip(f"versions.version:{turn.state['trained']['id']}")],
        "traffic": turn.state["traffic"],
        "assets": turn.state["assets"],
        "phase_seconds": turn.state.get("seconds", {}),
        "seconds": round((timezone.now() - turn.row.created_at).total_seconds(), 1),
        "checks": checks,
        "succeeded": all(checks.values()),
        "sentence": _sentence(turn, checks, found),
    }


def _rate(score: dict[str, Any]) -> dict[str, Any]:
    return {
        "pass": score["pass_rate"],
        "n": score["scored"],
        "clusters": score["clusters"],
        "low": score["low"],
        "high": score["high"],
    }


def _decision(release: dict[str, Any]) -> str:
    return {"promoted": "promote", "rolled_back": "roll_back", "aborted": "abort"}.get(
        release["state"], "hold"
    )


def _sentence(turn: Turn, checks: dict[str, bool], found: dict[str, Any]) -> str:
    base, new = turn.state["base"]["number"], turn.state["trained"]["number"]
    if all(checks.values()):
        return f"{new} replaced {base}. {found['sentence']} The damaged copy was rolled back."
    missing = {
        "improved": f"{new} is not shown to be better than {base}",
        "promoted": f"{new} was not promoted",
        "rolled_back": "the damaged copy was not rolled back",
        "good_version_serves": f"{new} does not serve",
    }
    return (
        "The turn did not succeed: "
        + "; ".join(missing[name] for name, held in checks.items() if not held)
        + "."
    )
