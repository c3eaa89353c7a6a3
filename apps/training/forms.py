"""Forms of the training pages. Rules live in the services; here is only how a form is read."""

import json
from collections.abc import Iterable
from typing import Any

from django import forms
from pydantic import ValidationError

from apps.core.models import Project
from apps.feedback.models import Dataset, GauntletEntry, TaskAsset
from apps.training.config import RunConfig
from apps.training.models import TrainingRun
from apps.versions.models import ModelVersion
from domain.contracts import TaskSpec
from domain.exploits import ROWS
from packs.registry import Pack

_ANY = ("", "All")
_DEFAULTS = RunConfig()
_TEXT = forms.TextInput(attrs={"autocomplete": "off"})
TRAJECTORY_STATES = ("passed", "failed", "error", "unscored", "cancelled")


class _Filters(forms.Form):
    """A GET form whose unknown values count as no filter."""

    def values(self) -> dict[str, Any]:
        self.is_valid()
        return {name: self.cleaned_data.get(name) or "" for name in self.fields}


class RunFilters(_Filters):
    q = forms.CharField(required=False, label="Search", max_length=100)
    state = forms.ChoiceField(required=False, choices=[_ANY, *TrainingRun.State.choices])


class TrajectoryFilters(_Filters):
    q = forms.CharField(required=False, label="Task", max_length=200)
    state = forms.ChoiceField(
        required=False, choices=[_ANY, *((state, state.capitalize()) for state in TRAJECTORY_STATES)]
    )
    look = forms.ChoiceField(
        required=False,
        label="Found",
        choices=[
            _ANY,
            ("flagged", "Flagged"),
            ("hidden_failed", "Hidden verifier failed it"),
            ("canary", "Impossible tasks"),
        ],
    )
    step = forms.IntegerField(required=False, min_value=1)


