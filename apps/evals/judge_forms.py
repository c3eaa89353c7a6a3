"""Forms of the Judges pages."""

import json
from typing import Any

from django import forms

from apps.core.models import Project
from apps.feedback.judge_items import MAX_ITEMS
from apps.feedback.judge_selectors import ONLY
from apps.feedback.models import Judge
from apps.versions.models import Deployment
from domain.judging import PROMPTS
from domain.verifiers.panel import AGGREGATES

_LINES = forms.Textarea(attrs={"rows": 4})
_WAYS = {
    "rubric": "rubric: criterion by criterion",
    "defects": "defects: look for what is wrong first",
    "reader": "reader: as the person who asked",
}
_SUMS = {
    "unanimous": "All judges must agree, else undecided",
    "majority": "More than half decide",
    "mean": "The mean score decides",
}

# Fields that not every kind has. The page shows those of the chosen kind.
_ONLY_FOR = {
    "aggregate": (Judge.Kind.JUDGE, Judge.Kind.PAIRWISE),
    "threshold": (Judge.Kind.JUDGE,),
    "labels": (Judge.Kind.LABEL,),
    "passing_labels": (Judge.Kind.LABEL,),
    "tie_passes": (Judge.Kind.PAIRWISE,),
}


class JudgeForm(forms.Form):
    name = forms.CharField(max_length=100, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    kind = forms.ChoiceField(choices=Judge.Kind.choices, label="It gives")
    criteria = forms.CharField(
        widget=_LINES, help_text="One a line. Criteria that a person can check work best."
    )
    models = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        help_text="External endpoints of the project. Two of different makers are better than one.",
        error_messages={"required": "Choose at least one model."},
    )
    prompts = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        choices=[(name, _WAYS.get(name, name)) for name in PROMPTS],
        initial=list(PROMPTS[:2]),
        label="Ways of asking",
        error_messages={"required": "Choose at least one way of asking."},
    )
    repeats = forms.IntegerField(
        min_value=1, max_value=5, initial=1, help_text="A judge that changes its verdict abstains."
    )
    min_verdicts = forms.IntegerField(
        min_value=1,
        max_value=24,
        required=False,
        label="Quorum",
        help_text="Usable verdicts needed. Empty: two, or the only one.",
    )
    aggregate = forms.ChoiceField(
        choices=[(name, _SUMS[name]) for name in AGGREGATES], label="Together", required=False
    )
    threshold = forms.FloatField(
        min_value=0.01, max_value=1, initial=0.5, required=False, label="Passes at", help_text="For scores."
    )
    labels = forms.CharField(widget=_LINES, required=False, help_text="For labels: one a line.")
    passing_labels = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 2}), required=False, help_text="For labels: those that pass."
    )
    tie_passes = forms.BooleanField(required=False, label="A tie passes", help_text="For comparisons.")
    note = forms.CharField(max_length=200, required=False)

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rows = Deployment.objects.filter(project=project).externals().order_by("name")
        for name, field in self.fields.items():
            field.only_for = " ".join(_ONLY_FOR.get(name, ()))  # type: ignore[attr-defined]
        self.fields["models"].choices = [(row.name, f"{row.name} ({row.model})") for row in rows]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        for name, kinds in _ONLY_FOR.items():
            if data.get("kind") not in kinds:
                self.errors.pop(name, None)  # nobody sees the field, and it is not saved
        if data.get("kind") == Judge.Kind.LABEL:
            for name in ("labels", "passing_labels"):
                if not data.get(name, "").strip():
                    self.add_error(name, "A judge of labels needs them, one a line.")
        return data

    def params(self) -> dict[str, Any]:
        """The verifier's parameters, without those that its kind does not know."""
        data = self.cleaned_data
        found: dict[str, Any] = {
            "criteria": lines_of(data["criteria"]),
            "models": data["models"],
            "prompts": data["prompts"],
            "repeats": data["repeats"],
        }
        if data["min_verdicts"]:
            found["min_verdicts"] = data["min_verdicts"]
        if data["kind"] == Judge.Kind.LABEL:
            found |= {name: lines_of(data[name]) for name in ("labels", "passing_labels")}
        elif data["aggregate"] not in ("", "unanimous"):
            found["aggregate"] = data["aggregate"]
        if data["kind"] == Judge.Kind.JUDGE and data["threshold"]:
            found["threshold"] = data["threshold"]
        if data["kind"] == Judge.Kind.PAIRWISE and data["tie_passes"]:
            found["passing_outcomes"] = ["win", "tie"]
        return found


def initial_of(judge: Judge) -> dict[str, Any]:
    """A form that would save ``judge`` again."""
    params = dict(judge.params)
    texts = {name: "\n".join(params.get(name, [])) for name in ("criteria", "labels", "passing_labels")}
    return {
        **params,
        **texts,
        "prompts": params.get("prompts", list(PROMPTS[:2])),
        "name": judge.name,
        "kind": judge.kind,
        "tie_passes": "tie" in params.get("passing_outcomes", []),
    }


def lines_of(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


class GoldForm(forms.Form):
    """Lines of JSON, typed or in a file."""

    text = forms.CharField(
        required=False,
        label="Answers",
        widget=forms.Textarea(attrs={"rows": 6, "class": "mono", "spellcheck": "false"}),
        help_text=(
            'One a line: {"question": "…", "answer": "…", "passes": true}. With “baseline” the verdict says '
            "whether the answer is better than it. Leave out what names a person."
        ),
    )
    file = forms.FileField(required=False, label="Or a JSONL file")

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        upload = data.get("file")
        try:
            text = upload.read().decode("utf-8-sig") if upload else data.get("text", "")
        except UnicodeDecodeError:
            raise forms.ValidationError("The file is not UTF-8.") from None
        items = []
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                items.append(json.loads(line))
            except (ValueError, RecursionError):
                raise forms.ValidationError(f"Line {number} is not JSON.") from None
            if not isinstance(items[-1], dict):
                raise forms.ValidationError(f"Line {number} is not a JSON object.")
        if not items:
            raise forms.ValidationError("Write at least one answer, or choose a file.")
        data["items"] = items
        return data


class CalibrateForm(forms.Form):
    limit = forms.IntegerField(min_value=2, max_value=MAX_ITEMS, initial=200, label="Answers at most")


class AnswerFilters(forms.Form):
    only = forms.ChoiceField(required=False, label="Show", choices=[("", "All answers"), *ONLY.items()])
