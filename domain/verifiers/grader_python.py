"""The answer is graded by a function that a person wrote: ``grade(sample, item)`` gives 0 to 1.

A sandbox runs the function; the answer is data in ``sample["output_text"]`` and is never run. The report
comes under the evidence key ``grader_python``: ``{"status", "result", "error", "detail"}``, ``result`` as
typed JSON. A grader that fails, or gives anything but a number from 0 to 1, decides nothing: that is a
fault of the grader, and a verifier may train only when it grades every cheat in its gauntlet.
"""

import ast
import json
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from domain import typed_json
from domain.contracts import Check, TaskSpec, Verdict
from domain.verifiers.base import Evidence, InvalidVerifier, VerifierKind, failed, shown, unscored

EVIDENCE = "grader_python"
MAX_SOURCE = 64 * 1024
MAX_ANSWER = 1_000_000
_DEFAULT_THRESHOLD = 0.5
_UNDECIDED = {"infra_error": "The sandbox broke down", "unavailable": "No sandbox is available"}
_ENDED = {
    "nonzero": "The grader's program ended before it gave a result.",
    "signal": "The grader's program was ended by a signal.",
    "timeout": "The grader did not finish in time.",
    "cpu": "The grader used up its processor time.",
    "oom": "The grader used up its memory.",
    "output_limit": "The grader wrote too much output.",
}


def grader_call(task: TaskSpec, answer: str) -> dict[str, Any]:
    """What the sandbox gets: ``source``, ``sample`` and ``item`` as typed JSON. The task's reference is in
    the item as ``reference``, unless the item has a field of that name."""
    params = task.verifier.params
    item = dict(params.get("item", {}))
    if task.reference is not None:
        item.setdefault("reference", task.reference)
    return {
        "source": params["source"],
        "sample": typed_json.encode(_sample(answer)),
        "item": typed_json.encode(item),
    }


def _sample(answer: str) -> dict[str, Any]:
    """As OpenAI's Python grader gives it; ``output_json`` is None where the answer is no JSON."""
    try:
        value = json.loads(answer, parse_constant=_no_constant)
        typed_json.encode(value)
    except (ValueError, TypeError, RecursionError):
        value = None
    message = {"role": "assistant", "content": answer}
    return {"output_text": answer, "output_json": value, "choices": [{"message": message}]}


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    if len(answer) > MAX_ANSWER:
        reason = f"The answer has {len(answer)} characters; at most {MAX_ANSWER} are graded."
        return failed(reason, checks=[Check(name="length", role="format", score=0.0, reason=reason)])
    report = evidence.get(EVIDENCE)
    if not isinstance(report, Mapping):
        return unscored("The answer was not graded: no evidence from a sandbox.")
    status, detail = str(report.get("status", "")), _printable(report.get("detail", ""))
    if status in _ENDED:
        return unscored(f"{_ENDED[status]} {detail}".rstrip())
    if status != "ok":
        why = _UNDECIDED.get(status, f"Unknown sandbox status {status!r}")
        return unscored(f"{why}. {detail}".rstrip())
    if error := _printable(report.get("error", "")):
        return unscored(f"The grader failed: {error}")
    grade, trouble = _grade_of(report.get("result"))
    if grade is None:
        return unscored(trouble)
    threshold = task.verifier.params.get("pass_threshold", _DEFAULT_THRESHOLD)
    if grade >= threshold:
        return Verdict(state="passed", score=grade, checks=(Check(name="grade", score=grade),))
    reason = f"The grader gives {grade:.3g}, below {threshold:g}."
    return failed(reason, score=grade, checks=[Check(name="grade", score=grade, reason=reason)])


def _printable(said: Any) -> str:
    """A program's words, which may quote the answer, as text that every database can hold."""
    text = str(said)[:300].encode("utf-8", "replace").decode("utf-8")
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _grade_of(result: Any) -> tuple[float | None, str]:
    """The grade, or why there is none. True and False are 1 and 0, as in ``return a == b``."""
    try:
        value = typed_json.decode(result)
    except (ValueError, TypeError, RecursionError):
        return None, "The grader's result cannot be read."
    if value is None:
        return None, "The grader returned nothing; it must return a number from 0 to 1."
    if isinstance(value, bool):
        return float(value), ""
    if not isinstance(value, int | float):
        return None, f"The grader returned {shown(value, 60)}, no number."
    if isinstance(value, float) and not math.isfinite(value):
        return None, f"The grader returned {value}, which is no grade."
    if not 0 <= value <= 1:
        return None, f"The grader returned {shown(value, 40)}, outside 0 to 1."
    return float(value), ""


def check_params(params: Mapping[str, Any]) -> None:
    if "source" in params and (trouble := _source_trouble(params["source"])):
        raise InvalidVerifier(f"Verifier 'grader_python', parameters at source: {trouble}", place="source")
    try:
        typed_json.encode(params.get("item", {}))
        json.dumps(params.get("item", {}), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidVerifier(
            f"Verifier 'grader_python', parameters at item: {error}.", place="item"
        ) from error


@lru_cache(maxsize=128)
def _source_trouble(source: str) -> str:
    if len(source.encode("utf-8", "replace")) > MAX_SOURCE:
        return f"at most {MAX_SOURCE // 1024} KiB."
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        return f"line {error.lineno or 1} is no Python: {error.msg}."
    except (ValueError, RecursionError, MemoryError) as error:
        return f"this is no Python: {error or 'it is nested too deeply'}."
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    grade = next((node for node in reversed(functions) if node.name == "grade"), None)
    if grade is None:
        return "it must define a function: def grade(sample, item)."
    if isinstance(grade, ast.AsyncFunctionDef):
        return "grade must be an ordinary function, not async."
    return "" if _takes_two(grade.args) else "grade must take two arguments: def grade(sample, item)."


def _takes_two(args: ast.arguments) -> bool:
    places = [*args.posonlyargs, *args.args]
    required = len(places) - len(args.defaults)
    named = [one for one, default in zip(args.kwonlyargs, args.kw_defaults, strict=True) if default is None]
    return not named and required <= 2 and (len(places) >= 2 or args.vararg is not None)


def _check(params: Mapping[str, Any], reference: Any) -> None:
    check_params(params)


KIND = VerifierKind(
    name="grader_python",
    title="Python grader",
    description=(
        "A function of yours, grade(sample, item), runs in a sandbox with Python's standard library and "
        "returns 0 to 1. The answer is sample['output_text'] and never runs. A grader that raises, or gives "
        "no number from 0 to 1, leaves the answer unscored."
    ),
    verify=_verify,
    needs=frozenset({EVIDENCE}),
    params_schema={
        "type": "object",
        "properties": {
            "source": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_SOURCE,
                "x-language": "python",
                "description": "Python that defines grade(sample, item) and returns a number from 0 to 1.",
            },
            "item": {
                "type": "object",
                "description": "What the function gets as item, with the task's reference as “reference”.",
            },
            "pass_threshold": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": 1,
                "description": "The answer passes from this grade on: 0.5 by default.",
            },
        },
        "required": ["source"],
        "additionalProperties": False,
    },
    reference_schema={},
    check=_check,
    check_params=check_params,
)
