"""The chart of a judge: κ against people over its calibrations, with intervals."""

from collections.abc import Sequence
from typing import Any

from apps.feedback.models import Calibration


def history_figure(history: Sequence[Calibration], floor: float) -> dict[str, Any] | None:
    """Finished calibrations with a defined κ, oldest first; None with fewer than two."""
    rows = _drawn(history)
    if len(rows) < 2:
        return None
    words = [f"v{row.judge.number} · {row.number}" for row in rows]
    spans = [
        (row.figures or {}).get("kappa_interval") or {"low": row.kappa, "high": row.kappa} for row in rows
    ]
    values = [float(row.kappa or 0.0) for row in rows]
    places = list(range(len(rows)))
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "markers+lines",
                "x": places,
                "y": values,
                "name": "κ",
                "line": {"color": "var(--accent)"},
                "error_y": {
                    "type": "data",
                    "symmetric": False,
                    "array": [span["high"] - value for span, value in zip(spans, values, strict=True)],
                    "arrayminus": [value - span["low"] for span, value in zip(spans, values, strict=True)],
                },
                "hovertemplate": "%{text}: κ %{y:.2f}<extra></extra>",
                "text": words,
            },
            {
                "type": "scatter",
                "mode": "lines",
                "x": [places[0] - 0.4, places[-1] + 0.4],
                "y": [floor, floor],
                "name": "floor",
                "line": {"color": "var(--muted)", "dash": "dot"},
                "hoverinfo": "skip",
            },
        ],
        "layout": {
            "xaxis": {"tickmode": "array", "tickvals": places, "ticktext": words, "showgrid": False},
            "yaxis": {"title": {"text": "κ against people"}, "range": [min(0.0, *values) - 0.05, 1.05]},
            "showlegend": False,
        },
    }


def history_label(history: Sequence[Calibration]) -> str:
    rows = _drawn(history)
    if not rows:
        return ""
    return f"κ against people over {len(rows)} calibrations, the last one {rows[-1].kappa:.2f}."


def _drawn(history: Sequence[Calibration]) -> list[Calibration]:
    return [row for row in reversed(history) if row.kappa is not None]
