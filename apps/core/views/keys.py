"""API keys of the project: made, shown once, revoked."""

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from apps.core.errors import Refused
from apps.core.forms import KeyForm
from apps.core.http import PageRequest, project_view
from apps.core.models import ApiKey
from apps.core.services import api_key_create, api_key_revoke


@never_cache
@project_view("admin")
def keys(request: PageRequest) -> HttpResponse:
    """List keys; POST makes one. Its secret is in this answer and nowhere else."""
    form = KeyForm(request.POST or None, initial={"scopes": ["gateway", "capture"]})
    made = None
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            made = api_key_create(
                project=request.project, name=data["name"], scopes=data["scopes"], by=request.actor
            )
            form = KeyForm(initial={"scopes": ["gateway", "capture"]})
        except Refused as refused:
            form.add_error(None, refused.message)
    rows = ApiKey.objects.filter(project=request.project).select_related("created_by")
    context = {"form": form, "keys": rows, "made": made, "base_url": settings.BASE_URL}
    return render(request, "core/keys.html", context)


@require_POST
@project_view("admin")
def key_revoke(request: PageRequest, pk: int) -> HttpResponse:
    key = get_object_or_404(ApiKey, project=request.project, pk=pk)
    api_key_revoke(key=key, by=request.actor)
    messages.success(request, f"{key.name} was revoked. Calls that carry it are refused from now on.")
    return redirect("core:keys")
