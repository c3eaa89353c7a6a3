"""The chart of a probe: each signal over its rounds, one above the other, with its threshold."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from apps.evals.models import ProbeRound

MAX_ROUNDS = 200
_COLOURS = {"flagged": "var(--fail)", "unchanged": "var(--accent)", "unmeasured": "var(--muted)"}


class Panel(NamedTuple):
    """``title`` stands at the axis; ``above`` says which side of the threshold flags."""

    signal: str
    title: str
    words: str
    above: bool


PANELS = (
    Panel("logprobs", "shift, nats", "shift of log-probabilities", True),
    Panel("border", "−log₁₀ p", "evidence that first tokens are split otherwise", True),
    Panel("answers", "same answers", "answers equal to the reference's", False),
    Panel("identity", "differences", "differences in what it says of itself", True),
)


def probe_figure(rounds: Sequence[ProbeRound]) -> dict[str, Any] | None:
    """``rounds`` oldest first. None where no round has a value. What the endpoint says of itself has a
    part only where it differed."""
    shown = [
        panel
        for panel in PANELS
        if any(
            _value(row, panel) or (_value(row, panel) == 0 and panel.signal != "identity") for row in rounds
        )
    ]
    if not shown:
        return None
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"showlegend": False, "xaxis": {"anchor": f"y{_axis(len(shown) - 1)}"}}
    height = 1.0 / len(shown)
    for at, panel in enumerate(shown):
        rows = [row for row in rounds if _value(row, panel) is not None]
        times = [row.created_at.isoformat() for row in rows]
        axis = f"y{_axis(at)}"
        top = 1.0 - at * height
        layout[f"yaxis{_axis(at)}"] = {
            "title": {"text": panel.title},
            "domain": [max(0.0, top - height + 0.06), top],
            "rangemode": "tozero",
        }
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": panel.words,
                "x": times,
                "y": [_value(row, panel) for row in rows],
                "yaxis": axis,
                "line": {"color": "var(--border)", "width": 1},
                "marker": {
                    "size": 7,
                    "color": [_COLOURS[row.signals[panel.signal]["state"]] for row in rows],
                    "symbol": ["x" if _flagged(row, panel) else "circle" for row in rows],
                },
                "customdata": [row.signals[panel.signal]["state"] for row in rows],
                "hovertemplate": "%{x|%-d %b %H:%M}: %{y:.3g}, %{customdata}<extra></extra>",
            }
        )
        limits = [row.signals[panel.signal]["threshold"] for row in rows]
        if panel.signal != "identity" and any(limit is not None for limit in limits):
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": "threshold",
                    "x": times,
                    "y": limits,
                    "yaxis": axis,
                    "line": {"color": "var(--warn)", "width": 1.5, "dash": "dash", "shape": "hv"},
                    "hovertemplate": "threshold %{y:.3g}<extra></extra>",
                }
            )
    return {"data": data, "layout": layout}


def probe_figure_label(rounds: Sequence[ProbeRound]) -> str:
    """The chart in words: the newest value of each signal."""
    parts = []
    for panel in PANELS:
        rows = [row for row in rounds if _value(row, panel) is not None]
        if rows:
            last = rows[-1].signals[panel.signal]
            limit = last["threshold"]
            side = "at most" if panel.above else "at least"
            bound = "" if limit is None else f" ({side} {limit:.3g} is unchanged)"
            parts.append(f"{panel.words}: {last['value']:.3g}{bound}, {last['state']}")
    return f"Signals over {len(rounds)} rounds. Newest: " + "; ".join(parts) + "."


def probe_figure_height(figure: dict[str, Any]) -> int:
    return 60 + 130 * sum(name.startswith("yaxis") for name in figure["layout"])


def _axis(at: int) -> str:
    return "" if at == 0 else str(at + 1)


def _value(row: ProbeRound, panel: Panel) -> float | None:
    found = row.signals.get(panel.signal)
    value: float | None = found["value"] if found else None
    return value


def _flagged(row: ProbeRound, panel: Panel) -> bool:
    return bool(row.signals[panel.signal]["state"] == "flagged")
