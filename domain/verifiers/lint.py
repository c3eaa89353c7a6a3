"""The answer is Python source that a linter finds nothing to say about, for chosen rules.

A sandbox runs ruff on it, isolated from every configuration and deaf to suppressions. The report
under ``lint``: ``{"status", "findings": [{"code", "row", "message"}], "detail"}``. Comments that would
silence a tool are not allowed at all, and a text without a statement is no answer. ``plain`` asks for a
program that only computes: one that runs another, kept as text, would be judged by its wrapping. ``types``
asks for certain annotations of a function: any other would please a linter as well.
"""

import ast
import io
import re
import tokenize
from collections.abc import Mapping
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict
from domain.python_source import syntax_tree
from domain.verifiers.annotations import other_types
from domain.verifiers.base import Evidence, VerifierKind, failed, passed, unscored
from domain.verifiers.plain_program import beyond_computing
from domain.verifiers.python_tests import DIED, answer_source

EVIDENCE = "lint"
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "lint.mccabe.max-complexity": {"type": "integer", "minimum": 1, "maximum": 50},
    "lint.pylint.max-returns": {"type": "integer", "minimum": 1, "maximum": 50},
    "lint.pylint.max-branches": {"type": "integer", "minimum": 1, "maximum": 50},
    "lint.pylint.max-args": {"type": "integer", "minimum": 1, "maximum": 50},
    "lint.pylint.max-statements": {"type": "integer", "minimum": 1, "maximum": 200},
    "lint.pydocstyle.convention": {"enum": ["google", "numpy", "pep257"]},
    "line-length": {"type": "integer", "minimum": 40, "maximum": 320},
}
_SILENCING = re.compile(
    r"#\s*(?:\w+\s*:\s*)*(?:noqa|nosec|type\s*:\s*ignore|pyright|pylint|pragma|ruff\s*:|flake8\s*:|"
    r"isort\s*:|fmt\s*:|yapf\s*:|mypy\s*:)",
    re.IGNORECASE,
)


def silencing_comments(source: str) -> list[str]:
    """Comments that tell a tool to look away. Raises ``SyntaxError`` for what cannot be read."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, IndentationError, ValueError) as error:
        raise SyntaxError(str(error)) from error
    comments = [token for token in tokens if token.type == tokenize.COMMENT]
    return [
        f"{token.string[:60]} (line {token.start[0]})"
        for token in comments
        if _SILENCING.search(token.string)
    ]


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    source = answer_source(answer)
    refused = _refusal(source, plain=task.verifier.params.get("plain", False))
    if refused:
        return failed(refused, checks=[Check(name="source", role="guard", score=0.0, reason=refused)])
    report = evidence.get(EVIDENCE)
    if not isinstance(report, Mapping):
        return unscored("The linter was not run: no evidence from a sandbox.")
    status, detail = str(report.get("status", "")), str(report.get("detail", ""))[:200]
    if status in DIED:
        return failed(f"The linter gave up on the answer. {detail}".rstrip())
    findings = report.get("findings")
    if status != "ok" or not isinstance(findings, list):
        why = {"infra_error": "The sandbox broke down", "unavailable": "No sandbox is available"}
        return unscored(f"{why.get(status, 'The linter gave no report')}. {detail}".rstrip())
    guard = Check(name="source", role="guard", score=1.0)
    types = task.verifier.params.get("types")
    if not findings and types and (reason := other_types(source, types["function"], types["annotations"])):
        return failed(reason, checks=[guard, Check(name="types", score=0.0, reason=reason)])
    if not findings:
        return passed([guard, Check(name="lint", score=1.0)])
    reasons = [_shown(finding) for finding in findings[:10]]
    before = (task.reference or {}).get("findings", 0)
    share = max(0.0, 1.0 - len(findings) / before) if before else 0.0
    return failed(*reasons, score=share, checks=[guard, Check(name="lint", score=share, reason=reasons[0])])


def _refusal(source: str, *, plain: bool) -> str:
    """Why ``source`` is not even linted, or ""."""
    try:
        tree = syntax_tree(source)
        comments = silencing_comments(source)
    except SyntaxError as error:
        return f"The answer is not Python: {str(error)[:100]}."
    if all(_says_nothing(node) for node in tree.body):
        return "The answer holds no program."
    if comments:
        return f"Comments that silence a tool are not allowed: {comments[0]}."
    more = beyond_computing(source) if plain else []
    return f"The program may only compute, with what it says itself; not allowed: {more[0]}." if more else ""


def _says_nothing(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _shown(finding: Any) -> str:
    if not isinstance(finding, Mapping):
        return "A finding that cannot be read."
    message = str(finding.get("message", ""))[:160]
    return f"Line {finding.get('row')}: {finding.get('code') or 'syntax error'}: {message}."


KIND = VerifierKind(
    name="lint",
    title="Style rules",
    description=(
        "The answer is Python that breaks none of the chosen ruff rules. No configuration and no comment "
        "can silence a rule. Combine it with python_tests by gate, so that the program still works."
    ),
    verify=_verify,
    needs=frozenset({EVIDENCE}),
    params_schema={
        "type": "object",
        "properties": {
            "select": {
                "type": "array",
                "minItems": 1,
                "uniqueItems": True,
                "items": {"type": "string", "pattern": "^[A-Z]{1,5}[0-9]{0,4}$"},
            },
            "settings": {"type": "object", "properties": dict(SETTINGS), "additionalProperties": False},
            "plain": {"type": "boolean"},
            "types": {
                "type": "object",
                "properties": {
                    "function": {"type": "string", "minLength": 1},
                    "annotations": {
                        "type": "object",
                        "minProperties": 1,
                        "additionalProperties": {"type": "string", "minLength": 1},
                    },
                },
                "required": ["function", "annotations"],
                "additionalProperties": False,
            },
        },
        "required": ["select"],
        "additionalProperties": False,
    },
    reference_schema={},
)
