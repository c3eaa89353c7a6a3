"""Forms of the pages that compare runs: all they choose is in the URL."""

from collections.abc import Iterable
from typing import Any

from django import forms

from apps.evals.dimensions import TAG
from apps.evals.models import Run

MAX_TOGETHER = 12


def run_label(run: Run) -> str:
    return f"run {run.pk}: {run.target_name}, v{run.suite_version.number}"


def axis_label(axis: str) -> str:
    return axis.removeprefix(TAG).replace("_", " ").capitalize()


class CompareForm(forms.Form):
    """Which run against, cut by what, and which flips are listed. ``slices`` are the labels of the axis."""

    against = forms.ChoiceField(label="Against")
    by = forms.ChoiceField(label="Cut by", required=False)
    moved = forms.ChoiceField(
        label="Cases that",
        required=False,
        choices=[("", "changed"), ("worse", "got worse"), ("better", "got better")],
    )
    slice = forms.ChoiceField(label="On slice", required=False)
    q = forms.CharField(label="Search", required=False, max_length=100)

    def __init__(self, data: Any, *, runs: list[Run], axes: list[str], slices: list[str]) -> None:
        super().__init__(data)
        self._choose("against", [(str(run.pk), run_label(run)) for run in runs])
        self._choose("by", [(axis, axis_label(axis)) for axis in axes])
        self._choose("slice", [("", "any"), *((label, label[:60]) for label in slices)])
        if not axes:
            del self.fields["by"], self.fields["slice"]

    def _choose(self, name: str, choices: list[tuple[str, str]]) -> None:
        self.fields[name].choices = choices  # type: ignore[attr-defined]


class TogetherForm(forms.Form):
    """Several runs of one suite against one base."""

    base = forms.ChoiceField(label="Base")
    run = forms.MultipleChoiceField(
        label="Runs",
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one run to compare with the base."},
    )

    def __init__(self, data: Any, *, runs: Iterable[Run]) -> None:
        super().__init__(data)
        choices = [(str(run.pk), run_label(run)) for run in runs]
        for name in ("base", "run"):
            self.fields[name].choices = choices  # type: ignore[attr-defined]

    def clean_run(self) -> list[str]:
        chosen: list[str] = self.cleaned_data["run"]
        if len(chosen) > MAX_TOGETHER:
            raise forms.ValidationError(f"At most {MAX_TOGETHER} runs are compared at once.")
        return chosen

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("run") == [data.get("base")]:
            self.add_error("run", "Choose a run other than the base.")
        return data
