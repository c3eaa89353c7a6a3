"""``POST /v1/feedback``: ratings, comments and corrections, taken in a thread beside the data path.

Feedback may come before its operation's row is in the database; it is joined later.
"""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import Error as DatabaseError
from django.db import close_old_connections

from apps.core.errors import Refused
from apps.core.models import ApiKey
from apps.core.permissions import actor_for_key
from apps.feedback import services as feedback
from apps.gateway.errors import GatewayError

_FIELDS = ("operation", "metric", "value", "comment", "correction", "external_id")


def feedback_items(body: Any) -> list[dict[str, Any]]:
    """One item, a list of items, or ``{"items": [...]}``, with ``inference_id`` as another name of
    ``operation``. Raises GatewayError 400."""
    items = body.get("items", [body]) if isinstance(body, dict) else body
    if not isinstance(items, list) or not items or not all(isinstance(item, dict) for item in items):
        raise GatewayError(
            400, "Send one feedback object or a list of them.", code="invalid_body", param="items"
        )
    named = [{"operation": item.get("inference_id"), **item} for item in items]
    return [{key: item[key] for key in _FIELDS if item.get(key) is not None} for item in named]


def feedback_take(*, key_id: int, items: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Hand the items to the feedback room; to be run in a thread. Raises GatewayError."""
    close_old_connections()
    try:
        key = ApiKey.objects.active().select_related("project").filter(pk=key_id).first()
        if key is None:
            raise GatewayError(401, "This API key is unknown or revoked.", code="invalid_api_key")
        return feedback.signals_ingest(project=key.project, items=list(items), by=actor_for_key(key=key))
    except Refused as refused:
        raise GatewayError(refused.status, refused.message, code=refused.code) from refused
    except PermissionDenied as denied:
        raise GatewayError(403, str(denied), code="missing_scope") from denied
    except DatabaseError as error:
        raise GatewayError(
            503, "Feedback cannot be stored right now. Send it again.", code="unavailable", retry_after_s=2.0
        ) from error
    finally:
        close_old_connections()
