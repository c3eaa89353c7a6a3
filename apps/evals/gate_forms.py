"""The form of a gate's rules: percentages and points as people write them; rules as they are stored."""

from collections.abc import Iterable, Sequence
from typing import Any

from django import forms

from domain.gate_rules import (
    Cost,
    Coverage,
    ErrorRate,
    Floor,
    Latency,
    NonInferior,
    NoRegression,
    Rule,
    SliceFloor,
    rules_read,
)
from domain.summary import GATE_COVERAGE


def _share(label: str, help_text: str, *, low: float = 0, high: float = 100) -> forms.FloatField:
    return forms.FloatField(label=label, required=False, min_value=low, max_value=high, help_text=help_text)


def _lines(label: str, help_text: str) -> forms.CharField:
    widget = forms.Textarea(attrs={"rows": 3, "class": "mono", "spellcheck": "false"})
    return forms.CharField(
        label=label, required=False, max_length=100_000, widget=widget, help_text=help_text
    )


class GateForm(forms.Form):
    """Every rule may stay empty; a form without any takes the gate away."""

    floor = _share(
        "Lower limit at least, %", "The lower end of the pass rate's 95 % interval has to reach it."
    )
    margin = _share(
        "Worse than the version in service by at most, points",
        "Judged on the same cases. Needs a finished run of the version in service.",
        low=0.1,
        high=99,
    )
    alpha = _share(
        "Risk of passing one that is worse than that, %",
        "One-sided; 5 where you leave it empty.",
        low=0.1,
        high=49,
    )
    cases = _lines("Cases that must not be lost", "Ids of cases, one a line.")
    tags = _lines("Cases with a tag that must not be lost", "One “name=value” a line.")
    must = forms.ChoiceField(
        label="These cases",
        required=False,
        choices=[
            ("not_regress", "must pass if they passed in the baseline"),
            ("pass", "must pass, whatever the baseline did"),
        ],
    )
    min_coverage = forms.FloatField(
        label="Coverage at least, %",
        min_value=50,
        max_value=100,
        initial=100 * GATE_COVERAGE,
        help_text="Scored of all samples. Below it the gate is undecided.",
    )
    max_errors = _share(
        "Errors at most, %", "Above it the gate is undecided: errors say nothing about a model."
    )
    p95_ms = forms.FloatField(label="Latency p95 at most, ms", required=False, min_value=1)
    max_usd = forms.FloatField(
        label="Cost per answer at most, $", required=False, min_value=0.000001, help_text="Needs prices."
    )
    max_tokens = forms.FloatField(
        label="Tokens per answer at most", required=False, min_value=1, help_text="Prompt and answer, mean."
    )
    slices = _lines(
        "Floors on slices",
        "One a line, in %: “family=sums 60”, or “family 50” for each value. Family, source, or a tag.",
    )
    blocks_release = forms.BooleanField(
        label="A version must have passed before it is released", required=False, initial=True
    )
    reason = forms.CharField(
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Why the rules change. Goes into the audit trail.",
        error_messages={"required": "Give a reason; it goes into the audit trail."},
    )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if not self.errors:
            try:
                rules_read(self.rules())
            except ValueError as error:
                raise forms.ValidationError(_without_number(str(error))) from None
        return data

    def clean_slices(self) -> list[dict[str, Any]]:
        return [
            _slice_floor(number, line) for number, line in enumerate(_split(self.cleaned_data["slices"]), 1)
        ]

    def rules(self) -> list[dict[str, Any]]:
        """What was filled in, as stored rules; nothing but coverage is no gate."""
        data = self.cleaned_data
        rules: list[dict[str, Any]] = []
        if data["floor"] is not None:
            rules.append({"kind": Floor.kind, "min_rate": data["floor"] / 100})
        if data["margin"] is not None:
            alpha = 5.0 if data["alpha"] is None else data["alpha"]
            rules.append({"kind": NonInferior.kind, "margin": _round(data["margin"]), "alpha": _round(alpha)})
        cases, tags = _split(data["cases"]), _split(data["tags"])
        if cases or tags:
            must = data["must"] or "not_regress"
            rules.append({"kind": NoRegression.kind, "cases": cases, "tags": tags, "must": must})
        if data["max_errors"] is not None:
            rules.append({"kind": ErrorRate.kind, "max_rate": _round(data["max_errors"])})
        if data["p95_ms"] is not None:
            rules.append({"kind": Latency.kind, "p95_ms": data["p95_ms"]})
        if data["max_usd"] is not None or data["max_tokens"] is not None:
            rules.append({"kind": Cost.kind, "max_usd": data["max_usd"], "max_tokens": data["max_tokens"]})
        rules += data["slices"]
        if rules:
            rules.insert(0, {"kind": Coverage.kind, "min_coverage": _round(data["min_coverage"])})
        return rules

    @staticmethod
    def initial_of(rules: Sequence[Rule], blocks_release: bool) -> dict[str, Any]:
        values: dict[str, Any] = {"blocks_release": blocks_release}
        floors = []
        for rule in rules:
            match rule:
                case Coverage():
                    values["min_coverage"] = _percent(rule.min_coverage)
                case ErrorRate():
                    values["max_errors"] = _percent(rule.max_rate)
                case Floor():
                    values["floor"] = _percent(rule.min_rate)
                case NonInferior():
                    values |= {"margin": _percent(rule.margin), "alpha": _percent(rule.alpha)}
                case NoRegression():
                    values |= {"cases": "\n".join(rule.cases), "tags": "\n".join(rule.tags)}
                    values["must"] = rule.must
                case Latency():
                    values["p95_ms"] = f"{rule.p95_ms:g}"
                case Cost():
                    values |= {"max_usd": rule.max_usd, "max_tokens": rule.max_tokens}
                case SliceFloor():
                    where = f"{rule.axis}={rule.value}" if rule.value else rule.axis
                    floors.append(f"{where} {_percent(rule.min_rate)}")
        return values | {"slices": "\n".join(floors)}


def _slice_floor(number: int, line: str) -> dict[str, Any]:
    where, _, share = line.rstrip("% ").rpartition(" ")
    axis, _, value = where.partition("=")
    try:
        floor = float(share) / 100
    except ValueError:
        floor = -1.0
    if not axis.strip() or not 0.0 <= floor <= 1.0:
        raise forms.ValidationError(f"Line {number}: write “family=sums 60” or “family 50”.")
    return {
        "kind": SliceFloor.kind,
        "axis": axis.strip(),
        "value": value.strip(),
        "min_rate": _round(100 * floor),
    }


def _split(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _round(percent: float) -> float:
    """A percentage as a share, without the dust of the division."""
    return round(percent / 100, 9)


def _percent(share: float) -> str:
    return f"{100 * share:.10g}"


def _without_number(sentence: str) -> str:
    return sentence.partition(": ")[2].capitalize() if sentence.startswith("Rule ") else sentence


def words_of(rules: Iterable[Rule]) -> list[str]:
    """The rules as sentences."""
    return [f"{rule.words[:1].upper()}{rule.words[1:]}." for rule in rules]
