"""Lineage: what led to what, as edges between named nodes, shown as a strip on every detail page."""

from dataclasses import dataclass

from apps.core.models import LineageEdge, Project

_STRIP_LIMIT = 40


@dataclass(frozen=True)
class Node:
    """``key`` is ``<app>.<object>:<id>``, for example ``versions.version:12``."""

    key: str
    label: str
    url: str = ""


def lineage_record(*, project: Project, parent: Node, child: Node) -> None:
    """Record that ``parent`` led to ``child``; recording twice keeps one edge."""
    LineageEdge.objects.get_or_create(
        parent=parent.key,
        child=child.key,
        defaults={
            "project": project,
            "parent_label": parent.label[:120],
            "parent_url": parent.url,
            "child_label": child.label[:120],
            "child_url": child.url,
        },
    )


def lineage_strip(key: str) -> list[Node]:
    """The chain through ``key``: its nearest ancestors first, then itself, then descendants.

    Two queries per step of the chain, at most six steps either way; siblings are not followed.
    """
    before: list[Node] = []
    here: Node | None = None
    cursor = key
    for _ in range(6):
        edge = LineageEdge.objects.filter(child=cursor).order_by("pk").first()
        if edge is None:
            break
        if here is None:
            here = Node(edge.child, edge.child_label, edge.child_url)
        before.insert(0, Node(edge.parent, edge.parent_label, edge.parent_url))
        cursor = edge.parent
    after: list[Node] = []
    cursor = key
    for _ in range(6):
        edge = LineageEdge.objects.filter(parent=cursor).order_by("-pk").first()
        if edge is None:
            break
        if here is None:
            here = Node(edge.parent, edge.parent_label, edge.parent_url)
        after.append(Node(edge.child, edge.child_label, edge.child_url))
        cursor = edge.child
    return [*before, *([here] if here else []), *after][:_STRIP_LIMIT]
