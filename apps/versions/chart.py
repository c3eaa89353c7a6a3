"""The chart of a release: evidence of harm over units, with the line at which it rolls back."""

import math
from typing import Any

from apps.versions.models import Release, ReleasePoint
from apps.versions.wording import e_words, figure, percent

CHART_POINTS = 400


def evidence_figure(release: Release) -> dict[str, Any] | None:
    """E over units on a log axis, the limit as a dashed line, a thin line where a step began."""
    points = _points(release)
    if not points:
        return None
    limit = 1 / release.plan["alpha"]
    values = [max(value, 1e-6) if value is not None else None for _, _, value in points]
    known = [value for value in values if value is not None]
    low, high = min([0.1, *known]), max([limit, *known])
    starts: dict[int, int] = {}
    for units, segment, _ in points:
        starts.setdefault(segment, units)
    shapes = [
        _line(x0=0, x1=1, xref="paper", y0=limit, y1=limit, color="var(--fail)", dash="dash"),
        *(
            _line(x0=units, x1=units, y0=0, y1=1, yref="paper", color="var(--border)", dash="solid")
            for segment, units in starts.items()
            if segment > 0
        ),
    ]
    notes = [
        {
            "x": 1, "xref": "paper", "xanchor": "right", "y": math.log10(limit), "yanchor": "bottom",
            "text": f"roll back at E ≥ {limit:,.0f}", "showarrow": False,
        },
        *(
            {
                "x": units, "y": 0, "yref": "paper", "xanchor": "left", "yanchor": "bottom",
                "text": percent(release.plan["steps"][segment]["weight"]), "showarrow": False,
            }
            for segment, units in starts.items()
        ),
    ]  # fmt: skip
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "lines+markers" if len(points) < 30 else "lines",
                "x": [units for units, _, _ in points],
                "y": values,
                "line": {"color": "var(--accent)", "width": 2},
                "name": "E",
                "hovertemplate": "%{x:,} units, E = %{y:.2g}<extra></extra>",
            }
        ],
        "layout": {
            "showlegend": False,
            "xaxis": {"title": {"text": "units"}, "rangemode": "tozero"},
            "yaxis": {
                "title": {"text": "E"},
                "type": "log",
                "dtick": 1,
                "range": [math.log10(low) - 0.2, math.log10(high) + 0.4],
            },
            "shapes": shapes,
            "annotations": notes,
        },
    }


def _points(release: Release) -> list[tuple[int, int, float | None]]:
    """(units, segment, E), thinned to what a chart can show; the last one is always kept."""
    rows = list(
        ReleasePoint.objects.filter(release=release).order_by("pk").values_list("units", "segment", "e_value")
    )
    every = max(1, math.ceil(len(rows) / CHART_POINTS))
    return rows[::every] + (rows[-1:] if rows and (len(rows) - 1) % every else [])


def evidence_label(release: Release) -> str:
    log_e = figure(release.evidence, "log_e")
    if log_e is None:
        return "Evidence of harm: no data yet"
    limit = f"{1 / release.plan['alpha']:,.0f}"
    return f"Evidence of harm over units: now E = {e_words(log_e)}, rolled back at {limit}"


def _line(*, color: str, dash: str, **ends: Any) -> dict[str, Any]:
    return {"type": "line", **ends, "line": {"color": color, "width": 1, "dash": dash}}
