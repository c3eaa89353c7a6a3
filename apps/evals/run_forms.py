"""Forms of runs: how one is started, and the filters of the list and of its results."""

from typing import Any

from django import forms

from apps.core.models import Project
from apps.evals.dimensions import TAG
from apps.evals.forms import TargetForm
from apps.evals.models import Result, Run, RunSlice, Suite, SuiteVersion
from apps.evals.services.runs import MAX_BATCH, MAX_CONCURRENCY

_MOST_CHOICES = 300
SAMPLING = ("samples", "temperature", "top_p", "seed", "max_tokens")
SETTINGS = ("concurrency", "batch_size", "cache")


class RunForm(TargetForm):
    suite_version = forms.ChoiceField(label="Suite")
    samples = forms.IntegerField(
        label="Samples per case",
        min_value=1,
        max_value=256,
        initial=1,
        help_text="Several need a temperature above 0.",
    )
    temperature = forms.FloatField(min_value=0, max_value=2, initial=0, step_size=0.1)
    top_p = forms.FloatField(
        label="Top p", required=False, min_value=0.01, max_value=1, initial=1, step_size=0.01
    )
    max_tokens = forms.IntegerField(
        label="Most tokens per answer",
        required=False,
        min_value=1,
        max_value=32_768,
        help_text="Empty: as each case says.",
    )
    seed = forms.IntegerField(
        initial=0,
        min_value=0,
        max_value=2**31 - 1,
        help_text="Every sample of every case gets its own seed, drawn from this one.",
    )
    concurrency = forms.IntegerField(
        label="Asked at once",
        required=False,
        min_value=1,
        max_value=MAX_CONCURRENCY,
        initial=16,
        help_text="An endpoint's own limit holds where it is lower.",
    )
    batch_size = forms.IntegerField(
        label="Cases per batch",
        required=False,
        min_value=1,
        max_value=MAX_BATCH,
        initial=32,
        help_text="What one worker takes at a time. A lost worker costs one batch.",
    )
    cache = forms.BooleanField(
        required=False,
        label="Use answers of earlier runs to the very same request",
        help_text="Same model, revision, messages, tools, settings and seed. Those answers cost nothing.",
    )
    field_order = ("suite_version", "target", *SAMPLING, *SETTINGS)

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, project=project, **kwargs)
        rows = SuiteVersion.objects.filter(suite__project=project).select_related("suite")
        rows = rows.order_by("suite__name", "-number")
        self.fields["suite_version"].choices = [  # type: ignore[attr-defined]
            (str(row.pk), f"{row} ({row.count:,} cases)") for row in rows
        ]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if (data.get("samples") or 1) > 1 and data.get("temperature") == 0:
            self.add_error("samples", "At temperature 0 every sample is the same. Raise it, or take one.")
        return data

    def settings(self) -> dict[str, Any]:
        """The arguments of ``run_start`` beside suite and target; what was left empty is as at first."""
        told = {
            name: self.fields[name].initial if self.cleaned_data[name] is None else self.cleaned_data[name]
            for name in (*SAMPLING, *SETTINGS)
        }
        return {
            "sampling": {name: told[name] for name in SAMPLING},
            **{name: told[name] for name in SETTINGS},
        }


class RunFilters(forms.Form):
    q = forms.CharField(required=False, label="Search", max_length=100)
    suite = forms.ChoiceField(required=False)
    state = forms.ChoiceField(required=False, choices=[("", "Any state"), *Run.State.choices])

    def __init__(self, data: Any, *, project: Project) -> None:
        super().__init__(data)
        rows = Suite.objects.filter(project=project).values_list("pk", "name")
        self.fields["suite"].choices = [  # type: ignore[attr-defined]
            ("", "Any suite"), *((str(pk), name) for pk, name in rows),
        ]  # fmt: skip


class ResultFilters(forms.Form):
    """Families and values of tags are those that the run is added up by; ``tagged``: tags may be seen."""

    q = forms.CharField(required=False, label="Search", max_length=100)
    state = forms.ChoiceField(required=False, choices=[("", "Any state"), *Result.State.choices])
    family = forms.ChoiceField(required=False)
    tag = forms.ChoiceField(required=False)

    def __init__(self, data: Any, *, run: Run, tagged: bool = True) -> None:
        super().__init__(data)
        parts = list(
            RunSlice.objects.filter(run=run)
            .exclude(dimension="")
            .order_by("dimension", "value")
            .values_list("dimension", "value")
        )
        families = [value for dimension, value in parts if dimension == "family"]
        tags = [part for part in parts if tagged and part[0].startswith(TAG)]
        self._tags = {str(place): part for place, part in enumerate(tags[:_MOST_CHOICES])}
        self._choose("family", "Any family", [(name, name) for name in families[:_MOST_CHOICES]])
        self._choose(
            "tag",
            "Any tag",
            [(key, f"{name.removeprefix(TAG)}: {value}") for key, (name, value) in self._tags.items()],
        )

    def _choose(self, name: str, anything: str, choices: list[tuple[str, str]]) -> None:
        if len(choices) < 2:
            del self.fields[name]
            return
        self.fields[name].choices = [("", anything), *choices]  # type: ignore[attr-defined]

    def chosen(self, values: dict[str, Any]) -> dict[str, Any]:
        """The arguments of ``selectors.result_rows`` for what was chosen."""
        if "tag" not in values:
            return values
        dimension, value = self._tags[values["tag"]]
        return {**values, "tag": dimension.removeprefix(TAG), "value": value}
