"""The table of verifier kinds, and the two questions asked of it: is this specification sound, and
what does it say about this answer."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import jsonschema  # type: ignore[import-untyped]

from domain.contracts import TaskSpec, Verdict, VerifierSpec
from domain.verifiers.base import (
    Evidence,
    InvalidVerifier,
    JsonSchema,
    UnknownVerifier,
    VerifierKind,
    unscored,
)

# What reading parameters or an answer may raise where nobody thought of it: one answer must not end a batch.
_BROKEN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

_kinds: dict[str, VerifierKind] = {}

KINDS: Mapping[str, VerifierKind] = MappingProxyType(_kinds)


def register(kind: VerifierKind) -> None:
    """Add a kind. Raises ``ValueError`` when the name is taken by another one."""
    if _kinds.get(kind.name, kind) is not kind:
        raise ValueError(f"A verifier named {kind.name!r} is already registered.")
    _kinds[kind.name] = kind


def verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    """Judge ``answer``. A specification that is unsound, or a verifier that breaks, decides nothing: the
    verdict is unscored."""
    try:
        check_spec(task.verifier, task.reference)
    except InvalidVerifier as error:
        return unscored(str(error))
    try:
        return _kinds[task.verifier.kind].verify(task, answer, evidence)
    except _BROKEN as error:
        return unscored(f"Verifier {task.verifier.kind!r} broke on this answer ({type(error).__name__}).")


def check_spec(spec: VerifierSpec, reference: Any) -> None:
    """Raise ``UnknownVerifier`` or ``InvalidVerifier``, with a sentence for the user."""
    kind = find(spec.kind)
    checks = _checks(kind.name)
    _apply(checks.params, spec.params, f"Verifier {kind.name!r}, parameters")
    _apply(checks.reference, reference, f"Verifier {kind.name!r}, reference")
    try:
        kind.check(spec.params, reference)
    except InvalidVerifier:
        raise
    except _BROKEN as error:
        raise InvalidVerifier(f"Verifier {kind.name!r} cannot read this ({type(error).__name__}).") from error


def check_params(kind: str, params: Mapping[str, Any], *, partial: bool = True) -> None:
    """What can be said of parameters before a task brings its reference. With ``partial``, what each
    task says itself may be left out. Raises ``UnknownVerifier`` or ``InvalidVerifier``."""
    found = find(kind)
    checks = _checks(found.name)
    _apply(checks.partial if partial else checks.params, params, f"Verifier {found.name!r}, parameters")
    try:
        found.check_params(params)
    except InvalidVerifier:
        raise
    except _BROKEN as error:
        raise InvalidVerifier(
            f"Verifier {found.name!r} cannot read this ({type(error).__name__})."
        ) from error


def find(name: str) -> VerifierKind:
    """The kind called ``name``. Raises ``UnknownVerifier``."""
    if name not in _kinds:
        raise UnknownVerifier(f"There is no verifier {name!r}. Choose one of: {', '.join(sorted(_kinds))}.")
    return _kinds[name]


class _Checks(NamedTuple):
    params: Any
    reference: Any
    partial: Any


@cache
def _checks(name: str) -> _Checks:
    """Made at first use: checking the schemas of all kinds takes as long as starting Django does."""
    kind = _kinds[name]
    optional = {key: value for key, value in kind.params_schema.items() if key != "required"}
    return _Checks(_validator(kind.params_schema), _validator(kind.reference_schema), _validator(optional))


def _validator(schema: JsonSchema) -> Any:
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def _apply(validator: Any, value: Any, what: str) -> None:
    error = jsonschema.exceptions.best_match(validator.iter_errors(value))
    if error is None:
        return
    path, message = [str(part) for part in error.absolute_path], _explained(error) or error.message
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        path, message = [*path, missing], f"{missing!r} is missing"
    place = "/".join(path)
    message = message if len(message) <= 200 else message[:199] + "…"
    raise InvalidVerifier(f"{what}{f' at {place}' if place else ''}: {message.rstrip('.')}.", place=place)


def _explained(error: Any) -> str:
    """Why a value that people expect is none: schemas say so under ``x-refused``."""
    refused = error.schema.get("x-refused", {}) if isinstance(error.schema, Mapping) else {}
    return str(refused.get(error.instance, "")) if isinstance(error.instance, str) else ""
