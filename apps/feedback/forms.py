"""Forms of feedback: filters in the URL, a label, a dataset, anonymization rules."""

from typing import Any

from django import forms

from apps.core.errors import Refused
from apps.core.models import Project
from apps.feedback.models import Capture, Dataset, FailureCase, LabelSchema, TaskAsset
from apps.feedback.rules import Rules, rules_checked
from apps.feedback.selectors import families_of

_ANY = [("", "All")]


class _Filter(forms.Form):
    """A GET form whose unknown values count as no filter."""

    def values(self) -> dict[str, str]:
        self.is_valid()
        return {name: self.cleaned_data.get(name) or "" for name in self.fields}


class CaseFilter(_Filter):
    q = forms.CharField(label="Search", required=False, max_length=200)
    state = forms.ChoiceField(label="State", required=False, choices=[*_ANY, *FailureCase.State.choices])
    family = forms.ChoiceField(label="Family", required=False)
    kind = forms.ChoiceField(label="Kind", required=False)
    group = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)

    def __init__(self, *args: Any, families: list[str], schema: LabelSchema, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["family"].choices = [*_ANY, *((name, name) for name in families)]  # type: ignore[attr-defined]
        kinds = [(row["slug"], row["title"]) for row in schema.kinds]
        self.fields["kind"].choices = [*_ANY, *kinds]  # type: ignore[attr-defined]


class CaptureFilter(_Filter):
    state = forms.ChoiceField(label="State", required=False, choices=[*_ANY, *Capture.State.choices])
    source = forms.ChoiceField(label="Source", required=False, choices=[*_ANY, *Capture.Source.choices])


class AssetFilter(_Filter):
    q = forms.CharField(label="Search", required=False, max_length=120)
    family = forms.ChoiceField(label="Family", required=False)
    split = forms.ChoiceField(label="Split", required=False, choices=[*_ANY, *TaskAsset.Split.choices])
    origin = forms.ChoiceField(
        label="Origin", required=False, choices=[*_ANY, ("case", "A failure"), ("pack", "A pack")]
    )

    def __init__(self, *args: Any, families: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["family"].choices = [*_ANY, *((name, name) for name in families)]  # type: ignore[attr-defined]


class LabelForm(forms.Form):
    """Parses a decision; what is allowed is the service's word."""

    kind = forms.CharField(required=False, max_length=60)
    severity = forms.CharField(required=False, max_length=20)
    correction = forms.CharField(required=False, strip=False)
    note = forms.CharField(required=False, strip=False)
    group = forms.BooleanField(required=False)


class DatasetForm(forms.Form):
    name = forms.CharField(max_length=100, help_text="A name you use again makes its next version.")
    kind = forms.ChoiceField(choices=Dataset.Kind.choices)
    split = forms.ChoiceField(choices=TaskAsset.Split.choices)
    families = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple)

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["families"].choices = [  # type: ignore[attr-defined]
            (row.name, f"{row.title} ({row.train} train, {row.held_out} held out)")  # type: ignore[attr-defined]
            for row in families_of(project)
        ]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


class RulesForm(forms.Form):
    """Rules as people type them: one entry a line."""

    allow = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="Never masked, one a line.",
    )
    deny = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="Always masked, one a line.",
    )
    patterns = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono"}),
        help_text="Entity and regular expression, one pair a line: ORDER_NUMBER ORD-\\d{6}",
    )
    thresholds = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono"}),
        help_text="Certainty from which an entity is masked, one pair a line: PERSON 0.6",
    )
    keep = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono"}),
        help_text="Entities that are never masked, one a line. Tasks need dates and amounts.",
    )
    sample = forms.CharField(
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text="A text to try the rules on. It is not stored.",
    )

    @staticmethod
    def initial_of(rules: Rules) -> dict[str, str]:
        return {
            "allow": "\n".join(rules.allow),
            "deny": "\n".join(rules.deny),
            "patterns": "\n".join(f"{p['entity']} {p['regex']}" for p in rules.patterns),
            "thresholds": "\n".join(f"{entity} {score}" for entity, score in rules.thresholds.items()),
            "keep": "\n".join(rules.keep),
        }

    def clean_patterns(self) -> list[dict[str, str]]:
        pairs = [line.partition(" ") for line in _lines(self.cleaned_data["patterns"])]
        return [{"entity": entity, "regex": shape.strip()} for entity, _, shape in pairs]

    def clean_thresholds(self) -> dict[str, float]:
        found = {}
        for line in _lines(self.cleaned_data["thresholds"]):
            entity, _, score = line.partition(" ")
            try:
                found[entity] = float(score)
            except ValueError:
                raise forms.ValidationError(f"“{line[:40]}” is not an entity and a number.") from None
        return found

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if self.errors:
            return data
        data["rules"] = {
            **{name: _lines(data[name]) for name in ("allow", "deny", "keep")},
            "patterns": data["patterns"],
            "thresholds": data["thresholds"],
        }
        try:
            rules_checked(data["rules"])
        except Refused as problem:
            field = problem.message.partition(":")[0]
            self.add_error(field if field in self.fields else None, problem.message)
        return data
