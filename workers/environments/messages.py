"""What is said between a model and its environment, in the form that each side reads."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from domain.contracts import ChatMessage
from workers.environments.protocol import Answer


def answer_text(answer: Answer) -> str:
    """What the verifier reads: the text, or the calls where the model called a tool."""
    if answer.tool_calls:
        return json.dumps({"tool_calls": list(answer.tool_calls)}, ensure_ascii=False)
    return answer.text


def from_user(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """For templates and endpoints that know no tool role without a call."""
    return tuple(
        ChatMessage(role="user", content=f"Result of the tool:\n{message.content}")
        if message.role == "tool"
        else message
        for message in messages
    )


def named_calls(calls: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """``calls`` with an id each, which the reply to it repeats, and the type that histories must hold."""
    return tuple(
        {**call, "id": str(call.get("id") or f"call_{index}"), "type": "function"}
        for index, call in enumerate(calls)
    )


def shown(messages: Sequence[ChatMessage]) -> str:
    """Messages as a person reads them in the trajectory viewer."""
    parts = []
    for message in messages:
        content = message.content
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        parts.append(f"{message.role}: {text}")
    return "\n\n".join(parts)
