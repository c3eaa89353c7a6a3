"""What a solution has no business with when it shares a process with its judge.

The words are looked for in the syntax tree, not in the text: comments and strings are free, except
that names hidden in ``getattr`` and ``__import__`` count. It is a second fence, not the wall.
"""

import ast

from domain.python_source import syntax_tree

_MODULES = frozenset(
    [
        "atexit",
        "builtins",
        "ctypes",
        "faulthandler",
        "gc",
        "importlib",
        "inspect",
        "linecache",
        "multiprocessing",
        "os",
        "pytest",
        "resource",
        "runpy",
        "signal",
        "site",
        "socket",
        "subprocess",
        "sys",
        "threading",
        "traceback",
        "unittest",
        "checks",
        "typed_json",
        "weakref",
    ]
)
_NAMES = frozenset(
    [
        "__import__",
        "exec",
        "eval",
        "compile",
        "globals",
        "locals",
        "vars",
        "open",
        "breakpoint",
        "setattr",
        "delattr",
    ]
)
_ATTRIBUTES = frozenset(
    [
        "__builtins__",
        "__subclasses__",
        "__globals__",
        "__code__",
        "__closure__",
        "__bases__",
        "__mro__",
        "__loader__",
        "__spec__",
        "f_back",
        "f_globals",
        "f_locals",
        "f_builtins",
        "tb_frame",
        "gi_frame",
        "cr_frame",
        "__traceback__",
        "modules",
        "meta_path",
        "settrace",
        "setprofile",
        "_getframe",
        "_exit",
    ]
)
_OPERATORS = frozenset(
    ["__eq__", "__ne__", "__bool__", "__hash__", "__instancecheck__", "__class__", "__getattribute__"]
)


def suspicious(source: str, *, operators: bool = True) -> list[str]:
    """Each finding as a few words with its line, in order; a text that is no Python has one.

    ``operators``: overloaded comparison and truthiness count too."""
    try:
        tree = syntax_tree(source)
    except SyntaxError:
        return ["the file is not Python"]
    found = []
    for node in ast.walk(tree):
        if word := _word(node, operators):
            found.append((getattr(node, "lineno", 0), word))
    return [f"{word} (line {line})" for line, word in sorted(found)]


def _word(node: ast.AST, operators: bool) -> str:
    if isinstance(node, ast.Import):
        return next((f"import {alias.name}" for alias in node.names if _root(alias.name) in _MODULES), "")
    if isinstance(node, ast.ImportFrom):
        return f"import of {node.module}" if _root(node.module or "") in _MODULES and not node.level else ""
    if isinstance(node, ast.Name):
        if operators and node.id in _OPERATORS and isinstance(node.ctx, ast.Store):
            return f"{node.id} ="
        return node.id if node.id in _NAMES or node.id in _ATTRIBUTES else ""
    if isinstance(node, ast.Attribute):
        return f".{node.attr}" if node.attr in _ATTRIBUTES else ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
        literal = [arg.value for arg in node.args[1:2] if isinstance(arg, ast.Constant)]
        return "" if literal and str(literal[0]) not in _ATTRIBUTES else "getattr of a name not written out"
    if isinstance(node, ast.FunctionDef) and operators and node.name in _OPERATORS:
        return f"def {node.name}"
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name | ast.Call):
        called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        name = called.id if isinstance(called, ast.Name) else ""
        return f"raise {name}" if name in ("SystemExit", "KeyboardInterrupt", "SkipTest") else ""
    return ""


def _root(name: str) -> str:
    return name.partition(".")[0]
