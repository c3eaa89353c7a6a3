"""How answers are judged: one file per kind, each a pure function (task, answer, evidence) -> Verdict.

``verify``, ``check_spec`` and ``check_params`` are the doors; ``KINDS`` describes what exists. What needs
a tool (a test run, a linter) arrives as evidence from a sandbox; ``needs`` says which.
"""

from domain.verifiers import (
    accounting,
    composition,
    contains,
    end_state,
    exact,
    geometry,
    grader_python,
    graph,
    json_fields,
    json_schema,
    judge,
    label,
    lint,
    mutants,
    numeric,
    pairwise,
    python_tests,
    regex,
    repo_tests,
    rules,
    scene,
    scorer,
    similarity,
    sql_result,
    string_check,
    table,
    ticket,
    tool_call,
    trace,
)
from domain.verifiers.base import InvalidVerifier, UnknownVerifier, VerifierKind
from domain.verifiers.composition import kinds_of, needs
from domain.verifiers.registry import KINDS, check_params, check_spec, register, verify

for _kind in (
    exact.KIND,
    string_check.KIND,
    contains.KIND,
    similarity.KIND,
    numeric.KIND,
    json_fields.KIND,
    tool_call.KIND,
    python_tests.KIND,
    repo_tests.KIND,
    mutants.KIND,
    sql_result.KIND,
    lint.KIND,
    graph.KIND,
    regex.KIND,
    json_schema.KIND,
    accounting.KIND,
    table.KIND,
    ticket.KIND,
    rules.KIND,
    judge.KIND,
    label.KIND,
    pairwise.KIND,
    geometry.KIND,
    scene.KIND,
    scorer.KIND,
    grader_python.KIND,
    end_state.KIND,
    trace.KIND,
    *composition.KIND_LIST,
):
    register(_kind)

__all__ = [
    "KINDS",
    "InvalidVerifier",
    "UnknownVerifier",
    "VerifierKind",
    "check_params",
    "check_spec",
    "kinds_of",
    "needs",
    "register",
    "verify",
]
