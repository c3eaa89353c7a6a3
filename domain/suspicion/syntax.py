"""Small questions about syntax trees that several detectors ask."""

import ast
from collections.abc import Callable, Iterator

Show = Callable[[ast.AST], str]


def shower(source: str) -> Show:
    """The source of a node, on one short line."""

    def show(node: ast.AST) -> str:
        try:
            text = ast.get_source_segment(source, node) or ast.unparse(node)
        except (ValueError, RecursionError):
            text = type(node).__name__
        return " ".join(text.split())[:160]

    return show


def calls_of(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def name_of(node: ast.AST | None) -> str:
    """Dotted name of a name or attribute, "" for anything else; a method of a call's value keeps its own."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = name_of(node.value)
        return f"{owner}.{node.attr}" if owner else node.attr
    return ""


def mentions(node: ast.AST, words: tuple[str, ...]) -> bool:
    names = {getattr(part, "attr", "") for part in ast.walk(node)} | {
        getattr(part, "id", "") for part in ast.walk(node)
    }
    return any(name == word or name.startswith(word) for name in names for word in words if name)
