"""Orders, customers and refunds of a shop.

State under ``orders``: ``policy`` (sentences or numbers by topic), ``customers`` {id: {name, email, …}},
``orders`` {id: {customer, status, placed_on, delivered_on, items [{sku, name, quantity, price}], paid,
refunded, address}}, ``refunds`` [{order, amount, reason, at}]. Amounts are in the shop's currency with two
decimals. Status: placed, shipped, delivered, cancelled. Whether a refund is due is for the caller to
decide; refused is what cannot be, such as more than was paid.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from domain.services.base import TEXT, Json, Refused, Service, Tool, entry


def _find_orders(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    """By customer id, e-mail or name."""
    part, wanted = state["orders"], str(arguments["customer"]).casefold()
    customers = {
        key
        for key, customer in part.get("customers", {}).items()
        if wanted in (key.casefold(), *(str(customer.get(name, "")).casefold() for name in ("email", "name")))
    }
    if not customers:
        raise Refused(f"There is no customer {arguments['customer']!r}.")
    return [
        {"order": key, "status": order["status"], "placed_on": order.get("placed_on"), "paid": order["paid"]}
        for key, order in part["orders"].items()
        if order["customer"] in customers
    ]


def _get_order(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    return {"order": arguments["order"], **_order(state, arguments)}


def _get_customer(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    customers = state["orders"].get("customers", {})
    return {"customer": arguments["customer"], **entry(customers, arguments["customer"], "customer")}


def _get_policy(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    policy = state["orders"].get("policy", {})
    return entry(policy, arguments["topic"], "policy on") if "topic" in arguments else policy


def _refund_order(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    order, amount = _order(state, arguments), cents(arguments["amount"])
    left = cents(order["paid"]) - cents(order.get("refunded", 0))
    if amount <= 0:
        raise Refused("A refund must be above 0.")
    if amount > left:
        raise Refused(f"Only {left / 100:.2f} of this order can still be refunded.")
    order["refunded"] = (cents(order.get("refunded", 0)) + amount) / 100
    refund = {
        "order": arguments["order"],
        "amount": amount / 100,
        "reason": arguments["reason"],
        "at": state["now"],
    }
    state["orders"].setdefault("refunds", []).append(refund)
    return {"refunded": amount / 100, "left": (left - amount) / 100}


def _cancel_order(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    order = _order(state, arguments)
    if order["status"] != "placed":
        raise Refused(f"An order that is {order['status']} cannot be cancelled.")
    order["status"], order["cancel_reason"] = "cancelled", arguments["reason"]
    return {"status": "cancelled"}


def _change_address(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    order = _order(state, arguments)
    if order["status"] != "placed":
        raise Refused(f"The address of an order that is {order['status']} cannot be changed.")
    order["address"] = arguments["address"]
    return {"address": order["address"]}


def _send_replacement(state: dict[str, Json], arguments: Mapping[str, Json]) -> Json:
    order = _order(state, arguments)
    if order["status"] not in ("shipped", "delivered"):
        raise Refused(f"An order that is {order['status']} cannot be replaced.")
    if arguments["sku"] not in {item["sku"] for item in order["items"]}:
        raise Refused(f"Order {arguments['order']} has no item {arguments['sku']!r}.")
    replacement = {"sku": arguments["sku"], "reason": arguments["reason"], "at": state["now"]}
    order.setdefault("replacements", []).append(replacement)
    return {"replacement": arguments["sku"]}


def cents(amount: float | int | str) -> int:
    """Hundredths of ``amount``. Raises ``Refused`` where it has more than two decimals."""
    exact = Decimal(str(amount)) * 100
    if exact != exact.to_integral_value():
        raise Refused(f"Amounts have two decimals, not {amount}.")
    return int(exact)


def _order(state: dict[str, Json], arguments: Mapping[str, Json]) -> dict[str, Any]:
    found: dict[str, Any] = entry(state["orders"]["orders"], arguments["order"], "order")
    return found


_ORDER = {"order": {**TEXT, "description": "the order's id"}}

SERVICE = Service(
    "orders",
    (
        Tool(
            "find_orders",
            "Orders of a customer, named by id, e-mail address or full name.",
            _find_orders,
            {"customer": TEXT},
        ),
        Tool("get_order", "All about one order.", _get_order, _ORDER),
        Tool("get_customer", "All about one customer, by id.", _get_customer, {"customer": TEXT}),
        Tool(
            "get_policy",
            "The shop's rules, all or those on one topic.",
            _get_policy,
            {"topic": TEXT},
            optional=frozenset({"topic"}),
        ),
        Tool(
            "refund_order",
            "Pay back an amount of an order.",
            _refund_order,
            {**_ORDER, "amount": {"type": "number"}, "reason": TEXT},
            changes=True,
        ),
        Tool(
            "cancel_order",
            "Cancel an order that has not been shipped.",
            _cancel_order,
            {**_ORDER, "reason": TEXT},
            changes=True,
        ),
        Tool(
            "change_address",
            "Change where an order goes that has not been shipped.",
            _change_address,
            {**_ORDER, "address": TEXT},
            changes=True,
        ),
        Tool(
            "send_replacement",
            "Send one item of a shipped order again, free of charge.",
            _send_replacement,
            {**_ORDER, "sku": TEXT, "reason": TEXT},
            changes=True,
        ),
    ),
)
