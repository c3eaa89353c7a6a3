"""Mock services that an agent works with: orders, tickets, a calendar; pure state machines.

A task's ``environment_params["state"]`` is ``{"now": ISO time, "orders": {…}, "tickets": {…},
"calendar": {…}}``; the services that have a part in it are offered.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from domain.services import calendar, orders, tickets
from domain.services.base import Refused, Reply, Service, State, Tool, call_tool

SERVICES: Mapping[str, Service] = {
    service.name: service for service in (orders.SERVICE, tickets.SERVICE, calendar.SERVICE)
}


def offered(state: State, only: Sequence[str] = ()) -> dict[str, Tool]:
    """Tools by name of the services in ``state``; ``only`` narrows them."""
    tools = {tool.name: tool for name, service in SERVICES.items() if name in state for tool in service.tools}
    return {name: tool for name, tool in tools.items() if not only or name in only}


def definitions(state: State, only: Sequence[str] = ()) -> tuple[dict[str, Any], ...]:
    """What is offered, as OpenAI tool definitions: the ``tools`` of a task."""
    return tuple(tool.definition() for tool in offered(state, only).values())


def call(state: State, name: str, arguments: Mapping[str, Any]) -> Reply:
    """One call of an offered tool. Raises ``KeyError`` where it is not offered."""
    return call_tool(offered(state)[name], state, arguments)


__all__ = ["SERVICES", "Refused", "Reply", "Service", "State", "Tool", "call", "definitions", "offered"]
