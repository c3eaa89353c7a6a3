"""Helpers of views: authorisation for a page, and pages of long lists."""

import re
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from apps.core.errors import Refused, refused_page
from apps.core.models import Project, User
from apps.core.permissions import Actor, actor_for_user


class PageRequest(HttpRequest):
    """What ``project_view`` hands to a view."""

    user: User  # type: ignore[assignment]
    project: Project
    actor: Actor
    htmx: Any


def project_view(scope: str) -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    """Require a signed-in member whose role carries ``scope``; sets ``request.actor``.

    A ``Refused`` that a view lets through on POST becomes a message on the page it came from.
    """

    def decorate(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @login_required
        @wraps(view)
        def wrapped(request: Any, *args: Any, **kwargs: Any) -> HttpResponse:
            if not request.project:
                raise PermissionDenied("You are not a member of any project yet. Ask an admin to add you.")
            request.actor = actor_for_user(user=request.user, project=request.project)
            request.actor.require(scope)
            try:
                return view(request, *args, **kwargs)
            except Refused as refused:
                if request.method != "POST":
                    return refused_page(request, refused)
                if request.htmx:  # page.js says it; what was typed stays
                    return HttpResponse(refused.message, status=refused.status, content_type="text/plain")
                messages.error(request, refused.message)
                return HttpResponseRedirect(back_url(request))

        return wrapped

    return decorate


def back_url(request: HttpRequest, default: str = "/") -> str:
    """The page that a form was sent from, if it is one of ours."""
    from urllib.parse import urlsplit

    referrer = urlsplit(request.headers.get("Referer", ""))
    # Two slashes would begin another host's name: “//host/” is an address, not a path.
    if referrer.netloc != request.get_host() or not re.match(r"/(?![/\\])", referrer.path):
        return default
    return referrer.path + (f"?{referrer.query}" if referrer.query else "")


def page_of(request: HttpRequest, rows: Any, per_page: int = 50) -> Page[Any]:
    """The page named by ``?page=``; an impossible number gives the nearest page."""
    return Paginator(rows, per_page).get_page(request.GET.get("page"))
