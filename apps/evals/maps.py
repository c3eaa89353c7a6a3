"""The long-context map: pass rate by length of the context and depth of what is asked for."""

from collections import defaultdict
from typing import Any, NamedTuple

from django.db.models import Count

from apps.evals.charts import HEAT
from apps.evals.models import Case, Run
from domain.intervals import Interval, wilson
from domain.long_context import TASKS, family_of

_SCORED = ("passed", "failed")
_CHUNK = 500
_TITLES = {family_of(name): (task.title, task.depth) for name, task in TASKS.items()}


class Cell(NamedTuple):
    """``n`` scored samples, of which ``passed``; ``lost`` were not scored."""

    length: int
    depth: int
    passed: int
    n: int
    lost: int

    @property
    def rate(self) -> float | None:
        return self.passed / self.n if self.n else None

    @property
    def interval(self) -> Interval | None:
        return wilson(self.passed, self.n) if self.n else None


class ContextMap(NamedTuple):
    """Every combination of ``lengths`` (tokens) and ``depths`` (per cent), rows of equal depth; and both
    margins, which hold more samples than a cell. ``at_depth`` says what stands at the depth."""

    family: str
    title: str
    at_depth: str
    lengths: list[int]
    depths: list[int]
    rows: list[list[Cell]]
    by_length: list[Cell]
    by_depth: list[Cell]


def run_maps(run: Run) -> dict[str, ContextMap]:
    """By family, the maps of a run whose cases are tagged with length and depth; none for other runs."""
    counts: dict[str, dict[tuple[int, int], list[int]]] = {}
    states = _states_by_case(run)
    ids = list(states)
    for start in range(0, len(ids), _CHUNK):
        rows = Case.objects.filter(pk__in=ids[start : start + _CHUNK]).order_by()
        for pk, family, tags in rows.values_list("pk", "family", "tags"):
            length, depth = tags.get("length"), tags.get("depth")
            if not _whole(length) or not _whole(depth):
                continue
            cell = counts.setdefault(family, {}).setdefault((length, depth), [0, 0, 0])
            for state, n in states[pk]:
                cell[0] += n * (state == "passed")
                cell[1] += n * (state in _SCORED)
                cell[2] += n * (state not in _SCORED)
    order = [*_TITLES, *sorted(counts.keys() - _TITLES.keys())]
    return {family: _map(family, counts[family]) for family in order if family in counts}


def _states_by_case(run: Run) -> dict[int, list[tuple[str, int]]]:
    rows = run.results.order_by().values_list("case_id", "state").annotate(n=Count("pk"))
    states: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for case, state, n in rows.iterator(chunk_size=10_000):
        states[case].append((state, n))
    return states


def _map(family: str, counts: dict[tuple[int, int], list[int]]) -> ContextMap:
    lengths = sorted({length for length, _ in counts})
    depths = sorted({depth for _, depth in counts})
    rows = [
        [Cell(length, depth, *counts.get((length, depth), (0, 0, 0))) for length in lengths]
        for depth in depths
    ]
    title, at_depth = _TITLES.get(family, (family, "what is asked for"))
    return ContextMap(
        family=family,
        title=title,
        at_depth=at_depth,
        lengths=lengths,
        depths=depths,
        rows=rows,
        by_length=[_sum([row[at] for row in rows]) for at in range(len(lengths))],
        by_depth=[_sum(row) for row in rows],
    )


def _sum(cells: list[Cell]) -> Cell:
    passed, n, lost = (sum(getattr(cell, name) for cell in cells) for name in ("passed", "n", "lost"))
    return Cell(cells[0].length, cells[0].depth, passed, n, lost)


def map_figure(found: ContextMap) -> dict[str, Any]:
    """Heat map with the rate and n in every cell; a cell without scored samples stays empty."""
    return {
        "data": [
            {
                "type": "heatmap",
                "x": [f"{length:,}" for length in found.lengths],
                "y": [f"{depth} %" for depth in found.depths],
                "z": [[cell.rate for cell in row] for row in found.rows],
                "text": [[_words(cell) for cell in row] for row in found.rows],
                "texttemplate": "%{text}",
                "hovertemplate": "%{x} tokens, depth %{y}: %{text}<extra></extra>",
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
            "xaxis": {"title": {"text": "length of the context, tokens"}, "type": "category"},
            "yaxis": {
                "title": {"text": f"depth of {found.at_depth}", "standoff": 12},
                "type": "category",
                "autorange": "reversed",
            },
        },
    }


def _words(cell: Cell) -> str:
    if cell.rate is None:
        return "not scored" if cell.lost else ""
    return f"{100 * cell.rate:.0f} %<br>n = {cell.n}"


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
