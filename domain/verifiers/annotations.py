"""Whether a function is annotated with the types that were asked for, not with any that please a linter."""

import ast
import re
from collections.abc import Mapping

from domain.python_source import syntax_tree

RETURN = "return"
_OLD = re.compile(r"\b(?:typing\.)?(List|Dict|Tuple|Set|FrozenSet)\b")
_OPTIONAL = re.compile(r"(?:typing\.)?Optional\[(.+)\]")


def other_types(source: str, name: str, wanted: Mapping[str, str]) -> str:
    """What is annotated otherwise in the last function ``name`` of ``source``, or "". ``wanted`` has a type
    for each argument and for ``return``. Raises ``SyntaxError``."""
    found = [
        node
        for node in syntax_tree(source).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    ]
    if not found:
        return f"There is no function {name}."
    arguments = found[-1].args
    written = {
        each.arg: each.annotation for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    }
    written[RETURN] = found[-1].returns
    for place, kind in wanted.items():
        got = _said(written.get(place))
        if got != _today(kind):
            what = "The result" if place == RETURN else f"The argument {place}"
            return f"{what} of {name} is annotated {got or 'with nothing'}, not {kind}."
    return ""


def _said(annotation: ast.expr | None) -> str:
    """An annotation as text; one in quotes is what the quotes hold."""
    if annotation is None:
        return ""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return _today(annotation.value)
    return _today(ast.unparse(annotation))


def _today(text: str) -> str:
    """In today's spelling, without spaces."""
    text = _OLD.sub(lambda match: match[1].lower(), text)
    if whole := _OPTIONAL.fullmatch(text):
        text = f"{whole[1]} | None"
    return re.sub(r"\s+", "", text)
