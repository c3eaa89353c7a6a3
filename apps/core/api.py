"""The REST API's root: authentication, the one error shape, and every app's router.

OpenAPI is at ``/api/v1/openapi.json`` and its page at ``/api/v1/docs``. A call carries
``Authorization: Bearer fw_…``; signed-in people may use it from the browser, with CSRF.
"""

import logging
from traceback import extract_tb
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Field, NinjaAPI, Router, Schema
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.security import HttpBearer, SessionAuth

from apps.core.crypto import key_digest
from apps.core.errors import UNSTORABLE, Refused, error_body, is_unstorable
from apps.core.models import ApiKey, Project
from apps.core.permissions import Actor, actor_for_key, actor_for_user

logger = logging.getLogger(__name__)


class ApiRequest(HttpRequest):
    """What an endpoint gets: ``auth`` is the acting ``Actor``."""

    auth: Actor


class KeyAuth(HttpBearer):
    def authenticate(self, request: HttpRequest, token: str) -> Actor | None:
        key = ApiKey.objects.active().select_related("project").filter(digest=key_digest(token)).first()
        if key is None:
            return None
        now = timezone.now()
        if key.last_used_at is None or (now - key.last_used_at).total_seconds() > 60:
            ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)
        return actor_for_key(key=key)


class PersonAuth(SessionAuth):
    def authenticate(self, request: HttpRequest, key: str | None) -> Actor | None:
        project: Project | None = getattr(request, "project", None)
        if not request.user.is_authenticated or not project:
            return None
        return actor_for_user(user=request.user, project=project)  # type: ignore[arg-type]


api = NinjaAPI(
    title="Flywheel",
    version="1",
    description='Everything the pages do. Errors have one shape: {"error": {"code", "message", "detail"}}.',
    auth=[KeyAuth(), PersonAuth()],
    docs_url="/docs",
    urls_namespace="api",
)


class ErrorDetail(Schema):
    code: str
    message: str
    detail: dict[str, Any] = Field(default_factory=dict)


class ErrorOut(Schema):
    error: ErrorDetail


def _answer(request: HttpRequest, status: int, code: str, message: str, **detail: Any) -> HttpResponse:
    return api.create_response(request, error_body(code, message, **detail), status=status)


@api.exception_handler(Refused)
def _refused(request: HttpRequest, exc: Refused) -> HttpResponse:
    return _answer(request, exc.status, exc.code, exc.message, **exc.detail)


@api.exception_handler(AuthenticationError)
def _unauthenticated(request: HttpRequest, exc: AuthenticationError) -> HttpResponse:
    sent = request.headers.get("Authorization", "")
    message = (
        "This API key is unknown or revoked." if sent else "Send an API key: “Authorization: Bearer fw_…”."
    )
    return _answer(request, 401, "unauthenticated", message)


@api.exception_handler(PermissionDenied)
def _forbidden(request: HttpRequest, exc: PermissionDenied) -> HttpResponse:
    return _answer(request, 403, "forbidden", str(exc) or "You may not do this.")


@api.exception_handler(Http404)
def _missing(request: HttpRequest, exc: Http404) -> HttpResponse:
    return _answer(request, 404, "not_found", "There is no such object in this project.")


@api.exception_handler(HttpError)
def _http_error(request: HttpRequest, exc: HttpError) -> HttpResponse:
    if isinstance(exc.__cause__, RequestDataTooBig):
        return _too_large(request, exc.__cause__)
    return _answer(request, exc.status_code, "bad_request", str(exc))


@api.exception_handler(RequestDataTooBig)
def _too_large(request: HttpRequest, exc: RequestDataTooBig) -> HttpResponse:
    mib = settings.DATA_UPLOAD_MAX_MEMORY_SIZE / 1024**2
    return _answer(request, 413, "too_large", f"The body is too large; at most {mib:.3g} MiB are taken.")


@api.exception_handler(ValidationError)
def _invalid(request: HttpRequest, exc: ValidationError) -> HttpResponse:
    # The offending input is left out: it may be captured text.
    fields = [{"at": ".".join(str(part) for part in e["loc"]), "message": e["msg"]} for e in exc.errors]
    first = fields[0] if fields else {"at": "body", "message": "is invalid"}
    return _answer(request, 422, "invalid", f"{first['at']}: {first['message']}", fields=fields)


@api.exception_handler(Exception)
def _broken(request: HttpRequest, exc: Exception) -> HttpResponse:
    # The message of an exception may quote what was sent; where it came from does not.
    frames = [
        f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in extract_tb(exc.__traceback__)
    ]
    where = (request.path[:200], type(exc).__name__, " ".join(frames[-6:]))
    if is_unstorable(exc):
        logger.warning("unstorable input path=%s type=%s at=%s", *where)
        return _answer(request, 422, "invalid", UNSTORABLE)
    logger.error("api error path=%s type=%s at=%s", *where)
    return _answer(request, 500, "server_error", "Something broke on our side. It was logged.")


def get_or_404(queryset: Any, **lookup: Any) -> Any:
    """The one object, or the API's 404."""
    found = queryset.filter(**lookup).first()
    if found is None:
        raise Http404
    return found


def mount_routers() -> None:
    """Add every app's router; called once, when the URLs are loaded."""
    from importlib import import_module

    for name in ("core", "versions", "feedback", "evals", "training", "gateway", "loop"):
        router: Router = import_module(
            f"apps.{name}.api_routes" if name == "core" else f"apps.{name}.api"
        ).router
        api.add_router("/", router)


__all__ = ["ApiRequest", "ErrorOut", "api", "get_or_404", "mount_routers"]
