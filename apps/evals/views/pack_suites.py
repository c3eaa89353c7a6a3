"""A suite drawn from families of the installed packs."""

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render

from apps.core.errors import Refused
from apps.core.http import PageRequest, project_view
from apps.evals import services
from apps.evals.services.pack_suites import MAX_PER_FAMILY
from packs.registry import packs


class PackSuiteForm(forms.Form):
    name = forms.CharField(
        max_length=100,
        label="Suite",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text="A new name makes a suite; a known one gets its next version.",
    )
    families = forms.MultipleChoiceField(
        widget=forms.SelectMultiple(attrs={"size": 14}),
        help_text="Hold Ctrl (on a Mac ⌘) to choose several.",
    )
    per_family = forms.IntegerField(
        label="Tasks of each family", min_value=1, max_value=MAX_PER_FAMILY, initial=20
    )
    seed = forms.IntegerField(initial=0, min_value=0, max_value=2**31 - 1)

    def __init__(self, *args: object, **fields: object) -> None:
        super().__init__(*args, **fields)  # type: ignore[arg-type]
        self.fields["families"].choices = [  # type: ignore[attr-defined]
            (pack.title, [(family.name, family.title) for family in pack.families if not family.canary])
            for pack in packs().values()
        ]


@project_view("evals")
def pack_suite_create(request: PageRequest) -> HttpResponse:
    """``family`` in the address chooses beforehand, once or several times."""
    chosen = request.GET.getlist("family")
    form = PackSuiteForm(request.POST or None, initial={"families": chosen, "name": " ".join(chosen[:1])})
    if request.method == "POST" and form.is_valid():
        try:
            suite = services.pack_suite_create(project=request.project, by=request.actor, **form.cleaned_data)
        except Refused as refused:
            form.add_error(None, refused.message)
        else:
            messages.success(request, "The cases are being drawn; the version shows here when it is made.")
            return redirect(suite)
    status = 400 if form.errors else 200
    return render(request, "evals/pack_suite.html", {"form": form}, status=status)
