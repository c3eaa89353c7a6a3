"""Forms of the Settings pages and the filters of their lists."""

from typing import Any

from django import forms

from apps.core.models import Project, Role, User, WorkUnit
from apps.core.permissions import SCOPES

SCOPE_WORDS = {
    "read": "Read everything but captured text in clear",
    "capture": "Send failures and feedback",
    "label": "Label cases and write corrections",
    "gateway": "Call models through the gateway",
    "evals": "Start evaluations, edit suites",
    "training": "Start and stop training",
    "versions": "Register versions and endpoints",
    "release": "Release, promote, roll back",
    "held_out": "Read held-out cases and their answers",
    "admin": "Manage people, keys and settings",
}


class ProjectForm(forms.Form):
    name = forms.CharField(max_length=100, widget=forms.TextInput(attrs={"autocomplete": "off"}))


class MemberForm(forms.Form):
    username = forms.CharField(max_length=150, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    role = forms.ChoiceField(choices=Role.choices, initial=Role.LABELLER)
    create = forms.BooleanField(
        required=False,
        label="Create the account if there is none",
        help_text="The first password is shown once, on the next page.",
    )


class KeyForm(forms.Form):
    name = forms.CharField(
        max_length=100,
        help_text="What will use it, for example “checkout service”.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    scopes = forms.MultipleChoiceField(
        choices=[(scope, f"{scope}: {SCOPE_WORDS[scope].lower()}") for scope in SCOPES],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one scope."},
    )


class ThemeForm(forms.Form):
    theme = forms.ChoiceField(choices=User.Theme.choices, widget=forms.RadioSelect)


class AuditFilters(forms.Form):
    q = forms.CharField(required=False, label="Search", max_length=100)
    action = forms.ChoiceField(required=False)
    actor = forms.ChoiceField(required=False, label="Who")

    def __init__(self, data: Any, *, actions: list[str], actors: list[str]) -> None:
        super().__init__(data)
        for name, values in (("action", actions), ("actor", actors)):
            self.fields[name].choices = [("", "all"), *((value, value) for value in values)]  # type: ignore[attr-defined]


class UnitFilters(forms.Form):
    q = forms.CharField(required=False, label="Search", max_length=100)
    state = forms.ChoiceField(required=False, choices=[("", "all"), *WorkUnit.State.choices])
    kind = forms.ChoiceField(required=False)

    def __init__(self, data: Any, *, kinds: list[str]) -> None:
        super().__init__(data)
        self.fields["kind"].choices = [("", "all"), *((kind, kind) for kind in kinds)]  # type: ignore[attr-defined]


def cleaned(form: forms.Form) -> dict[str, Any]:
    """The valid filters of ``form``; a filter that means nothing is left out rather than refused."""
    form.is_valid()
    return {name: value for name, value in form.cleaned_data.items() if value}


class NewProjectForm(ProjectForm):
    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"].strip()
        if Project.objects.filter(name__iexact=name).exists():
            raise forms.ValidationError("There is a project of this name already.")
        return name
