"""The rules of a suite's gate: read from JSON, put into words. Judging them is in ``gate_decision``.

One rule of each kind, except floors of slices. What is left out is not asked; coverage always is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from dataclasses import fields as fields_of
from typing import Any, ClassVar, Literal

from domain.summary import GATE_COVERAGE

MAX_NAMED = 1000
MAX_SLICE_FLOORS = 50
_LARGEST = 1e12  # also keeps out NaN, infinities, and whole numbers that no float holds


@dataclass(frozen=True)
class Coverage:
    """``min_coverage`` of samples must be scored, else nothing statistical can be decided."""

    min_coverage: float = GATE_COVERAGE
    kind: ClassVar[str] = "coverage"

    @property
    def words(self) -> str:
        return f"at least {_percent(self.min_coverage)} of samples are scored"


@dataclass(frozen=True)
class ErrorRate:
    max_rate: float
    kind: ClassVar[str] = "error_rate"

    @property
    def words(self) -> str:
        return f"at most {_percent(self.max_rate)} of samples end in an error"


@dataclass(frozen=True)
class Floor:
    """The lower limit of the 95 % interval of the pass rate, not the rate itself."""

    min_rate: float
    kind: ClassVar[str] = "floor"

    @property
    def words(self) -> str:
        return f"the pass rate's lower limit is at least {_percent(self.min_rate)}"


@dataclass(frozen=True)
class NonInferior:
    """At most ``margin`` worse than the version in service, one-sided at ``alpha``."""

    margin: float
    alpha: float = 0.05
    kind: ClassVar[str] = "non_inferiority"

    @property
    def words(self) -> str:
        return f"at most {_points(self.margin)} worse than the version in service (α = {self.alpha:g})"


@dataclass(frozen=True)
class NoRegression:
    """Named ``cases``, and those with one of ``tags`` (“name=value”), must not be lost.

    ``must`` "not_regress": a case that passed all its samples in the baseline must pass all of them.
    ``must`` "pass": it must pass all of them, whatever the baseline did.
    """

    cases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    must: Literal["not_regress", "pass"] = "not_regress"
    kind: ClassVar[str] = "no_regression"

    @property
    def words(self) -> str:
        what = [_named(self.cases)] if self.cases else []
        what += [f"every case with {tag}" for tag in self.tags]
        return f"{' and '.join(what)} {'passes' if self.must == 'pass' else 'must not regress'}"


@dataclass(frozen=True)
class Latency:
    p95_ms: float
    kind: ClassVar[str] = "latency"

    @property
    def words(self) -> str:
        return f"95 % of answers come within {self.p95_ms:,.0f} ms"


@dataclass(frozen=True)
class Cost:
    """Mean per answer; either ceiling may be left out. Money needs prices on the target."""

    max_usd: float | None = None
    max_tokens: float | None = None
    kind: ClassVar[str] = "cost"

    @property
    def words(self) -> str:
        parts = [f"${self.max_usd:g}"] if self.max_usd is not None else []
        parts += [f"{self.max_tokens:,.0f} tokens"] if self.max_tokens is not None else []
        return f"an answer costs at most {' and '.join(parts)} on average"


@dataclass(frozen=True)
class SliceFloor:
    """A floor for one ``value`` of ``axis`` (“family”, “source”, or a tag's name); "" is each value."""

    axis: str
    min_rate: float
    value: str = ""
    kind: ClassVar[str] = "slice_floor"

    @property
    def words(self) -> str:
        where = f"{self.axis} = {self.value}" if self.value else f"each {self.axis}"
        return f"the pass rate's lower limit is at least {_percent(self.min_rate)} on {where}"


Rule = Coverage | ErrorRate | Floor | NonInferior | NoRegression | Latency | Cost | SliceFloor
_KINDS: dict[str, type[Rule]] = {
    rule.kind: rule
    for rule in (Coverage, ErrorRate, Floor, NonInferior, NoRegression, Latency, Cost, SliceFloor)
}
KINDS = tuple(_KINDS)
_SHARES = {"min_coverage": (0.5, 1.0), "max_rate": (0.0, 1.0), "min_rate": (0.0, 1.0), "margin": (0.0, 1.0)}


def rules_read(rows: Sequence[Mapping[str, Any]]) -> tuple[Rule, ...]:
    """Rules from JSON objects with a ``kind``; ValueError with a sentence for what cannot be one.

    The rule on coverage is put first, with its default where it is left out; no rows stay no rules.
    """
    rules = [_read(number, row) for number, row in enumerate(rows, start=1)]
    for kind in {rule.kind for rule in rules} - {SliceFloor.kind}:
        if sum(rule.kind == kind for rule in rules) > 1:
            raise ValueError(f"Give one rule of the kind “{kind}”, not several.")
    floors = [(rule.axis, rule.value) for rule in rules if isinstance(rule, SliceFloor)]
    if len(floors) > MAX_SLICE_FLOORS:
        raise ValueError(f"At most {MAX_SLICE_FLOORS} slices can have a floor.")
    if len(set(floors)) < len(floors):
        raise ValueError("A slice has two floors. Keep one.")
    if rules and not any(isinstance(rule, Coverage) for rule in rules):
        rules.insert(0, Coverage())
    return tuple(sorted(rules, key=lambda rule: KINDS.index(rule.kind)))


def rules_json(rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """The rules as they are stored; ``rules_read`` gives them back."""
    return [{"kind": rule.kind, **_plain(asdict(rule))} for rule in rules]


def needs_baseline(rules: Sequence[Rule]) -> bool:
    return any(
        isinstance(rule, NonInferior) or (isinstance(rule, NoRegression) and rule.must == "not_regress")
        for rule in rules
    )


def _read(number: int, row: Any) -> Rule:
    if not isinstance(row, Mapping) or not isinstance(row.get("kind"), str) or row["kind"] not in _KINDS:
        raise ValueError(f"Rule {number}: the kind is one of {', '.join(_KINDS)}.")
    rule = _KINDS[row["kind"]]
    fields = {name: value for name, value in row.items() if name != "kind"}
    known = {field.name for field in fields_of(rule)}
    if unknown := sorted(set(map(str, fields)) - known):
        raise ValueError(
            f"Rule {number}: a {row['kind']} has no “{unknown[0][:40]}”. It has {', '.join(sorted(known))}."
        )
    try:
        made = rule(**{name: _value(name, value) for name, value in fields.items()})
    except TypeError:
        missing = sorted(known - set(fields))
        raise ValueError(f"Rule {number}: a {row['kind']} also needs {', '.join(missing)}.") from None
    except ValueError as error:
        raise ValueError(f"Rule {number}: {error}") from None
    if isinstance(made, NoRegression) and not made.cases and not made.tags:
        raise ValueError(f"Rule {number}: name at least one case or tag.")
    if isinstance(made, Cost) and made.max_usd is None and made.max_tokens is None:
        raise ValueError(f"Rule {number}: give a ceiling in dollars, in tokens, or both.")
    if isinstance(made, SliceFloor) and not made.axis:
        raise ValueError(f"Rule {number}: name the axis: family, source, or a tag.")
    return made


def _value(name: str, value: Any) -> Any:
    if name in ("cases", "tags"):
        return _words(name, value)
    if name == "must":
        if value not in ("not_regress", "pass"):
            raise ValueError("must is “not_regress” or “pass”.")
        return value
    if name in ("axis", "value"):
        if not isinstance(value, str) or len(value) > 200:
            raise ValueError(f"{name} is a text of at most 200 characters.")
        return value.strip()
    if value is None and name in ("max_usd", "max_tokens"):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _LARGEST:
        raise ValueError(f"{name} is a number.")
    if name in _SHARES:
        low, high = _SHARES[name]
        if not low <= value <= high or (name == "margin" and not 0.0 < value < 1.0):
            raise ValueError(f"{name} is a share from {low:g} to {high:g}, for example 0.05.")
    elif name == "alpha":
        if not 0.0 < value < 0.5:
            raise ValueError("alpha lies above 0 and below 0.5.")
    elif value <= 0:
        raise ValueError(f"{name} lies above 0.")
    return float(value)


def _words(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise ValueError(f"{name} is a list of texts.")
    if not all(isinstance(word, str) and 0 < len(word.strip()) <= 300 for word in value):
        raise ValueError(f"{name} is a list of texts of at most 300 characters.")
    if len(value) > MAX_NAMED:
        raise ValueError(f"{name} has at most {MAX_NAMED:,} entries.")
    found = tuple(dict.fromkeys(word.strip() for word in value))
    if name == "tags" and (bad := [tag for tag in found if not tag.partition("=")[2].strip()]):
        raise ValueError(f"a tag is written “name=value”, not “{bad[0][:40]}”.")
    return found


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}


def _named(cases: Sequence[str]) -> str:
    if len(cases) <= 3:
        return "case " + ", ".join(cases) if len(cases) == 1 else "cases " + ", ".join(cases)
    return f"{len(cases):,} named cases"


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _points(share: float) -> str:
    return f"{100 * share:g} point{'' if share == 0.01 else 's'}"
