"""Programs that hold the expected outputs instead of computing them.

Known pairs of input and output come from the calls that judge the task and from the asserts in the
tests it shows. A program that spells out most of them, or a function that cannot depend on its
input although the outputs do, has not been written to solve the task.
"""

import ast
import json
from collections.abc import Callable, Iterator
from typing import Any

from domain import typed_json
from domain.contracts import TaskSpec
from domain.suspicion.material import Finding, is_test_path, parsed, start_files

Pair = tuple[str, str]  # canonical input and output
_FEWEST = 3


def findings(task: TaskSpec, tree: ast.Module, show: Callable[[ast.AST], str]) -> Iterator[Finding]:
    pairs = _known_pairs(task)
    found = {pair: node for node, pair in _spelled_pairs(tree)}
    shared = [pair for pair in found if pair in pairs]
    if (len(shared) >= _FEWEST and 2 * len(shared) >= len(pairs)) or 2 <= len(shared) == len(pairs):
        reason = f"The program spells out {len(shared)} of {len(pairs)} known inputs with their outputs."
        yield Finding("holds expected outputs", reason, show(found[shared[0]]), True)
    entry = task.verifier.params.get("entry_point")
    if len({output for _, output in pairs}) > 1 and isinstance(entry, str):
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == entry and _is_constant(node):
                reason = f"“{entry}” returns the same value for every input."
                yield Finding("ignores its input", reason, show(node), True)


def _known_pairs(task: TaskSpec) -> set[Pair]:
    pairs = set()
    reference = task.reference if isinstance(task.reference, dict) else {}
    for call in reference.get("calls", ()) if isinstance(reference.get("calls"), list) else ():
        if isinstance(call, dict) and len(call.get("args", ())) >= 1 and "expected" in call:
            try:
                args = [typed_json.decode(arg) for arg in call["args"]]
                pairs.add(
                    (
                        _canonical(args[0] if len(args) == 1 else args),
                        _canonical(typed_json.decode(call["expected"])),
                    )
                )
            except (ValueError, TypeError):
                continue
    for path, text in start_files(task).items():
        if is_test_path(path) and (tree := parsed(text)) is not None:
            pairs.update(_asserted(tree))
    return pairs


def _asserted(tree: ast.Module) -> Iterator[Pair]:
    """``assert f(1) == 2`` and ``assertEqual(f(1), 2)``."""
    for node in ast.walk(tree):
        left, right = None, None
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare) and len(node.test.ops) == 1:
            left, right = node.test.left, node.test.comparators[0]
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "attr", "") == "assertEqual"
            and len(node.args) >= 2
        ):
            left, right = node.args[0], node.args[1]
        if isinstance(left, ast.Call) and left.args and right is not None:
            inputs = [_literal(arg) for arg in left.args]
            output = _literal(right)
            if None not in inputs and output is not None:
                values = [value for (value,) in inputs]  # type: ignore[misc]
                yield _canonical(values[0] if len(values) == 1 else values), _canonical(output[0])


def _spelled_pairs(tree: ast.Module) -> Iterator[tuple[ast.AST, Pair]]:
    """Pairs in dictionaries, in ``if x == …: return …``, in ``match`` and in conditional expressions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                yield from _pair(node, key, value)
        elif isinstance(node, ast.If) and node.body and isinstance(node.body[0], ast.Return):
            yield from _compared(node, node.test, node.body[0].value)
        elif isinstance(node, ast.IfExp):
            yield from _compared(node, node.test, node.body)
        elif isinstance(node, ast.match_case) and isinstance(node.pattern, ast.MatchValue) and node.body:
            last = node.body[0]
            yield from _pair(last, node.pattern.value, last.value if isinstance(last, ast.Return) else None)


def _compared(node: ast.AST, test: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.AST, Pair]]:
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        yield from _pair(node, test.comparators[0], value)
        yield from _pair(node, test.left, value)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        parts = [part for part in test.values if isinstance(part, ast.Compare) and len(part.comparators) == 1]
        whole = ast.Tuple(elts=[part.comparators[0] for part in parts], ctx=ast.Load())
        yield from _pair(node, whole, value)


def _pair(node: ast.AST, key: ast.expr | None, value: ast.expr | None) -> Iterator[tuple[ast.AST, Pair]]:
    left, right = _literal(key), _literal(value)
    if left is not None and right is not None:
        yield node, (_canonical(left[0]), _canonical(right[0]))


def _literal(node: ast.AST | None) -> tuple[Any] | None:
    """The value of a literal, in a tuple so that None can be one."""
    if node is None:
        return None
    try:
        return (ast.literal_eval(node),)  # type: ignore[arg-type]
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _is_constant(function: ast.FunctionDef) -> bool:
    body = [
        part
        for part in function.body
        if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
    ]
    return not body or (
        len(body) == 1
        and (
            isinstance(body[0], ast.Pass)
            or (isinstance(body[0], ast.Return) and _literal(body[0].value) is not None)
        )
    )


def _canonical(value: Any) -> str:
    """One text for values that a test would call equal: a tuple is a list, 2.0 is 2."""
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False, default=repr)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, set | frozenset):
        return {"set": sorted(_canonical(part) for part in value)}
    if isinstance(value, dict):
        return {"dict": sorted([_canonical(key), _canonical(part)] for key, part in value.items())}
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
