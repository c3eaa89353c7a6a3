"""Request middleware: the content security policy, input that nothing can hold, which project a page
is about."""

import logging
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject

from apps.core.errors import UNSTORABLE, bad_request_page, is_unstorable
from apps.core.models import Membership, Project

logger = logging.getLogger(__name__)

GetResponse = Callable[[HttpRequest], HttpResponse]

# Plotly sets inline styles on its own elements; scripts are only our own files.
_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self' ws: wss:; object-src 'none'; base-uri 'self'; frame-ancestors 'none'; "
    "form-action 'self'"
)


def content_security_policy(get_response: GetResponse) -> GetResponse:
    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", _POLICY)
        response.headers.setdefault("Referrer-Policy", "same-origin")
        return response

    return middleware


class RefuseUnstorable:
    """A page asked with a value that no column can hold answers 400, not 500. The API has its own word."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not is_unstorable(exception):
            return None
        logger.warning("unstorable input path=%s type=%s", request.path[:200], type(exception).__name__)
        return bad_request_page(request, UNSTORABLE)


def current_project(get_response: GetResponse) -> GetResponse:
    """Set ``request.project``: the one named by ``?project=``, else the session's, else the first."""

    def middleware(request: HttpRequest) -> HttpResponse:
        request.project = SimpleLazyObject(lambda: _find(request))  # type: ignore[attr-defined]
        return get_response(request)

    return middleware


def _find(request: HttpRequest) -> Project | None:
    if not request.user.is_authenticated:
        return None
    memberships = list(
        Membership.objects.filter(user=request.user).select_related("project").order_by("project__name")
    )
    wanted = request.GET.get("project", "")
    chosen = next((m for m in memberships if wanted and m.project.slug == wanted), None)
    if chosen is not None:
        if request.session.get("project") != chosen.project.slug:
            request.session["project"] = chosen.project.slug
    else:
        held = request.session.get("project")
        chosen = next(
            (m for m in memberships if m.project.slug == held), memberships[0] if memberships else None
        )
    request.memberships = memberships  # type: ignore[attr-defined]
    return chosen.project if chosen else None
