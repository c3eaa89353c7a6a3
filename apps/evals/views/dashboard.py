"""One suite over versions and endpoints: rates, families, latencies, costs. Filters live in the address."""

from typing import Any

from django import forms
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import render

from apps.core.http import PageRequest, project_view
from apps.core.models import Project
from apps.evals import dashboard_charts as charts
from apps.evals import selectors
from apps.evals.models import Run, Suite
from apps.evals.selectors.dashboard import Dashboard, dashboard_of
from apps.versions.models import EditionKind

BY = (("target", "Newest run of each target"), ("run", "Every run"))
DAYS = (("", "All time"), ("7", "7 days"), ("30", "30 days"), ("90", "90 days"))


class DashboardFilters(forms.Form):
    suite = forms.ChoiceField(required=False)
    edition = forms.ChoiceField(
        required=False, label="Targets", choices=[("", "Versions and endpoints"), *EditionKind.choices]
    )
    family = forms.ChoiceField(required=False)
    by = forms.ChoiceField(required=False, label="Points", choices=BY)
    days = forms.ChoiceField(required=False, label="Runs of the last", choices=DAYS)

    def __init__(self, data: Any, *, project: Project) -> None:
        super().__init__(data)
        self.suites = {str(suite.pk): suite for suite in Suite.objects.filter(project=project)}
        given = str(data.get("suite", ""))
        # What was run most has most to show.
        done = Run.objects.filter(project=project, state=Run.State.DONE).order_by()
        counted = (
            done.values_list("suite_version__suite")
            .annotate(n=Count("pk"))
            .order_by("-n", "-suite_version__suite")
        )
        most = str(row[0]) if (row := counted.first()) else next(iter(self.suites), "")
        self.chosen = self.suites.get(given) or self.suites.get(most)
        if self.chosen is not None and given != str(self.chosen.pk):
            self.data = {**dict(data.items()), "suite": str(self.chosen.pk)}
        self.fields["suite"].choices = [(pk, suite.name) for pk, suite in self.suites.items()]  # type: ignore[attr-defined]
        families = selectors.families_run(self.chosen) if self.chosen else []
        self.fields["family"].choices = [("", "All families"), *((name, name) for name in families)]  # type: ignore[attr-defined]

    def found(self) -> Dashboard | None:
        """What the filters show; an unknown value is as good as none."""
        if self.chosen is None:
            return None
        self.is_valid()
        asked = self.cleaned_data
        return dashboard_of(
            self.chosen,
            edition=asked.get("edition", ""),
            family=asked.get("family", ""),
            by=asked.get("by") or BY[0][0],
            days=int(asked.get("days") or 0),
        )


@project_view("read")
def dashboard(request: PageRequest) -> HttpResponse:
    form = DashboardFilters(request.GET, project=request.project)
    found = form.found()
    points = found.points if found else []
    rows = found.families if found else []
    by = form.cleaned_data.get("by") or BY[0][0] if found else ""
    context = {
        "form": form,
        "suite": form.chosen,
        "found": found,
        "points": points,
        "rates": charts.rates_figure(points, by),
        "rates_label": charts.rates_label(points),
        "families": charts.families_figure(points, rows),
        "families_height": 120 + 40 * len(rows),
        "latency": charts.latency_figure(points),
        "cost": charts.cost_figure(points),
        "may_change": request.actor.may("evals"),
    }
    return render(request, "evals/dashboard.html", context)
