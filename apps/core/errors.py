"""Errors that people and programs see: one exception for refusals, one JSON shape, four pages."""

from typing import Any

from django.db import DataError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render


class Refused(Exception):
    """A request that cannot be carried out, with a sentence that says why.

    ``code`` is stable for programs; ``status`` is the HTTP status; ``detail`` adds data (the
    line of a file, the field), never captured text.
    """

    def __init__(self, message: str, *, code: str = "invalid", status: int = 400, **detail: Any) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.detail = detail


class Conflict(Refused):
    """An illegal change of state, or a second of something that may exist once."""

    def __init__(self, message: str, *, code: str = "conflict", **detail: Any) -> None:
        super().__init__(message, code=code, status=409, **detail)


def place_of(error: BaseException) -> str:
    """Module and line, as in ``apps.evals.case_scores:41``: enough to find it, and no text of anyone."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}" if trace else "?"


UNSTORABLE = "It holds something that cannot be stored: a number out of range, or a broken character."


def is_unstorable(exc: Exception) -> bool:
    """Whether ``exc`` is a driver's word for a value that no column can hold.

    That is the caller's doing: an integer beyond 64 bits, half of a surrogate pair, on PostgreSQL
    the NUL character.
    """
    if isinstance(exc, UnicodeEncodeError):
        return exc.reason == "surrogates not allowed"
    return isinstance(exc, DataError) or (isinstance(exc, OverflowError) and "int too large" in str(exc))


def error_body(code: str, message: str, **detail: Any) -> dict[str, Any]:
    """The API's one error shape."""
    return {"error": {"code": code, "message": message, "detail": detail}}


def _answer(request: HttpRequest, status: int, code: str, title: str, message: str) -> HttpResponse:
    if request.path.startswith("/api/"):
        return JsonResponse(error_body(code, message), status=status)
    return render(
        request, "errors/error.html", {"status": status, "title": title, "message": message}, status=status
    )


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return bad_request_page(request, "The request could not be understood.")


def bad_request_page(request: HttpRequest, message: str) -> HttpResponse:
    return _answer(request, 400, "bad_request", "Bad request", message)


def permission_denied(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    message = str(exception) if exception and str(exception) else "You may not do this."
    return _answer(request, 403, "forbidden", "Not allowed", message)


def refused_page(request: HttpRequest, refused: Refused) -> HttpResponse:
    """The page of a refusal that a view let through."""
    title = {403: "Not allowed", 404: "Not found", 409: "Not possible now"}.get(refused.status, "Bad request")
    return _answer(request, refused.status, refused.code, title, refused.message)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(
        request, 404, "not_found", "Not found", "There is nothing at this address in your projects."
    )


def server_error(request: HttpRequest) -> HttpResponse:
    message = "Something broke on our side. It was logged; nothing you saved is lost."
    return _answer(request, 500, "server_error", "Something broke", message)