class RunForm(forms.Form):
    name = forms.CharField(max_length=100, widget=_TEXT)
    dataset = forms.ModelChoiceField(
        queryset=Dataset.objects.none(), help_text="RL tasks of the train side; held-out tasks never train."
    )
    parent = forms.ModelChoiceField(queryset=ModelVersion.objects.none(), label="Parent version")
    steps = forms.IntegerField(
        min_value=1, initial=40, help_text="Each step samples, judges and trains once."
    )
    groups = forms.IntegerField(min_value=1, initial=_DEFAULTS.groups, help_text="Tasks per step.")
    group_size = forms.IntegerField(
        min_value=2,
        initial=_DEFAULTS.group_size,
        help_text="Answers per task; they are compared with each other.",
    )
    lr = forms.FloatField(min_value=0, initial=_DEFAULTS.train.lr, label="Learning rate")
    temperature = forms.FloatField(min_value=0, initial=_DEFAULTS.train.temperature)
    kl_beta = forms.FloatField(
        min_value=0,
        initial=_DEFAULTS.train.kl_beta,
        label="KL weight",
        help_text="Pull towards the parent; 0 is none.",
    )
    seed = forms.IntegerField(min_value=0, initial=1)
    advanced = forms.CharField(
        required=False,
        help_text='JSON for the rest, such as {"refills": 2, "train": {"staleness": 0}}.',
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false"}),
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["dataset"].queryset = Dataset.objects.filter(  # type: ignore[attr-defined]
            project=project, kind=Dataset.Kind.RL, split=TaskAsset.Split.TRAIN
        )
        self.fields["dataset"].initial = self.fields["dataset"].queryset.first()  # type: ignore[attr-defined]
        versions = ModelVersion.objects.filter(project=project).select_related("base")
        self.fields["parent"].queryset = versions  # type: ignore[attr-defined]
        for name in ("lr", "temperature", "kl_beta"):
            self.fields[name].widget.attrs["step"] = "any"

    def has_datasets(self) -> bool:
        """Whether the project has anything that a run may practise."""
        return bool(self.fields["dataset"].queryset.exists())  # type: ignore[attr-defined]

    def clean_advanced(self) -> dict[str, Any]:
        try:
            value = json.loads(self.cleaned_data["advanced"] or "{}")
        except ValueError as error:
            raise forms.ValidationError(f"This is not JSON: {error}.") from None
        if not isinstance(value, dict) or not isinstance(value.get("train", {}), dict):
            raise forms.ValidationError("Write a JSON object; what concerns the trainer goes into “train”.")
        return value

    def config(self) -> dict[str, Any]:
        """The fields, over what ``advanced`` says."""
        values, advanced = self.cleaned_data, self.cleaned_data["advanced"]
        train = {name: values[name] for name in ("lr", "temperature", "kl_beta")}
        return {
            **advanced,
            "groups": values["groups"],
            "group_size": values["group_size"],
            "train": {**advanced.get("train", {}), **train},
        }


class ImportForm(forms.Form):
    count = forms.IntegerField(min_value=1, max_value=2000, initial=40)
    seed = forms.IntegerField(
        min_value=0, max_value=2**31 - 1, initial=1, help_text="The same seed makes the same tasks again."
    )


class PackFilters(_Filters):
    """``choices`` come from what is installed."""

    q = forms.CharField(required=False, label="Search", max_length=100)
    pack = forms.ChoiceField(required=False, choices=[_ANY])
    kind = forms.ChoiceField(required=False, label="Verifier", choices=[_ANY])
    environment = forms.ChoiceField(required=False, choices=[_ANY])
    state = forms.ChoiceField(
        required=False,
        choices=[
            _ANY,
            ("sound", "Sound"),
            ("unsound", "Not sound"),
            ("unchecked", "Never checked"),
            ("added", "In this project"),
            ("not_added", "Not in this project"),
        ],
    )

    def __init__(self, *args: Any, packs: Iterable[Pack], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        installed = list(packs)
        families = [family for pack in installed for family in pack.families]
        kinds = sorted({kind for family in families for kind in family.verifier_kinds})
        environments = sorted({family.environment for family in families})
        for name, choices in (
            ("pack", [(pack.name, pack.title) for pack in installed if pack.families]),
            ("kind", [(kind, kind) for kind in kinds]),
            ("environment", [(name, name) for name in environments]),
        ):
            self.fields[name].choices = [_ANY, *choices]  # type: ignore[attr-defined]


class PackCheckForm(forms.Form):
    """Hidden inputs of the buttons: which families, how many tasks."""

    family = forms.CharField(required=False, max_length=100)
    sample = forms.IntegerField(min_value=1, max_value=1000, initial=5, required=False)


class RetireForm(forms.Form):
    reason = forms.CharField(
        max_length=300,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="It stays on record with your name.",
    )


class EntryForm(forms.Form):
    origin = forms.ChoiceField(choices=GauntletEntry.Origin.choices, initial=GauntletEntry.Origin.EXPLOIT)
    name = forms.CharField(max_length=120, widget=_TEXT, help_text="What it tries, in a few words.")
    task = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 8, "class": "mono", "spellcheck": "false"}),
        help_text="A task as JSON, as the API gives it.",
    )
    answer = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false"}),
    )
    turns = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono", "spellcheck": "false"}),
        help_text='Instead of an answer, for a task with turns: a JSON list of what is said, ["…", "…"].',
    )
    row = forms.TypedChoiceField(
        required=False,
        label="Row of the catalogue",
        coerce=int,
        empty_value=None,
        choices=[("", "None"), *((number, f"{number}. {row.title}") for number, row in ROWS.items())],
    )
    source = forms.CharField(
        required=False, max_length=200, widget=_TEXT, help_text="Where it was found or reported."
    )

    def clean_turns(self) -> list[str]:
        try:
            value = json.loads(self.cleaned_data["turns"] or "[]")
        except ValueError as error:
            raise forms.ValidationError(f"This is not JSON: {error}.") from None
        if not isinstance(value, list) or not all(isinstance(turn, str) for turn in value):
            raise forms.ValidationError("Write a list of texts, one for each turn.")
        return value

    def clean_task(self) -> dict[str, Any]:
        try:
            return TaskSpec.model_validate(json.loads(self.cleaned_data["task"])).model_dump(mode="json")
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise forms.ValidationError(f"{place or 'task'}: {first['msg']}") from None
        except ValueError:
            raise forms.ValidationError("This is not JSON.") from None
