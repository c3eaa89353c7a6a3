"""The chart of Evals: pass rate of each suite over the versions of the model, with intervals; and the scale
of heat maps."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from apps.core.models import Project
from apps.evals.models import Run
from apps.evals.selectors import runs_of, summaries_of

_COLOURS = ("var(--accent)", "var(--pass)", "var(--warn)", "var(--info)", "var(--fail)", "var(--muted)")
HEAT = [[0, "var(--sunken)"], [1, "var(--heat)"]]  # rates in cells, under text in --text
MAX_SUITES, MAX_RUNS = 6, 200


def rates_figure(project: Project, runs: Sequence[Run] | None = None) -> dict[str, Any] | None:
    """One line per suite: the newest finished run of each version's standard edition. None without one.

    Points are drawn only where the interval is known; error bars are the interval.
    """
    if runs is None:
        rows = runs_of(project).filter(state=Run.State.DONE, version__isnull=False, edition_kind="standard")
        runs = list(rows[:MAX_RUNS])
    newest: dict[tuple[int, int], Run] = {}
    for run in sorted(runs, key=lambda row: row.pk):
        assert run.version_id is not None
        newest[run.suite_version.suite_id, run.version_id] = run
    summaries = summaries_of(newest.values())
    lines: dict[str, list[tuple[tuple[int, int], str, Any, int]]] = defaultdict(list)
    for run in newest.values():
        summary = summaries[run.pk]
        if summary.pass_rate is not None and summary.interval is not None and run.version is not None:
            place = (run.version.major, run.version.minor)
            lines[run.suite_version.suite.name].append((place, run.version.number, summary, run.pk))
    if not lines:
        return None
    ordered = sorted(lines.items(), key=lambda line: -max(point[3] for point in line[1]))[:MAX_SUITES]
    numbers = [number for _, number in sorted({(p[0], p[1]) for _, points in ordered for p in points})]
    places = {number: at for at, number in enumerate(numbers)}
    return {
        "data": [
            _trace(
                name,
                sorted(points, key=lambda point: point[0]),
                _COLOURS[at],
                places,
                _beside(at, len(ordered)),
            )
            for at, (name, points) in enumerate(ordered)
        ],
        "layout": {
            "xaxis": {
                "tickmode": "array",
                "tickvals": list(range(len(numbers))),
                "ticktext": numbers,
                "range": [-0.5, len(numbers) - 0.5],
                "showgrid": False,
            },
            "yaxis": {"title": {"text": "pass rate"}, "range": [-0.03, 1.03], "tickformat": ".0%"},
            "showlegend": len(ordered) > 1,
        },
    }


def _version_of(point: tuple[tuple[int, int], str, Any, int]) -> tuple[int, int]:
    return point[0]


def _beside(at: int, count: int) -> float:
    """How far a line is moved along the axis, so that intervals of one version do not cover each other."""
    return 0.04 * (at - (count - 1) / 2)


def figure_label(figure: dict[str, Any]) -> str:
    """The chart in words: the last point of each line."""
    parts = [
        f"{trace['name']}: {100 * trace['y'][-1]:.0f} % at version {trace['customdata'][-1][0]}"
        for trace in figure["data"]
    ]
    return "Pass rate over versions. " + "; ".join(parts)


def _trace(
    name: str,
    points: list[tuple[tuple[int, int], str, Any, int]],
    colour: str,
    places: dict[str, int],
    shift: float,
) -> dict[str, Any]:
    rates = [summary.pass_rate for _, _, summary, _ in points]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": [places[number] + shift for _, number, _, _ in points],
        "y": rates,
        "customdata": [[number, summary.scored] for _, number, summary, _ in points],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [s.interval.high - rate for (_, _, s, _), rate in zip(points, rates, strict=True)],
            "arrayminus": [rate - s.interval.low for (_, _, s, _), rate in zip(points, rates, strict=True)],
            "thickness": 1,
            "width": 4,
        },
        "line": {"color": colour, "width": 2},
        "hovertemplate": "%{customdata[0]}: %{y:.0%}, n = %{customdata[1]}<extra>%{fullData.name}</extra>",
    }
