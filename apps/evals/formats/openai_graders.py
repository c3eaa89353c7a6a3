"""Graders of OpenAI's hosted Evals as verifiers. Every one has an equivalent or a reason why not."""

import ast
import math
from collections.abc import Mapping
from typing import Any

from apps.evals.formats.parts import NoEquivalent, checked, criteria_of, judge, part, said
from apps.evals.formats.templates import fields_of, filled, value_at

_ANSWER = "sample.output_text"
_MOST_TERMS = 20
_LONGEST_FORMULA = 2000
_NO_SUM = "its formula is no weighted sum of graders"


def grader_part(grader: Mapping[str, Any], item: Mapping[str, Any]) -> dict[str, Any]:
    """The verifier of one row for ``grader``. Raises ``NoEquivalent`` with the reason."""
    kind = grader.get("type")
    if kind not in _READERS:
        raise NoEquivalent(f"graders of type “{kind}” have no equivalent here")
    return checked(_READERS[str(kind)](grader, item))


def text_of(template: Any, item: Mapping[str, Any], answer: str | None = None) -> str:
    """A template of the hosted product, filled from the row; ``answer`` stands for the model's text."""
    if not isinstance(template, str):
        return said(template)

    def lookup(path: str) -> str:
        if path == _ANSWER and answer is not None:
            return answer
        if path.startswith("sample."):
            raise NoEquivalent(f"it reads {{{{{path}}}}}; only the text of the answer is graded here")
        return said(value_at({"item": item}, path))

    return filled(template, lookup)


def _string_check(grader: Mapping[str, Any], item: Mapping[str, Any]) -> dict[str, Any]:
    operation = str(grader.get("operation", "eq"))
    given, reference = grader.get("input", ""), grader.get("reference", "")
    if not _is_answer(given) and _is_answer(reference) and operation in ("eq", "ne"):
        given, reference = reference, given
    _needs_answer(given)
    if operation not in ("eq", "ne", "like", "ilike"):
        raise NoEquivalent(f"the operation “{operation}” is none of eq, ne, like, ilike")
    return part("string_check", {"operation": operation}, text_of(reference, item))


def _text_similarity(grader: Mapping[str, Any], item: Mapping[str, Any]) -> dict[str, Any]:
    _needs_answer(grader.get("input", ""))
    params = {"metric": str(grader.get("evaluation_metric", "")), "threshold": _threshold(grader)}
    return part("similarity", params, text_of(grader.get("reference", ""), item))


def _score_model(grader: Mapping[str, Any], item: Mapping[str, Any]) -> dict[str, Any]:
    low, high = (*(grader.get("range") or (0.0, 1.0)),)[:2]
    threshold = float(grader.get("pass_threshold", (low + high) / 2))
    if not low < high:
        raise NoEquivalent("its range of scores is empty")
    scaled = (threshold - low) / (high - low)
    return judge(_instructions(grader, item), scaled)


def _label_model(grader: Mapping[str, Any], item: Mapping[str, Any]) -> dict[str, Any]:
    labels, passing = list(grader.get("labels") or []), list(grader.get("passing_labels") or [])
    criteria = criteria_of(_instructions(grader, item))
    if not criteria:
        raise NoEquivalent("a judge without anything to judge by")
    return part("label", {"criteria": criteria, "labels": labels, "passing_labels": passing, "min_words": 1})


def _python(grader: Mapping[str, Any], item: Mapping[str, Any]) -> dict[str, Any]:
    source = grader.get("source")
    if not isinstance(source, str) or "def grade" not in source:
        raise NoEquivalent("its source defines no grade(sample, item)")
    params = {
        "source": source,
        "item": dict(item),
        "pass_threshold": float(grader.get("pass_threshold", 0.5)),
    }
    return part("grader_python", params)


