"""Composite tasks: atomic parts that build on each other, as a graph without cycles.

A node is judged by a verifier of its own, from its own part of the answer, and counts only when
everything it builds on has passed. Here is the shape: reading and checking it, the order, the
credit, and the layers in which it is drawn. Judging is ``domain.verifiers.graph``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


class InvalidGraph(ValueError):
    """The nodes are no sound graph. The text is for users."""


@dataclass(frozen=True)
class Node:
    """One atomic part. ``after`` names what it builds on; ``answer`` is the path of keys to its part
    in the answer's JSON object (() for the whole answer); ``weight`` is its share of the credit."""

    name: str
    kind: str
    params: Mapping[str, Any] = field(default_factory=dict)
    reference: Any = None
    after: tuple[str, ...] = ()
    weight: float = 1.0
    answer: tuple[str, ...] = ()


@dataclass(frozen=True)
class TaskGraph:
    """Nodes in an order in which each comes after all that it builds on."""

    nodes: tuple[Node, ...]

    def credit(self, passed: Iterable[str]) -> float:
        """Share in [0, 1] of the weight that the nodes in ``passed`` hold."""
        won = set(passed)
        total = sum(node.weight for node in self.nodes)
        return sum(node.weight for node in self.nodes if node.name in won) / total

    def layers(self) -> tuple[tuple[Node, ...], ...]:
        """Nodes by the longest way that leads to them: what could start at once comes first."""
        depth: dict[str, int] = {}
        for node in self.nodes:
            depth[node.name] = 1 + max((depth[name] for name in node.after), default=-1)
        rows: list[list[Node]] = [[] for _ in range(1 + max(depth.values()))]
        for node in self.nodes:
            rows[depth[node.name]].append(node)
        return tuple(tuple(row) for row in rows)


def read_graph(nodes: Sequence[Mapping[str, Any]], reference: Any = None) -> TaskGraph:
    """The graph that ``nodes`` describe: ``{name, kind, params, reference, after, weight, answer}``.

    A node without a reference of its own takes ``reference[name]``, so that what a family shares and
    what one task adds can be kept apart. ``answer`` is dotted ("order.total") or a list of keys; it is
    the node's name where it is left out, and the whole answer where it is "". Raises ``InvalidGraph``.
    """
    read = [_node(entry, reference) for entry in nodes]
    if not read:
        raise InvalidGraph("A task graph needs at least one node.")
    names = [node.name for node in read]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidGraph(f"Two nodes are named {twice[0]!r}.")
    for node in read:
        for name in node.after:
            if name not in names:
                raise InvalidGraph(f"Node {node.name!r} builds on {name!r}, which is not a node.")
    return TaskGraph(tuple(_ordered(read)))


def _node(entry: Mapping[str, Any], reference: Any) -> Node:
    name = str(entry["name"])
    path = entry.get("answer", name)
    keys = [key for key in path.split(".") if key] if isinstance(path, str) else path
    shared = reference.get(name) if isinstance(reference, Mapping) else None
    return Node(
        name=name,
        kind=str(entry["kind"]),
        params=dict(entry.get("params", {})),
        reference=entry.get("reference", shared),
        after=tuple(dict.fromkeys(entry.get("after", ()))),
        weight=float(entry.get("weight", 1.0)),
        answer=tuple(keys),
    )


def _ordered(nodes: Sequence[Node]) -> list[Node]:
    """Written order, kept wherever the dependencies allow it. Raises ``InvalidGraph`` for a cycle."""
    done: list[Node] = []
    settled: set[str] = set()
    waiting = list(nodes)
    while waiting:
        ready = [node for node in waiting if settled.issuperset(node.after)]
        if not ready:
            circle = ", ".join(repr(node.name) for node in waiting)
            raise InvalidGraph(f"These nodes wait for each other: {circle}.")
        done.append(ready[0])
        settled.add(ready[0].name)
        waiting.remove(ready[0])
    return done
