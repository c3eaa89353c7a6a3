"""Forms of the Versions pages. Rules live in the services; here is only how a form is read."""

from collections.abc import Sequence
from typing import Any

from django import forms

from apps.versions.models import Deployment, EditionKind, ModelVersion, RoutingRules
from apps.versions.services.routing import FAILURE_SIGNALS
from apps.versions.terms import Terms, price_text

SIGNAL_WORDS = {
    "error": "The request ended in an error",
    "negative_feedback": "Someone gave negative feedback",
    "correction": "Someone corrected the answer",
    "verifier": "An online verifier failed the answer",
}
_TEXT = forms.TextInput(attrs={"autocomplete": "off"})


class VersionFilters(forms.Form):
    q = forms.CharField(required=False, label="Search", max_length=100)
    state = forms.ChoiceField(required=False, choices=[("", "Any state"), *ModelVersion.State.choices])


class ReasonForm(forms.Form):
    reason = forms.CharField(
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Goes into the audit trail.",
        error_messages={"required": "Give a reason; it goes into the audit trail."},
    )


class GatedForm(ReasonForm):
    """``gates`` are required gates that did not pass: then a second reason is asked for."""

    override_gates = forms.CharField(
        label="Why in spite of the gate",
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Needed because a required gate did not pass. Goes into the audit trail, under your name.",
        error_messages={"required": "A required gate did not pass. Say why you release in spite of it."},
    )

    def __init__(self, *args: Any, gates: Sequence[Any] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not gates:
            del self.fields["override_gates"]


class PromoteForm(GatedForm):
    """``evaluated`` False asks whether the person means it."""

    without_evidence = forms.BooleanField(
        required=False, label="Promote without a finished evaluation. This is recorded."
    )

    def __init__(self, *args: Any, evaluated: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if evaluated:
            del self.fields["without_evidence"]


class ReleaseForm(GatedForm):
    """A plan as people write it: percentages and counts, one step per line."""

    steps = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono", "spellcheck": "false"}),
        help_text="One step per line: share in per cent, then the units that must reach the candidate.",
    )
    margin = forms.FloatField(
        label="Margin, points",
        min_value=0,
        max_value=99,
        help_text="How many points more often the candidate's units may fail.",
    )
    alpha = forms.FloatField(
        label="Chance of a false rollback, %",
        min_value=0.1,
        max_value=49,
        help_text="Holds however often the figures are looked at.",
    )
    failure_signals = forms.MultipleChoiceField(
        label="A unit fails when",
        choices=list(SIGNAL_WORDS.items()),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one signal that counts as a failure."},
    )
    field_order = ("steps", "margin", "alpha", "failure_signals", "reason", "override_gates")

    @staticmethod
    def initial_of(plan: dict[str, Any]) -> dict[str, Any]:
        return {
            "steps": "\n".join(f"{100 * step['weight']:g} % {step['min_units']}" for step in plan["steps"]),
            "margin": f"{100 * plan['margin']:g}",
            "alpha": f"{100 * plan['alpha']:g}",
            "failure_signals": plan["failure_signals"],
        }

    def clean_steps(self) -> list[dict[str, Any]]:
        steps = []
        for number, line in enumerate(self.cleaned_data["steps"].strip().splitlines(), start=1):
            words = line.replace("%", " ").replace(",", " ").split()
            try:
                share, units = (float(word) for word in words)
                if units != int(units):
                    raise ValueError
            except (ValueError, OverflowError):
                raise forms.ValidationError(
                    f"Line {number}: write a share in per cent and a whole number of units, like “10 % 200”."
                ) from None
            steps.append({"weight": share / 100, "min_units": int(units)})
        return steps

    def plan(self) -> dict[str, Any]:
        data = self.cleaned_data
        return {
            "steps": data["steps"],
            "margin": data["margin"] / 100,
            "alpha": data["alpha"] / 100,
            "failure_signals": data["failure_signals"],
        }


class RoutingForm(forms.Form):
    task_types = forms.CharField(
        label="Edition by task type",
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false"}),
        help_text="One per line, “task type: edition”. Editions are standard and high_speed.",
    )
    default_edition = forms.ChoiceField(label="Edition without a task type", choices=EditionKind.choices)
    capture_failures = forms.BooleanField(required=False, label="Capture failed requests")
    capture_success_rate = forms.FloatField(
        label="Successful requests captured, %", min_value=0, max_value=100
    )
    failure_signals = forms.MultipleChoiceField(
        label="A unit of traffic fails when",
        choices=[(signal, SIGNAL_WORDS[signal]) for signal in FAILURE_SIGNALS],
        widget=forms.CheckboxSelectMultiple,
        help_text="A running release keeps the signals that it started with.",
        error_messages={"required": "Choose at least one signal that counts as a failure."},
    )
    reason = forms.CharField(required=False, max_length=2000, widget=_TEXT)

    @staticmethod
    def initial_of(rules: RoutingRules) -> dict[str, Any]:
        return {
            "task_types": "\n".join(f"{name}: {edition}" for name, edition in rules.task_types.items()),
            "default_edition": rules.default_edition,
            "capture_failures": rules.capture_failures,
            "capture_success_rate": f"{100 * rules.capture_success_rate:g}",
            "failure_signals": rules.failure_signals,
        }

    def clean_task_types(self) -> dict[str, str]:
        table: dict[str, str] = {}
        for number, line in enumerate(self.cleaned_data["task_types"].strip().splitlines(), start=1):
            name, colon, edition = (part.strip() for part in line.partition(":"))
            if not colon or not name or not edition:
                raise forms.ValidationError(f"Line {number}: write “task type: edition”.")
            if name in table:
                raise forms.ValidationError(f"Line {number}: “{name}” is there twice.")
            table[name] = edition
        return table

    def changes(self) -> dict[str, Any]:
        data = dict(self.cleaned_data)
        return data | {"capture_success_rate": data["capture_success_rate"] / 100}


class EndpointForm(forms.Form):
    """Where an endpoint is and the terms on which it is asked; a number left empty is the usual one, or
    no limit where there is none usually."""

    name = forms.CharField(
        max_length=100, widget=_TEXT, help_text="Evaluations and the gateway call it “endpoint:name”."
    )
    base_url = forms.CharField(
        label="Address", max_length=300, widget=_TEXT, help_text="OpenAI-compatible, with or without /v1."
    )
    model = forms.CharField(max_length=200, widget=_TEXT, help_text="The model to ask it for.")
    api_key = forms.CharField(
        label="API key",
        required=False,
        max_length=2000,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}, render_value=False),
        help_text="Stored encrypted and never shown again.",
    )
    max_concurrency = forms.IntegerField(
        label="Requests at once", required=False, help_text=f"Empty: {Terms.max_concurrency}."
    )
    requests_per_minute = forms.IntegerField(
        label="Requests a minute", required=False, help_text="Empty: no limit."
    )
    tokens_per_minute = forms.IntegerField(
        label="Tokens a minute",
        required=False,
        help_text="Prompts and answers together. Empty: no limit.",
    )
    timeout_s = forms.IntegerField(
        label="Seconds for one attempt", required=False, help_text=f"Empty: {Terms.timeout_s}."
    )
    max_attempts = forms.IntegerField(
        label="Attempts",
        required=False,
        help_text=f"How often a request is sent at most when the endpoint is busy, fails or is silent. "
        f"Empty: {Terms.max_attempts}.",
    )
    deadline_s = forms.IntegerField(
        label="Seconds for all attempts",
        required=False,
        help_text=f"With the waits between them. Empty: {Terms.deadline_s}.",
    )
    input_usd_per_mtok = forms.DecimalField(
        label="Price of input, US dollars", required=False, help_text="For a million tokens of prompts."
    )
    output_usd_per_mtok = forms.DecimalField(
        label="Price of output, US dollars", required=False, help_text="For a million tokens of answers."
    )

    def __init__(self, *args: Any, endpoint: Deployment | None = None, **kwargs: Any) -> None:
        kwargs["initial"] = _shown(endpoint) if endpoint else None
        super().__init__(*args, **kwargs)
        if endpoint and endpoint.api_key:
            self.fields["api_key"].help_text = "Leave empty to keep the stored key. It is never shown."

    def parts(self) -> list[tuple[str, list[Any]]]:
        """Headings and fields, as the page shows them."""
        titles = {"name": "", "max_concurrency": "Limits", "input_usd_per_mtok": "Prices"}
        parts: list[tuple[str, list[Any]]] = []
        for bound in self:
            if bound.name in titles:
                parts.append((titles[bound.name], []))
            parts[-1][1].append(bound)
        return parts

    def values(self) -> dict[str, Any]:
        """What the services take."""
        data = dict(self.cleaned_data)
        usual = Terms()
        given = {name: data.pop(name) for name in Terms.names()}
        terms = {name: getattr(usual, name) if value is None else value for name, value in given.items()}
        return data | {"terms": Terms(**terms)}


def _shown(endpoint: Deployment) -> dict[str, Any]:
    terms = Terms.of(endpoint).as_dict()
    for name in ("input_usd_per_mtok", "output_usd_per_mtok"):
        if terms[name] is not None:
            terms[name] = price_text(terms[name])
    return {"name": endpoint.name, "base_url": endpoint.base_url, "model": endpoint.model, **terms}
