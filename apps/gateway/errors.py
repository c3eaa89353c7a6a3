"""Errors of the data path, in OpenAI's shape so that its clients understand them."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from domain.routing import NoServer, UnknownModel, UnknownTaskType


class GatewayError(Exception):
    """An answer other than the one asked for. ``code`` is stable; ``message`` never quotes the request."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str,
        kind: str = "",
        param: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.kind = kind or _KINDS.get(status, "invalid_request_error" if status < 500 else "server_error")
        self.param = param
        self.retry_after_s = retry_after_s

    def body(self) -> bytes:
        return json.dumps(self.payload()).encode()

    def payload(self) -> dict[str, Any]:
        error = {"message": self.message, "type": self.kind, "code": self.code, "param": self.param}
        return {"error": error}

    def headers(self) -> list[tuple[bytes, bytes]]:
        if self.retry_after_s is None:
            return []
        return [(b"retry-after", str(max(1, round(self.retry_after_s + 0.499))).encode())]


_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    502: "upstream_error",
    504: "upstream_error",
}


class UpstreamError(Exception):
    """One attempt failed. ``error`` is the code that is logged, ``status`` the upstream's own or 0.

    ``next_target`` says whether another deployment may do better; ``same_target`` whether the
    same one may be asked once more (its kept-alive connection had gone).
    """

    def __init__(
        self,
        error: str,
        *,
        status: int = 0,
        next_target: bool = True,
        same_target: bool = False,
        message: str = "",
        param: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(error)
        self.error = error
        self.status = status
        self.next_target = next_target
        self.same_target = same_target
        self.message = message
        self.param = param
        self.retry_after_s = retry_after_s

    def answer(self) -> GatewayError:
        """What the caller gets when this was the last attempt."""
        if self.error == "refused_by_model":
            return GatewayError(
                self.status,
                self.message or "The model refused the request.",
                code=self.error,
                param=self.param,
            )
        if self.error == "upstream_quota":
            return GatewayError(
                429, "The quota of the key that is stored for it is used up.", code=self.error
            )
        if self.error == "upstream_busy":
            return GatewayError(
                429, "The model is at its limit.", code=self.error, retry_after_s=self.retry_after_s or 1.0
            )
        if self.error == "upstream_timeout":
            return GatewayError(504, "The model did not answer in time.", code=self.error)
        sentence = _SENTENCES.get(self.error, "The model failed.")
        return GatewayError(502, sentence, code=self.error, retry_after_s=self.retry_after_s)


_SENTENCES = {
    "upstream_unreachable": "The model's server cannot be reached.",
    "upstream_cut": "The model's server broke off before its answer was complete.",
    "upstream_malformed": "The model's server answered with something that is not a completion.",
    "upstream_auth": "The model's server refused the key that is stored for it.",
    "endpoint_address": "The endpoint's name leads to an address that no model may be served from.",
    "model_not_loaded": "The model's server does not hold this version.",
}


@contextlib.contextmanager
def routing_errors() -> Iterator[None]:
    """Turn what the routing rules refuse into answers: 404, 400, 503."""
    try:
        yield
    except UnknownModel as error:
        raise GatewayError(404, str(error), code="model_not_found", param="model") from None
    except UnknownTaskType as error:
        raise GatewayError(400, str(error), code="task_type_unknown", param="task_type") from None
    except NoServer as error:
        raise GatewayError(503, str(error), code="no_deployment") from None
