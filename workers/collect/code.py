"""The collectors for code that is judged by more than calls of one function, by evidence name."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from domain.contracts import TaskSpec
from domain.verifiers.lint import EVIDENCE as LINT
from domain.verifiers.mutants import EVIDENCE as MUTANTS
from domain.verifiers.python_tests import answer_source
from domain.verifiers.sql_result import EVIDENCE as SQL
from domain.verifiers.sql_result import query_text, sandbox_databases
from workers.collect.lint import collect_lint
from workers.collect.mutants import collect_mutants
from workers.collect.sql import collect_sql
from workers.sandbox.protocol import Backend, Limits

Collect = Callable[[TaskSpec, str], Awaitable[Mapping[str, Any]]]


def code_collectors(backend: Backend, limits: Limits) -> dict[str, Collect]:
    async def sql(task: TaskSpec, answer: str) -> Mapping[str, Any]:
        scripts = sandbox_databases(task)
        return await collect_sql(backend, query=query_text(answer), scripts=scripts, limits=limits)

    async def lint(task: TaskSpec, answer: str) -> Mapping[str, Any]:
        params = task.verifier.params
        return await collect_lint(
            backend,
            source=answer_source(answer),
            select=params["select"],
            settings=params.get("settings", {}),
            limits=limits,
        )

    async def mutants(task: TaskSpec, answer: str) -> Mapping[str, Any]:
        return await collect_mutants(backend, task, answer, limits=limits)

    return {SQL: sql, LINT: lint, MUTANTS: mutants}
