"""One ASGI application: gateway data path, WebSocket, Django."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

from channels.auth import AuthMiddlewareStack  # noqa: E402  (needs the app registry)
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402
from django.urls import path  # noqa: E402

from apps.core.consumers import EventsConsumer  # noqa: E402
from apps.gateway.asgi import Gateway  # noqa: E402

gateway = Gateway.from_settings()
_websocket = AllowedHostsOriginValidator(
    AuthMiddlewareStack(URLRouter([path("ws/events/", EventsConsumer.as_asgi())]))
)
_protocols = ProtocolTypeRouter({"http": django_application, "websocket": _websocket})


async def application(scope, receive, send):  # type: ignore[no-untyped-def]
    """Send ``/v1/…`` and the lifespan to the gateway, everything else to Django."""
    if scope["type"] == "lifespan" or (scope["type"] == "http" and scope["path"].startswith("/v1/")):
        await gateway(scope, receive, send)
    else:
        await _protocols(scope, receive, send)
