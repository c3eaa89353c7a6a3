"""Forms of the suite pages: suites, files to import and how they are read, filters."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from apps.evals.formats import FORMATS, Upload
from apps.evals.formats.base import Options
from apps.evals.formats.csv_table import ROLES
from apps.evals.formats.jsonl import VERIFIERS
from apps.evals.formats.openai_registry import CLASSES
from apps.evals.models import Case, SuiteVersion
from apps.evals.services.lines import MAX_BYTES
from apps.evals.services.reading import Choices

_TEXT = forms.TextInput(attrs={"autocomplete": "off"})
_MOST_FILES = 10
_ROLE_WORDS = {
    "": "not read",
    "id": "id",
    "input": "what is asked",
    "system": "system prompt",
    "messages": "messages, as JSON",
    "expected": "what is expected",
    "family": "family",
    "source": "source",
    "split": "split",
    "tags": "a tag",
}
_CLASS_WORDS = {
    "Match": "Match: begins with it",
    "Includes": "Includes: contains it",
    "FuzzyMatch": "FuzzyMatch: one contains the other, without punctuation",
    "JsonMatch": "JsonMatch: the same JSON value",
}


class SuiteForm(forms.Form):
    name = forms.CharField(max_length=100, widget=_TEXT)
    description = forms.CharField(required=False, max_length=2000, widget=forms.Textarea(attrs={"rows": 2}))


class _Files(forms.FileInput):
    allow_multiple_selected = True


class _FilesField(forms.FileField):
    """One file or several; the value is a list."""

    widget = _Files

    def clean(self, data: Any, initial: Any = None) -> list[Any]:
        files = data if isinstance(data, list | tuple) else [data]
        if len(files) > _MOST_FILES:
            raise forms.ValidationError(f"At most {_MOST_FILES} files at a time.")
        found = [super(_FilesField, self).clean(each, initial) for each in files]
        if sum(each.size for each in found if each) > MAX_BYTES:
            many = "The file is" if len(found) == 1 else "The files together are"
            raise forms.ValidationError(f"{many} larger than {MAX_BYTES // 2**20} MB. Nothing was imported.")
        return found


class ImportForm(forms.Form):
    name = forms.CharField(
        max_length=100,
        label="Suite",
        widget=_TEXT,
        help_text="A new name makes a suite; a known one gets its next version.",
    )
    file = _FilesField(
        label="Files",
        help_text=f"CSV, JSONL, OpenAI Evals, promptfoo, Inspect, HumanEval; up to {MAX_BYTES // 2**20} MB. "
        "Choose together what belongs together: an eval with its run and its data.",
        allow_empty_file=True,
    )
    format = forms.ChoiceField(
        required=False,
        choices=[("", "Told by the file"), *((each.name, each.title) for each in FORMATS.values())],
    )
    keep_personal_data = forms.BooleanField(
        required=False,
        label="Keep personal data as it is in the file",
        help_text="Only where you may; this is recorded. Otherwise names and addresses are replaced.",
    )

    def uploads(self) -> list[Upload]:
        return [Upload(each.name, each.read()) for each in self.cleaned_data["file"]]

    def choices(self) -> Choices:
        return Choices(
            options=Options(format=self.cleaned_data["format"]),
            keep_personal_data=self.cleaned_data["keep_personal_data"],
        )


class ReadingForm(forms.Form):
    """How files that were sent are read; columns only where they are a table."""

    name = forms.CharField(max_length=100, label="Suite", widget=_TEXT)
    format = forms.ChoiceField(
        required=False,
        choices=[("", "Told by the file"), *((each.name, each.title) for each in FORMATS.values())],
    )
    verifier = forms.ChoiceField(required=False, label="Judged by")
    prompt = forms.CharField(
        required=False,
        label="Prompt",
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 2, "class": "mono"}),
        help_text="Where no run says what is asked: a text with {{item.name}} in it.",
    )
    family = forms.CharField(
        required=False,
        max_length=100,
        widget=_TEXT,
        help_text="For cases that name none. Empty: the file's name.",
    )
    held_out = forms.FloatField(
        required=False,
        label="Held out, %",
        min_value=0,
        max_value=100,
        help_text="Split by source, for good.",
    )
    validation = forms.FloatField(required=False, label="Validation, %", min_value=0, max_value=100)
    keep_held_out = forms.BooleanField(
        required=False, label="Keep held-out cases of the newest version that the files lack"
    )
    keep_personal_data = forms.BooleanField(required=False, label="Keep personal data as it is in the file")

    def __init__(self, *args: Any, format_name: str, columns: Sequence[Sequence[str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.column_names = [name for name, _ in columns]
        if format_name == "openai_registry":
            judged = [("", "as the YAML says"), *((name, _CLASS_WORDS[name]) for name in CLASSES)]
        elif format_name in ("csv", "jsonl", ""):
            judged = list(VERIFIERS.items())
        else:
            judged = []
        if judged:
            self.fields["verifier"].choices = judged  # type: ignore[attr-defined]
        else:
            del self.fields["verifier"]
        if format_name not in ("openai_hosted", ""):
            del self.fields["prompt"]
        for at, (name, role) in enumerate(columns):
            self.fields[f"column_{at}"] = forms.ChoiceField(
                required=False, label=f"Column “{name}”", choices=list(_ROLE_WORDS.items()), initial=role
            )
        mine = [f"column_{at}" for at in range(len(columns))]
        self.order_fields(["name", "format", *mine, "verifier", "prompt"])

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if (data.get("held_out") or 0) + (data.get("validation") or 0) > 100:
            self.add_error("validation", "Held out and validation together are at most 100 %.")
        return data

    def choices(self) -> Choices:
        data = self.cleaned_data
        columns = {name: data.get(f"column_{at}", "") for at, name in enumerate(self.column_names)}
        return Choices(
            options=Options(
                format=data["format"],
                columns=columns,
                verifier=data.get("verifier", ""),
                family=data["family"],
                prompt=data.get("prompt", ""),
            ),
            keep_personal_data=data["keep_personal_data"],
            keep_held_out=data["keep_held_out"],
            validation=(data["validation"] or 0.0) / 100,
            held_out=(data["held_out"] or 0.0) / 100,
        )

    @staticmethod
    def initial_of(name: str, options: Mapping[str, Any], keep_personal_data: bool) -> dict[str, Any]:
        kept = ("format", "verifier", "prompt", "family", "keep_held_out")
        return {
            "name": name,
            **{key: options.get(key) for key in kept},
            "held_out": round(options.get("held_out", 0.0) * 100, 6) or None,
            "validation": round(options.get("validation", 0.0) * 100, 6) or None,
            "keep_personal_data": keep_personal_data,
        }


class SuiteFilters(forms.Form):
    q = forms.CharField(required=False, label="Search", max_length=100)


class CaseFilters(forms.Form):
    q = forms.CharField(required=False, label="Search", max_length=100)
    family = forms.ChoiceField(required=False)
    split = forms.ChoiceField(required=False)

    def __init__(self, data: Any, *, families: list[str], splits: list[str]) -> None:
        super().__init__(data)
        self.fields["family"].choices = [  # type: ignore[attr-defined]
            ("", "Any family"), *((family, family) for family in families),
        ]  # fmt: skip
        words = dict(Case.Split.choices)
        self.fields["split"].choices = [  # type: ignore[attr-defined]
            ("", "Any split"), *((split, str(words[split])) for split in splits),
        ]  # fmt: skip
        if not splits:
            del self.fields["split"]


class DiffForm(forms.Form):
    """Which two versions, and which of the differences."""

    old = forms.ChoiceField(label="From", required=False)
    new = forms.ChoiceField(label="To", required=False)
    kind = forms.ChoiceField(
        required=False,
        label="Show",
        choices=[("", "All"), ("changed", "Changed"), ("added", "Added"), ("removed", "Removed")],
    )

    def __init__(self, data: Any, *, versions: Sequence[SuiteVersion]) -> None:
        super().__init__(data)
        numbers = [(str(row.number), f"v{row.number}") for row in versions]
        for name in ("old", "new"):
            self.fields[name].choices = numbers  # type: ignore[attr-defined]


assert set(ROLES) <= set(_ROLE_WORDS)
