"""Tool calls: choose among the offered tools and answer with the call as one JSON object."""

import json
import random
from typing import Any

from packs.starter.draft import CURRENCIES, Draft, email, invoice_number, person

TOOLS: dict[str, dict[str, str]] = {
    "get_invoice": {"number": "string"},
    "pay_invoice": {"number": "string", "amount": "number"},
    "convert": {"amount": "number", "currency": "string"},
    "remind": {"number": "string", "days": "integer"},
    "refund": {"number": "string", "amount": "number"},
    "list_bills": {"currency": "string"},
}


def draft(rng: random.Random) -> Draft:
    name = rng.choice(tuple(TOOLS))
    others = [other for other in TOOLS if other != name]
    offered = [*rng.sample(others, rng.choice((1, 2))), name]
    rng.shuffle(offered)
    number, currency = invoice_number(rng), rng.choice(CURRENCIES)
    amount, days = rng.randint(5, 990), rng.choice((3, 5, 7, 10, 14, 21, 30))
    texts, arguments = _request(name, number, currency, amount, days, rng)
    form = rng.randrange(len(texts))
    call = {"name": name, "arguments": arguments}
    wrong_tool = {"name": next(other for other in offered if other != name), "arguments": arguments}
    quoted = {key: str(value) for key, value in arguments.items()}
    if quoted == arguments:
        quoted = dict.fromkeys(arguments, "")
    return Draft(
        prompt=texts[form],
        verifier="tool_call",
        params={},
        reference=call,
        gold=answer(call),
        bad={
            "wrong_tool": answer(wrong_tool),
            "mistyped": answer({"name": name, "arguments": quoted}),
            "empty": answer({"name": name, "arguments": {}}),
        },
        layout=f"{name}-{form}",
        origin="desk",
        tools=tuple(_definition(tool) for tool in offered),
    )


def answer(call: dict[str, Any]) -> str:
    return json.dumps(call, separators=(",", ":"))


def _request(
    name: str, number: str, currency: str, amount: int, days: int, rng: random.Random
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Three ways to say it, and the arguments that they mean."""
    who, address = person(rng), email(rng)
    if name == "get_invoice":
        texts = (f"Show me invoice {number}", f"{who} asks for {number}", f"Open {number}, please")
        return texts, {"number": number}
    if name == "pay_invoice":
        texts = (
            f"Pay {amount} on {number}",
            f"Settle {number} with {amount}",
            f"{who}: transfer {amount} for {number}",
        )
        return texts, {"number": number, "amount": amount}
    if name == "convert":
        texts = (
            f"What is {amount} in {currency}?",
            f"Change {amount} to {currency}",
            f"{amount} as {currency}",
        )
        return texts, {"amount": amount, "currency": currency}
    if name == "remind":
        texts = (
            f"Remind me of {number} in {days} days",
            f"Reminder {number}, {days} days, for {address}",
            f"In {days} days ask {who} about {number}",
        )
        return texts, {"number": number, "days": days}
    if name == "refund":
        texts = (
            f"Refund {amount} of {number}",
            f"Give back {amount} on {number}",
            f"{who} gets {amount} back, {number}",
        )
        return texts, {"number": number, "amount": amount}
    texts = (
        f"List bills in {currency}",
        f"Which bills are in {currency}?",
        f"All {currency} bills for {who}",
    )
    return texts, {"currency": currency}


def _definition(name: str) -> dict[str, Any]:
    properties = {key: {"type": kind} for key, kind in TOOLS[name].items()}
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}
