"""Python client of the REST API and the gateway."""

from clients.flywheel.client import ApiError, Client

__all__ = ["ApiError", "Client"]
