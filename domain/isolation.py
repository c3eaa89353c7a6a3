"""Which tasks run a model's code or commands, so that they need a sandbox to be judged at all."""

from domain.contracts import TaskSpec
from domain.verifiers import UnknownVerifier, needs

# Evidence that an environment or a judge brings; all other kinds are collected in a sandbox.
_WITHOUT = frozenset({"workspace", "end_state", "trace", "judgements"})
_ENVIRONMENTS = frozenset({"coding", "modelling"})


def needs_sandbox(task: TaskSpec) -> bool:
    """Whether judging an answer to ``task``, or playing it, runs code."""
    try:
        evidence = needs(task.verifier)
        if task.hidden is not None:
            evidence |= needs(task.hidden.verifier)
    except UnknownVerifier:
        return False  # nobody can judge it, with or without a sandbox
    return task.environment in _ENVIRONMENTS or bool(evidence - _WITHOUT)
