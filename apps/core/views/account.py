"""A person's own matters: log in and out, password, theme, which project."""

from django.contrib import messages
from django.contrib.auth import views as auth_views
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse_lazy
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from apps.core.errors import Refused
from apps.core.forms import NewProjectForm, ThemeForm
from apps.core.http import PageRequest, back_url, project_view
from apps.core.models import Project, User
from apps.core.services import project_create, user_set_theme


class LoginView(auth_views.LoginView):
    redirect_authenticated_user = True


class PasswordView(auth_views.PasswordChangeView):
    template_name = "core/password.html"
    success_url = reverse_lazy("core:appearance")

    def form_valid(self, form) -> HttpResponse:  # type: ignore[no-untyped-def]
        messages.success(self.request, "Your password was changed.")
        return super().form_valid(form)


@login_required
@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Store the theme on the user, so that the next page is drawn right at once."""
    try:
        user_set_theme(user=_person(request), theme=request.POST.get("theme", ""))
    except Refused as refused:
        messages.error(request, refused.message)
    wanted = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(wanted, allowed_hosts={request.get_host()}):
        return HttpResponseRedirect(wanted)
    return HttpResponseRedirect(back_url(request))


@project_view("read")
def appearance(request: PageRequest) -> HttpResponse:
    form = ThemeForm(request.POST or None, initial={"theme": request.user.theme})
    if request.method == "POST" and form.is_valid():
        user_set_theme(user=request.user, theme=form.cleaned_data["theme"])
        messages.success(request, "Your appearance was saved.")
        return redirect("core:appearance")
    return render(request, "core/appearance.html", {"form": form})


@login_required
@require_POST
def project_switch(request: HttpRequest) -> HttpResponse:
    project = get_object_or_404(
        Project.objects.visible_to(_person(request)), slug=request.POST.get("project", "")
    )
    request.session["project"] = project.slug
    return redirect("/")


@login_required
def project_new(request: HttpRequest) -> HttpResponse:
    """Anyone who is signed in may start a project; they become its admin."""
    form = NewProjectForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        project = project_create(name=form.cleaned_data["name"], owner=_person(request))
        request.session["project"] = project.slug
        messages.success(request, f"{project.name} was created. Next, add people and keys.")
        return redirect("core:settings")
    return render(request, "core/project_new.html", {"form": form})


def _person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user
