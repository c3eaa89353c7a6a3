"""Whether a program only computes: no code kept in texts, no files, no way to the interpreter's inside.

Where the form of a program is judged, a program that holds another one as text and runs that has a form
that says nothing. So it imports modules that compute and nothing else, uses them by their public names,
and touches no attribute that leads to frames, globals or code.
"""

import ast
import sys
from collections.abc import Iterator

from domain.python_source import syntax_tree

MODULES = frozenset(
    (
        "__future__", "abc", "array", "bisect", "calendar", "cmath", "collections", "contextlib", "copy",
        "dataclasses", "datetime", "decimal", "enum", "fractions", "functools", "hashlib", "heapq",
        "itertools", "json", "math", "numbers", "operator", "random", "re", "statistics", "string",
        "textwrap", "time", "typing", "unicodedata", "uuid",
    )
)  # fmt: skip
_NAMES = frozenset(
    (
        "exec", "eval", "compile", "globals", "locals", "vars", "open", "breakpoint", "getattr", "setattr",
        "delattr", "input", "help",
        # what evaluates texts, or takes the name of an attribute as text
        "attrgetter", "methodcaller", "get_type_hints", "ForwardRef", "singledispatch",
        "singledispatchmethod",
    )
)  # fmt: skip
_OWN = frozenset(("__init__", "__name__", "__doc__", "__annotations__", "__post_init__", "__all__"))
_INSIDE = ("gi_", "cr_", "ag_", "tb_", "f_back", "f_globals", "f_locals", "f_builtins", "f_code")


def beyond_computing(source: str) -> list[str]:
    """What in ``source`` does more than compute, each as a few words with its line, in order. Raises
    ``SyntaxError``."""
    tree = syntax_tree(source)
    modules = {
        alias.asname or alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    looked_into = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    found = []
    for node in ast.walk(tree):
        found += [(getattr(node, "lineno", 0), words) for words in _words(node, modules)]
        if isinstance(node, ast.Name) and node.id in modules and id(node) not in looked_into:
            found.append((node.lineno, f"the module {node.id} as a value"))
    return [f"{words} (line {line})" for line, words in sorted(found)]


def _words(node: ast.AST, modules: set[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (f"import {each.name}" for each in node.names if not _computes(each.name))
    elif isinstance(node, ast.ImportFrom):
        if node.level or not _computes(node.module or ""):
            yield f"import from {node.module or '.'}"
        yield from (f"import of {each.name}" for each in node.names if _forbidden(each.name, inside=True))
    elif isinstance(node, ast.Name) and _forbidden(node.id):
        yield node.id
    elif isinstance(node, ast.Attribute):
        of_module = isinstance(node.value, ast.Name) and node.value.id in modules
        if _forbidden(node.attr, inside=of_module):
            yield f".{node.attr}"
    elif isinstance(node, ast.MatchClass):
        yield from (f"{name}=" for name in node.kwd_attrs if _forbidden(name))


def _computes(module: str) -> bool:
    return module.partition(".")[0] in MODULES


def _forbidden(name: str, *, inside: bool = False) -> bool:
    """``inside`` a module are also other modules, and what it keeps to itself."""
    if inside and (name == "*" or name.startswith("_") or name in sys.stdlib_module_names - MODULES):
        return name not in _OWN
    dunder = name.startswith("__") and name.endswith("__") and name not in _OWN
    return dunder or name in _NAMES or name.startswith(_INSIDE)
