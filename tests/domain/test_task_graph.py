from typing import Any

import pytest

from domain.task_graph import InvalidGraph, TaskGraph, read_graph


def _nodes(*edges: tuple[str, list[str]]) -> list[dict[str, Any]]:
    return [{"name": name, "kind": "exact", "reference": "a", "after": after} for name, after in edges]


def _graph(*edges: tuple[str, list[str]]) -> TaskGraph:
    return read_graph(_nodes(*edges))


def test_a_node_comes_after_all_that_it_builds_on() -> None:
    graph = _graph(("total", ["lines", "tax"]), ("tax", ["lines"]), ("lines", []))

    assert [node.name for node in graph.nodes] == ["lines", "tax", "total"]


def test_written_order_is_kept_where_nothing_depends() -> None:
    graph = _graph(("b", []), ("a", []), ("c", []))

    assert [node.name for node in graph.nodes] == ["b", "a", "c"]


def test_nodes_that_wait_for_each_other_are_refused_by_name() -> None:
    with pytest.raises(InvalidGraph, match=r"wait for each other: 'b', 'c'"):
        _graph(("a", []), ("b", ["c"]), ("c", ["b"]))


def test_a_node_cannot_build_on_itself() -> None:
    with pytest.raises(InvalidGraph, match="wait for each other"):
        _graph(("a", ["a"]))


def test_what_a_node_builds_on_must_exist() -> None:
    with pytest.raises(InvalidGraph, match="'gone', which is not a node"):
        _graph(("a", ["gone"]))


def test_two_nodes_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidGraph, match="Two nodes are named 'a'"):
        _graph(("a", []), ("a", []))


def test_credit_is_the_weighted_share() -> None:
    graph = read_graph(
        [{"name": "a", "kind": "exact", "weight": 3}, {"name": "b", "kind": "exact", "weight": 1}]
    )

    assert [graph.credit(won) for won in ([], ["b"], ["a"], ["a", "b"])] == [0.0, 0.25, 0.75, 1.0]


def test_layers_follow_the_longest_way() -> None:
    graph = _graph(("a", []), ("b", ["a"]), ("c", ["a", "b"]), ("d", []))

    assert [[node.name for node in layer] for layer in graph.layers()] == [["a", "d"], ["b"], ["c"]]


def test_a_reference_may_come_from_the_node_or_from_the_task() -> None:
    nodes = [{"name": "a", "kind": "exact", "reference": "own"}, {"name": "b", "kind": "exact"}]

    graph = read_graph(nodes, {"a": "shared", "b": "shared"})

    assert [node.reference for node in graph.nodes] == ["own", "shared"]


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ({}, ("a",)),
        ({"answer": ""}, ()),
        ({"answer": "order.total"}, ("order", "total")),
        ({"answer": ["a.b"]}, ("a.b",)),
    ],
)
def test_the_path_of_a_part_is_dotted_or_a_list(entry: dict[str, Any], path: tuple[str, ...]) -> None:
    graph = read_graph([{"name": "a", "kind": "exact", **entry}])

    assert graph.nodes[0].answer == path
