"""A small synchronous client: one method per verb, the API's errors as one exception.

Paths are relative to ``/api/v1``; the OpenAPI document of the installation describes them all.
"""

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

import httpx

# Statuses that a restarting or crowded server gives; 0 is no answer at all.
PASSING = frozenset({0, 429, 502, 503, 504})


class ApiError(Exception):
    """An answer in the API's error shape. ``status`` is the HTTP status, 0 when nobody answered."""

    def __init__(self, status: int, code: str, message: str, detail: dict[str, Any] | None = None) -> None:
        super().__init__(f"{message} ({code})")
        self.status, self.code, self.message, self.detail = status, code, message, detail or {}

    @property
    def is_passing(self) -> bool:
        """Whether the same call may well succeed a little later."""
        return self.status in PASSING


class Client:
    """``Client("http://127.0.0.1:8000", "fw_…")``; use as a context manager or call ``close``."""

    def __init__(self, base_url: str, api_key: str, *, timeout_s: float = 30.0) -> None:
        self.base_url = base_url.rstrip("/")
        self._http = httpx.Client(
            base_url=self.base_url, timeout=timeout_s, headers={"Authorization": f"Bearer {api_key}"}
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, **query: Any) -> Any:
        return self._call("GET", path, params={k: v for k, v in query.items() if v is not None})

    def post(self, path: str, body: Any = None) -> Any:
        return self._call("POST", path, json=body)

    def delete(self, path: str) -> Any:
        return self._call("DELETE", path)

    def chat(
        self,
        messages: list[dict[str, Any]],
        *,
        model: str = "auto",
        headers: dict[str, str] | None = None,
        **parameters: Any,
    ) -> httpx.Response:
        """One completion through the gateway; its answer carries ``x-flywheel-…`` headers."""
        body = {"model": model, "messages": messages, **parameters}
        response = self._send("POST", "/v1/chat/completions", json=body, headers=headers or {})
        if response.is_error:
            raise _error_of(response)
        return response

    def events(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """Events after id ``after``, oldest first, until none is left."""
        while batch := self.get("/events", after=after):
            yield from batch
            after = batch[-1]["id"]

    def wait(self, path: str, done: Callable[[Any], bool], *, timeout_s: float, every_s: float = 1.0) -> Any:
        """Poll ``path`` until ``done(answer)``; raises TimeoutError after ``timeout_s`` seconds."""
        deadline = time.monotonic() + timeout_s
        while True:
            answer = self.get(path)
            if done(answer):
                return answer
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} was not done after {timeout_s:.0f} s")
            time.sleep(every_s)

    def _call(self, method: str, path: str, **arguments: Any) -> Any:
        response = self._send(method, f"/api/v1{path}", **arguments)
        if response.is_error:
            raise _error_of(response)
        try:
            return response.json() if response.content else None
        except ValueError:
            raise _unexpected(response) from None

    def _send(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        try:
            return self._http.request(method, path, **arguments)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            reason = f"{self.base_url} does not answer: {type(error).__name__}"
            raise ApiError(0, "unreachable", reason) from error


def _error_of(response: httpx.Response) -> ApiError:
    try:
        error = response.json()["error"]
        return ApiError(response.status_code, str(error["code"]), str(error["message"]), error.get("detail"))
    except (ValueError, KeyError, TypeError):
        return _unexpected(response)


def _unexpected(response: httpx.Response) -> ApiError:
    """An answer that is not the API's: something else listens there, or stands in between."""
    address = f"{response.request.url.host}:{response.request.url.port or ''}".rstrip(":")
    return ApiError(
        response.status_code, "unexpected", f"{address} gave an unexpected answer ({response.status_code})"
    )
