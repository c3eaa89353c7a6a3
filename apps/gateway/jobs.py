"""What one request asks for: its body checked, and what of it goes upstream or is kept."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.gateway.endpoints import EndpointTerms
from apps.gateway.errors import GatewayError
from apps.gateway.records import Record
from artifacts.compact_json import compact_json
from domain.routing import Plan, Target

Json = dict[str, Any]

_BYTES_PER_TOKEN = 4


@dataclass
class Job:
    """What a request asks for, checked. ``endpoint_keys`` are the providers' keys by deployment,
    ``terms`` those of the external endpoint that it goes to, if it goes to one. A request of a ``run``
    waits for the endpoint's limits as long as the terms say, and an attempt has a limit.

    While it runs: ``waited_s`` for those limits, and the status that the last attempt was answered
    with, 0 for none.
    """

    path: str
    body: Json
    plan: Plan
    record: Record
    endpoint_keys: Mapping[int, str]
    terms: EndpointTerms | None = None
    gateways: int = 1
    run: bool = False
    waited_s: float = 0.0
    upstream_status: int = 0

    @property
    def stream(self) -> bool:
        return self.body.get("stream") is True

    @property
    def wants_usage(self) -> bool:
        return (self.body.get("stream_options") or {}).get("include_usage") is True

    @property
    def choices(self) -> int:
        prompts = self.body.get("prompt")
        several = isinstance(prompts, list) and bool(prompts) and isinstance(prompts[0], str | list)
        n = self.body.get("n")
        return (len(prompts) if several and prompts else 1) * (n if isinstance(n, int) and n > 0 else 1)

    def tokens(self, body: bytes) -> float:
        """About how many tokens the request will take: an estimate for limits, not for bills."""
        most = self.body.get("max_completion_tokens") or self.body.get("max_tokens")
        return len(body) / _BYTES_PER_TOKEN + (most if isinstance(most, int) and most > 0 else 0)

    def upstream_body(self, target: Target) -> bytes:
        body = {**self.body, "model": target.model}
        if self.stream:
            body["stream_options"] = {**(body.get("stream_options") or {}), "include_usage": True}
        if not target.external:
            # Ours serve rollouts too, at larger numbers; a caller may not choose its own place.
            body["priority"] = 0
        return compact_json(body)

    def asked(self) -> Json:
        """The request's text in one shape, for chat and for plain completions."""
        messages = self.body.get("messages")
        if messages is None:
            prompt = self.body.get("prompt")
            text = prompt if isinstance(prompt, str) else json.dumps(prompt)
            messages = [{"role": "user", "content": text}]
        return {"messages": messages, "tools": self.body.get("tools") or []}


def check_body(body: Any, path: str) -> Json:
    """The request's body, if it can be one. Raises GatewayError 400 naming the field."""
    if not isinstance(body, dict):
        raise _invalid("The body must be a JSON object.", None)
    field, kinds = ("messages", list) if path.endswith("/chat/completions") else ("prompt", str | list)
    if not isinstance(body.get(field), kinds) or body.get(field) == []:
        raise _invalid(f"“{field}” is missing or of the wrong kind.", field)
    if not isinstance(body.get("model", "auto"), str):
        raise _invalid("“model” must be text.", "model")
    if not isinstance(body.get("stream", False), bool | None):
        raise _invalid("“stream” must be true or false.", "stream")
    if not isinstance(body.get("stream_options"), dict | None):
        raise _invalid("“stream_options” must be an object.", "stream_options")
    if not isinstance(body.get("user"), str | None):
        raise _invalid("“user” must be text.", "user")
    return body


def _invalid(message: str, param: str | None) -> GatewayError:
    return GatewayError(400, message, code="invalid_body", param=param)
