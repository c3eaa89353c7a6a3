"""Settings page of engines and external endpoints."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from apps.core.errors import Refused
from apps.core.http import PageRequest, project_view
from apps.versions import services
from apps.versions.forms import EndpointForm
from apps.versions.models import Deployment
from apps.versions.terms import Terms, limits_lines, prices_lines


@project_view("read")
def endpoint_list(request: PageRequest) -> HttpResponse:
    rows = list(Deployment.objects.filter(project=request.project).in_use())
    context = {
        "engines": [row for row in rows if row.kind == Deployment.Kind.ENGINE],
        "endpoints": [
            (row, limits_lines(terms), prices_lines(terms))
            for row in rows
            if row.kind == Deployment.Kind.EXTERNAL
            for terms in [Terms.of(row)]
        ],
        "may_change": request.actor.may("versions"),
    }
    return render(request, "versions/endpoints.html", context)


@project_view("versions")
def endpoint_create(request: PageRequest) -> HttpResponse:
    form = EndpointForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            row = services.deployment_register_external(
                project=request.project, by=request.actor, **form.values()
            )
        except Refused as refused:
            form.add_error(None, refused.message)
        else:
            messages.success(request, f"Endpoint {row.name} is registered.")
            return redirect("versions:endpoints")
    return render(request, "versions/endpoint_form.html", {"form": form}, status=400 if form.errors else 200)


@project_view("versions")
def endpoint_edit(request: PageRequest, pk: int) -> HttpResponse:
    row = _endpoint(request, pk)
    form = EndpointForm(request.POST or None, endpoint=row)
    if request.method == "POST" and form.is_valid():
        try:
            services.deployment_change_external(deployment=row, by=request.actor, **form.values())
        except Refused as refused:
            form.add_error(None, refused.message)
        else:
            messages.success(request, f"Endpoint {form.cleaned_data['name']} is saved.")
            return redirect("versions:endpoints")
    context = {"form": form, "endpoint": row}
    return render(request, "versions/endpoint_form.html", context, status=400 if form.errors else 200)


@require_POST
@project_view("versions")
def endpoint_test(request: PageRequest, pk: int) -> HttpResponse:
    row = _endpoint(request, pk)
    result = services.deployment_test(deployment=row, by=request.actor)
    (messages.success if result.ok else messages.error)(request, f"{row.name}: {result.sentence}")
    return redirect("versions:endpoints")


@require_POST
@project_view("versions")
def endpoint_retire(request: PageRequest, pk: int) -> HttpResponse:
    row = _endpoint(request, pk)
    services.deployment_retire(deployment=row, by=request.actor)
    messages.success(request, f"Endpoint {row.name} is retired and its key forgotten.")
    return redirect("versions:endpoints")


def _endpoint(request: PageRequest, pk: int) -> Deployment:
    return get_object_or_404(Deployment.objects.filter(project=request.project).externals(), pk=pk)
