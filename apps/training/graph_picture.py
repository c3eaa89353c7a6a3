"""A composite task's graph as boxes and lines for an inline SVG: layers from left to right."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from domain.contracts import Verdict
from domain.task_graph import InvalidGraph, TaskGraph, read_graph

_BOX_W, _BOX_H = 144, 44
_GAP_X, _GAP_Y = 36, 16
_PAD = 8
_NAME = 19


class Box(NamedTuple):
    """``tone`` is pass, fail or "" where nothing was judged; ``x`` and ``y`` are its upper left corner."""

    name: str
    note: str
    tone: str
    x: int
    y: int
    text_x: int
    name_y: int
    note_y: int
    url: str = ""


class Picture(NamedTuple):
    """``label`` says in words what is drawn; lines are SVG paths."""

    width: int
    height: int
    boxes: list[Box]
    lines: list[str]
    label: str
    box_width: int = _BOX_W
    box_height: int = _BOX_H


def graph_picture(task: Mapping[str, Any], verdict: Verdict | None = None) -> Picture | None:
    """The graph that judges ``task`` (a ``TaskSpec`` as JSON), None where it is no composite one. With a
    verdict each node shows how it was judged."""
    verifier = task["verifier"]
    found = _nodes(verifier)
    if found is None:
        return None
    try:
        graph = read_graph(found, task.get("reference"))
    except InvalidGraph:
        return None
    scores = {check.name: check.score for check in verdict.checks} if verdict else {}
    tones = {
        name: "" if score is None else "pass" if score == 1.0 else "fail" for name, score in scores.items()
    }
    notes = {
        node.name: f"{words(node.kind)}, {_percent(node.weight / _weight(graph))}" for node in graph.nodes
    }
    return _drawn(graph, notes, tones, {})


def parts_picture(parts: Sequence[str], whole: str, urls: Mapping[str, str]) -> Picture | None:
    """Atomic families in the order they build on each other, and the composite one they make."""
    if not parts:
        return None
    names = [*parts, whole]
    nodes = [
        {"name": name, "kind": "family", "after": [names[place - 1]] if place else []}
        for place, name in enumerate(names)
    ]
    notes = {name: "composite" if name == whole else "atomic" for name in names}
    return _drawn(read_graph(nodes), notes, {}, urls)


def _nodes(verifier: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Nodes of the graph, which may stand behind a gate or among other parts."""
    params = verifier.get("params", {})
    if verifier.get("kind") == "graph":
        return list(params.get("nodes", ()))
    parts = [*params.get("parts", ()), *(params[key] for key in ("first", "then", "part") if key in params)]
    for part in parts:
        if isinstance(part, Mapping) and (found := _nodes(part)) is not None:
            return found
    return None


def words(name: str) -> str:
    """A name of the code as a reader's words: ``single_turn`` is "single turn"."""
    return name.replace("_", " ")


def _percent(share: float) -> str:
    """One decimal where the share is no whole percent, so that equal parts add up to 100%."""
    return f"{100 * share:.1f}".removesuffix(".0") + "%"


def _weight(graph: TaskGraph) -> float:
    return sum(node.weight for node in graph.nodes)


def _drawn(
    graph: TaskGraph, notes: Mapping[str, str], tones: Mapping[str, str], urls: Mapping[str, str]
) -> Picture:
    layers = graph.layers()
    tallest = max(len(layer) for layer in layers)
    height = 2 * _PAD + tallest * _BOX_H + (tallest - 1) * _GAP_Y
    boxes: dict[str, Box] = {}
    for column, layer in enumerate(layers):
        own = len(layer) * _BOX_H + (len(layer) - 1) * _GAP_Y
        top = (height - own) // 2
        for place, node in enumerate(layer):
            x, y = _PAD + column * (_BOX_W + _GAP_X), top + place * (_BOX_H + _GAP_Y)
            name = node.name if len(node.name) <= _NAME else f"{node.name[: _NAME - 1]}…"
            boxes[node.name] = Box(
                name,
                notes.get(node.name, ""),
                tones.get(node.name, ""),
                x,
                y,
                x + 10,
                y + 18,
                y + 34,
                urls.get(node.name, ""),
            )
    lines = [_line(boxes[before], boxes[node.name]) for node in graph.nodes for before in node.after]
    width = 2 * _PAD + len(layers) * _BOX_W + (len(layers) - 1) * _GAP_X
    return Picture(width, height, list(boxes.values()), lines, _words(graph))


def _line(before: Box, after: Box) -> str:
    x0, y0 = before.x + _BOX_W, before.y + _BOX_H // 2
    x1, y1 = after.x, after.y + _BOX_H // 2
    middle = (x0 + x1) // 2
    return f"M{x0} {y0} C{middle} {y0} {middle} {y1} {x1} {y1}"


def _words(graph: TaskGraph) -> str:
    said = [
        f"{node.name} after {', '.join(node.after)}" if node.after else f"{node.name} first"
        for node in graph.nodes
    ]
    return f"Task graph of {len(graph.nodes)} parts: {'; '.join(said)}"
