"""The figures of the dashboard: rates with intervals, families, latencies, costs."""

from collections.abc import Callable, Sequence
from typing import Any

from apps.evals.charts import HEAT
from apps.evals.selectors.dashboard import FamilyRow, Point
from domain.figures import Percentiles

_MS = {"title": {"text": "milliseconds"}, "rangemode": "tozero"}


def rates_figure(points: Sequence[Point], by: str) -> dict[str, Any] | None:
    """Pass rate of each point with its 95 % interval; None where no point has both."""
    shown = [point for point in points if point.summary.pass_rate is not None and point.summary.interval]
    if not shown:
        return None
    rates = [float(point.summary.pass_rate or 0.0) for point in shown]
    spans = [point.summary.interval for point in shown]
    trace = {
        "type": "scatter",
        "mode": "markers+lines" if by == "run" else "markers",
        "x": _names(shown),
        "y": rates,
        "customdata": [[point.summary.scored, point.run.pk] for point in shown],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [span.high - rate for span, rate in zip(spans, rates, strict=True) if span],
            "arrayminus": [rate - span.low for span, rate in zip(spans, rates, strict=True) if span],
            "thickness": 1,
            "width": 4,
        },
        "marker": {"color": "var(--accent)", "size": 8},
        "line": {"color": "var(--accent)", "width": 1},
        "hovertemplate": "%{x}: %{y:.0%}, n = %{customdata[0]}, run %{customdata[1]}<extra></extra>",
    }
    return {
        "data": [trace],
        "layout": {
            "xaxis": {"type": "category", "showgrid": False},
            "yaxis": {"title": {"text": "pass rate"}, "range": [-0.03, 1.03], "tickformat": ".0%"},
        },
    }


def families_figure(points: Sequence[Point], rows: Sequence[FamilyRow]) -> dict[str, Any] | None:
    """Heat map of families by point; a cell without scored samples stays empty."""
    if not rows or not points:
        return None
    return {
        "data": [
            {
                "type": "heatmap",
                "x": _names(points),
                "y": [row.family for row in rows],
                "z": [[cell.pass_rate if cell else None for cell in row.summaries] for row in rows],
                "text": [[_cell(cell) for cell in row.summaries] for row in rows],
                "texttemplate": "%{text}" if len(points) <= 12 else "",
                "hovertemplate": "%{y}, %{x}: %{text}<extra></extra>",
                "zmin": 0,
                "zmax": 1,
                "xgap": 2,
                "ygap": 2,
                "colorscale": HEAT,
                "textfont": {"color": "var(--text)"},
                "colorbar": {"tickformat": ".0%", "title": {"text": "pass rate", "side": "right"}},
            }
        ],
        "layout": {
            "xaxis": {"type": "category"},
            "yaxis": {"type": "category", "autorange": "reversed", "automargin": True},
        },
    }


def latency_figure(points: Sequence[Point]) -> dict[str, Any] | None:
    """Median and 95th percentile of the first token and of the whole answer; None where none was measured."""
    lines: list[tuple[str, str, str, Callable[[Point], float | None]]] = [
        ("first token, median", "var(--muted)", "solid", lambda point: _p50(point.figures.ttft)),
        ("first token, p95", "var(--muted)", "dot", lambda point: _p95(point.figures.ttft)),
        ("whole answer, median", "var(--accent)", "solid", lambda point: _p50(point.figures.latency)),
        ("whole answer, p95", "var(--accent)", "dot", lambda point: _p95(point.figures.latency)),
    ]
    names = _names(points)
    traces = []
    for name, colour, dash, read in lines:
        values = [read(point) for point in points]
        if any(value is not None for value in values):
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers+lines",
                    "name": name,
                    "x": names,
                    "y": values,
                    "connectgaps": False,
                    "line": {"color": colour, "width": 2, "dash": dash},
                    "hovertemplate": "%{x}: %{y:,.0f} ms<extra>%{fullData.name}</extra>",
                }
            )
    if not traces:
        return None
    return {"data": traces, "layout": {"xaxis": {"type": "category"}, "yaxis": _MS, "showlegend": True}}


def cost_figure(points: Sequence[Point]) -> dict[str, Any] | None:
    """USD for 1,000 samples; None where no price is known."""
    values = [None if cost is None else float(cost) for cost in (point.cost_per_1000 for point in points)]
    if all(value is None for value in values):
        return None
    trace = {
        "type": "bar",
        "x": _names(points),
        "y": values,
        "marker": {"color": "var(--accent)"},
        "hovertemplate": "%{x}: $%{y:,.4f}<extra></extra>",
    }
    axis = {"title": {"text": "USD for 1,000 samples"}, "rangemode": "tozero"}
    return {"data": [trace], "layout": {"xaxis": {"type": "category"}, "yaxis": axis}}


def rates_label(points: Sequence[Point]) -> str:
    """The first chart in words."""
    told = [
        f"{point.label} {100 * point.summary.pass_rate:.0f} %, n = {point.summary.scored}"
        for point in points
        if point.summary.pass_rate is not None
    ]
    return "Pass rate. " + "; ".join(told)


def _names(points: Sequence[Point]) -> list[str]:
    """Labels; with the run's number where one target has several points."""
    labels = [point.label for point in points]
    return [
        f"{point.label}, run {point.run.pk}" if labels.count(point.label) > 1 else point.label
        for point in points
    ]


def _cell(summary: Any) -> str:
    if summary is None:
        return ""
    if summary.pass_rate is None:
        return "not scored"
    return f"{100 * summary.pass_rate:.0f} %<br>n = {summary.scored}"


def _p50(measured: Percentiles | None) -> float | None:
    return None if measured is None else measured.p50


def _p95(measured: Percentiles | None) -> float | None:
    return None if measured is None else measured.p95
