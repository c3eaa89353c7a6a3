"""Curves of a run over its steps. Steps are shown from 1."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from apps.core.ui import numbers

Series = dict[str, list[tuple[int, float]]]


class Chart(NamedTuple):
    """``label`` says in words what the curve shows."""

    name: str
    title: str
    label: str
    figure: dict[str, Any]


class Curve(NamedTuple):
    metric: str
    words: str
    colour: str
    dash: str


# The last one is drawn on top: where both agree, the pass rate is what one sees.
_REWARD = (
    Curve("reward_mean", "mean reward", "var(--muted)", "dash"),
    Curve("pass_rate", "pass rate", "var(--accent)", "solid"),
)
_DRIFT = (
    Curve("kl", "against the parent", "var(--muted)", "dash"),
    Curve("engine_kl", "engine against trainer", "var(--accent)", "solid"),
)
METRICS = [curve.metric for curve in (*_REWARD, *_DRIFT)]


def run_charts(series: Series, steps: int) -> list[Chart]:
    """Charts that have something to show."""
    made = [
        _chart("reward", "Pass rate and reward, first draw of each step", _REWARD, series, steps, share=True),
        _chart("drift", "KL divergence per token", _DRIFT, series, steps, share=False),
    ]
    return [chart for chart in made if chart is not None]


def _chart(
    name: str, title: str, curves: Sequence[Curve], series: Series, steps: int, *, share: bool
) -> Chart | None:
    shown = [curve for curve in curves if series.get(curve.metric)]
    if not shown:
        return None
    layout: dict[str, Any] = {
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "xaxis": {"title": {"text": "step"}, "range": [0.5, _last_shown(shown, series, steps) + 0.5]},
        "yaxis": {"range": [-0.02, 1.05], "tickformat": ".0%"}
        if share
        else {"rangemode": "tozero", "tickformat": ".2~g"},
    }
    return Chart(
        name,
        title,
        "; ".join(_words(curve, series[curve.metric], share) for curve in shown),
        {"data": [_trace(curve, series[curve.metric]) for curve in shown], "layout": layout},
    )


def _last_shown(shown: Sequence[Curve], series: Series, steps: int) -> int:
    """Room to the right for what comes, without squeezing what is there."""
    last = max(series[curve.metric][-1][0] + 1 for curve in shown)
    return max(2, min(steps, max(10, round(1.25 * last))))


def _trace(curve: Curve, points: list[tuple[int, float]]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers" if len(points) < 30 else "lines",
        "x": [step + 1 for step, _ in points],
        "y": [value for _, value in points],
        "line": {"color": curve.colour, "width": 2, "dash": curve.dash},
        "name": curve.words,
    }


def _words(curve: Curve, points: list[tuple[int, float]], share: bool) -> str:
    first, last = points[0][1], points[-1][1]
    say = numbers.percent if share else (lambda value: f"{value:.2g}")
    if len(points) == 1:
        return f"{curve.words} {say(last)} at step {points[0][0] + 1}"
    return f"{curve.words} from {say(first)} to {say(last)} over {points[-1][0] + 1} steps"
