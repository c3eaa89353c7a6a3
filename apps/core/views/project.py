"""Settings of the project: its name and its people."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from apps.core.errors import Refused
from apps.core.forms import MemberForm, ProjectForm
from apps.core.http import PageRequest, project_view
from apps.core.models import Membership, Role
from apps.core.services import (
    membership_add,
    membership_change,
    membership_invite,
    membership_remove,
    project_rename,
)


@project_view("read")
def settings(request: PageRequest) -> HttpResponse:
    form = ProjectForm(request.POST or None, initial={"name": request.project.name})
    if request.method == "POST":
        request.actor.require("admin")
        if form.is_valid():
            project_rename(project=request.project, name=form.cleaned_data["name"], by=request.actor)
            messages.success(request, "The project was renamed.")
            return redirect("core:settings")
    context = {"form": form, "may_change": request.actor.may("admin"), "role": Role(request.actor.role).label}
    return render(request, "core/settings.html", context)


@never_cache
@project_view("read")
def people(request: PageRequest) -> HttpResponse:
    """List members; POST adds one. A new account's password is in this answer and nowhere else."""
    form = MemberForm(request.POST or None)
    made: Any = None
    if request.method == "POST":
        request.actor.require("admin")
        if form.is_valid():
            data = form.cleaned_data
            try:
                made = _add(request, data)
            except Refused as refused:
                form.add_error("username", refused.message)
            else:
                if made is None:
                    messages.success(request, f"{data['username']} was added.")
                    return redirect("core:people")
                form = MemberForm()
    members = Membership.objects.filter(project=request.project).select_related("user")
    context = {
        "form": form,
        "members": members,
        "made": made,
        "roles": Role.choices,
        "may_change": request.actor.may("admin"),
    }
    return render(request, "core/people.html", context)


def _add(request: PageRequest, data: dict[str, Any]) -> Any:
    known = {
        "project": request.project,
        "username": data["username"],
        "role": data["role"],
        "by": request.actor,
    }
    if data["create"]:
        return membership_invite(**known)
    membership_add(**known)
    return None


@require_POST
@project_view("admin")
def member_change(request: PageRequest, pk: int) -> HttpResponse:
    membership = get_object_or_404(Membership, project=request.project, pk=pk)
    membership_change(membership=membership, role=request.POST.get("role", ""), by=request.actor)
    messages.success(request, f"{membership.user} is now {membership.get_role_display().lower()}.")
    return redirect("core:people")


@require_POST
@project_view("admin")
def member_remove(request: PageRequest, pk: int) -> HttpResponse:
    membership = get_object_or_404(Membership, project=request.project, pk=pk)
    membership_remove(membership=membership, by=request.actor)
    messages.success(request, f"{membership.user} was removed.")
    return redirect("core:people")