def _multi(grader: Mapping[str, Any], item: Mapping[str, Any]) -> dict[str, Any]:
    """A weighted sum of graders, which is what can be written as ``weighted``."""
    graders = grader.get("graders") or {}
    named = graders if isinstance(graders, Mapping) else {each.get("name"): each for each in graders}
    weights = _weights(str(grader.get("calculate_output", "")))
    unknown = [name for name in weights if name not in named]
    if unknown:
        raise NoEquivalent(f"it computes with “{unknown[0]}”, which is none of its graders")
    total = sum(weights.values())
    parts = [{**grader_part(named[name], item), "weight": weight / total} for name, weight in weights.items()]
    threshold = float(grader.get("pass_threshold", total)) / total
    if not 0 < threshold <= 1:
        raise NoEquivalent("its threshold can never or always be reached")
    return part("weighted", {"parts": parts, "threshold": threshold})


def _weights(formula: str) -> dict[str, float]:
    """``0.7 * a + 0.3 * b`` as weights by name."""
    if len(formula) > _LONGEST_FORMULA:
        raise NoEquivalent(_NO_SUM)
    try:
        tree = ast.parse(formula.strip(), mode="eval").body
    except (SyntaxError, RecursionError, ValueError):
        raise NoEquivalent("its formula cannot be read") from None
    found: dict[str, float] = {}
    todo: list[tuple[ast.expr, float]] = [(tree, 1.0)]
    while todo:
        node, scale = todo.pop()
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            todo += [(node.right, scale), (node.left, scale)]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            sides = [node.left, node.right]
            numbers = [each for each in sides if isinstance(each, ast.Constant)]
            others = [each for each in sides if not isinstance(each, ast.Constant)]
            if len(numbers) != 1:
                raise NoEquivalent(_NO_SUM)
            todo.append((others[0], scale * _factor(numbers[0])))
        elif (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Div)
            and isinstance(node.right, ast.Constant)
        ):
            todo.append((node.left, scale / _factor(node.right)))
        elif isinstance(node, ast.Name):
            found[node.id] = found.get(node.id, 0.0) + scale
        else:
            raise NoEquivalent(_NO_SUM)
        if len(todo) + len(found) > _MOST_TERMS:
            raise NoEquivalent(f"its formula has more than {_MOST_TERMS} terms")
    if not found or min(found.values()) <= 0:
        raise NoEquivalent("its formula has weights that are not above 0")
    return dict(sorted(found.items()))


def _factor(node: ast.Constant) -> float:
    value: Any = node.value
    if not _plain_number(value) or not value or not math.isfinite(value):
        raise NoEquivalent(_NO_SUM)
    return float(value)


def _plain_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _threshold(grader: Mapping[str, Any]) -> float:
    value = grader.get("pass_threshold")
    if not _plain_number(value):
        raise NoEquivalent("it has no pass_threshold, so nothing passes or fails by it")
    return float(value)  # type: ignore[arg-type]


def _instructions(grader: Mapping[str, Any], item: Mapping[str, Any]) -> str:
    given = grader.get("input", "")
    messages = given if isinstance(given, list) else [{"role": "user", "content": given}]
    return "\n\n".join(
        text_of(text, item, "(the answer that is judged)") for message in messages for text in _texts(message)
    )


def _texts(message: Any) -> list[str]:
    content = message.get("content", "") if isinstance(message, Mapping) else message
    parts = content if isinstance(content, list) else [content]
    texts = []
    for each in parts:
        if isinstance(each, str):
            texts.append(each)
        elif isinstance(each, Mapping) and isinstance(each.get("text"), str):
            texts.append(each["text"])
        else:
            raise NoEquivalent("its instructions hold images or sound")
    return texts


def _is_answer(template: Any) -> bool:
    return isinstance(template, str) and fields_of(template) == [_ANSWER] and template.strip()[:2] == "{{"


def _needs_answer(template: Any) -> None:
    if not isinstance(template, str) or fields_of(template) != [_ANSWER]:
        shown = ", ".join(fields_of(template)) if isinstance(template, str) else ""
        raise NoEquivalent(f"its input is {shown or 'fixed'}, not the text of the answer")
    if not template.strip().startswith("{{") or not template.strip().endswith("}}"):
        raise NoEquivalent("its input puts words around the answer")


_READERS = {
    "string_check": _string_check,
    "text_similarity": _text_similarity,
    "score_model": _score_model,
    "label_model": _label_model,
    "python": _python,
    "multi": _multi,
}
