"""Forms of the Evals pages. Rules live in the services; here is only how a form is read."""

from typing import Any

from django import forms

from apps.core.models import Project
from apps.versions.models import Deployment, EditionKind, ModelVersion
from apps.versions.selectors import version_in_service
from domain.long_context import TASKS

_TEXT = forms.TextInput(attrs={"autocomplete": "off"})


class TargetForm(forms.Form):
    """Chooses what is asked: ``version:<id>:<edition>`` or ``endpoint:<id>``."""

    target = forms.ChoiceField(label="Target")

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.project = project
        self.fields["target"].choices = target_choices(project)  # type: ignore[attr-defined]
        # The newest version may be one that was rolled back: first comes what serves.
        if (serving := version_in_service(project)) is not None:
            self.fields["target"].initial = f"version:{serving.pk}:{EditionKind.STANDARD}"

    def chosen(self) -> dict[str, Any]:
        """The arguments of a service that takes a target."""
        kind, _, rest = self.cleaned_data["target"].partition(":")
        if kind == "endpoint":
            return {"deployment": Deployment.objects.get(project=self.project, pk=rest)}
        pk, _, edition = rest.partition(":")
        version = ModelVersion.objects.select_related("base").get(project=self.project, pk=pk)
        return {"version": version, "edition_kind": edition}


def target_choices(project: Project) -> list[Any]:
    """Versions by edition, newest first, then external endpoints, as groups of a select."""
    versions = ModelVersion.objects.filter(project=project)
    ours = [
        (f"version:{version.pk}:{kind}", f"{version.number} {label.lower()}")
        for version in versions
        for kind, label in EditionKind.choices
    ]
    rows = Deployment.objects.filter(project=project).externals()
    theirs = [(f"endpoint:{row.pk}", f"{row.name} ({row.model})") for row in rows]
    return [("Versions", ours), ("Endpoints", theirs)] if theirs else [("Versions", ours)]


class ProbeForm(TargetForm):
    """A target may also be ``service:<edition>``: that edition of whatever version is in service."""

    hours = forms.FloatField(label="Every, hours", min_value=0.1, max_value=168, initial=6, step_size=0.1)
    prompts = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 5, "class": "mono", "spellcheck": "false"}),
        help_text="One prompt a line, 5 to 30. Leave empty to use the 20 built-in ones.",
    )
    field_order = ("target", "hours", "prompts")

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, project=project, **kwargs)
        following = [
            (f"service:{kind}", f"in service, {label.lower()}") for kind, label in EditionKind.choices
        ]
        choices = [("Follows promotions", following), *target_choices(project)]
        self.fields["target"].choices = choices  # type: ignore[attr-defined]

    def chosen(self) -> dict[str, Any]:
        kind, _, rest = self.cleaned_data["target"].partition(":")
        return {"follows": True, "edition_kind": rest} if kind == "service" else super().chosen()


class ProbeIntervalForm(forms.Form):
    hours = forms.FloatField(label="Every, hours", min_value=0.1, max_value=168, step_size=0.01)


class MapForm(TargetForm):
    name = forms.CharField(max_length=100, initial="Long context", widget=_TEXT)
    lengths = forms.CharField(
        required=False,
        widget=_TEXT,
        help_text="Tokens, for example 128 256 512. Leave empty for four that fit the model.",
    )
    depths = forms.CharField(
        initial="0 25 50 75 100", widget=_TEXT, help_text="Per cent of the text before the fact."
    )
    per_cell = forms.IntegerField(label="Cases per cell", min_value=1, max_value=50, initial=4)
    seed = forms.IntegerField(initial=0, min_value=0, max_value=2**31 - 1)
    kinds = forms.MultipleChoiceField(
        label="Asked for",
        choices=[(name, task.title) for name, task in TASKS.items()],
        initial=["retrieval"],
        widget=forms.CheckboxSelectMultiple,
    )
    field_order = ("name", "target", "kinds", "lengths", "depths", "per_cell", "seed")

    def clean_lengths(self) -> list[int]:
        return _numbers(self.cleaned_data["lengths"])

    def clean_depths(self) -> list[int]:
        return _numbers(self.cleaned_data["depths"])


def _numbers(text: str) -> list[int]:
    words = text.replace(",", " ").replace("%", " ").split()
    if not all(word.isdecimal() and len(word) < 10 for word in words):
        raise forms.ValidationError("Write whole numbers with spaces between them.")
    return [int(word) for word in words]
