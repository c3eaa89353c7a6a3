"""The components that do something: buttons, forms, filters, pages of a list, live parts.

A builtin library, like ``ui``. ``docs/ui-components.md`` shows every one in use.
"""

from datetime import datetime
from typing import Any

from django import template
from django.core.paginator import Page
from django.template import Context
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core.ui import numbers

register = template.Library()


@register.inclusion_tag("components/action.html", takes_context=True)
def action(
    context: Context,
    label: str,
    url: str,
    *,
    key: str = "",
    style: str = "",
    method: str = "get",
    **fields: Any,
) -> dict[str, Any]:
    """A button that goes somewhere (get) or does something (post, with hidden ``fields``)."""
    return {
        "label": label,
        "url": url,
        "key": key,
        "style": style,
        "method": method,
        "fields": fields,
        "csrf_token": context.get("csrf_token"),
    }


@register.inclusion_tag("components/empty.html", takes_context=True)
def empty(
    context: Context, title: str, text: str = "", *, url: str = "", label: str = "", method: str = "get"
) -> dict[str, Any]:
    """What to say when there is nothing: what would be here, and how to get it."""
    return {
        "title": title,
        "text": text,
        "url": url,
        "label": label,
        "method": method,
        "csrf_token": context.get("csrf_token"),
    }


@register.inclusion_tag("components/progress.html", takes_context=True)
def progress(
    context: Context,
    done: int,
    total: int | None,
    *,
    unit: str = "",
    started_at: datetime | None = None,
    finished_at: datetime | None = None,
    cancel_url: str = "",
    pace: Any = None,
) -> dict[str, Any]:
    """Progress bar with elapsed time, an estimate of the rest, and cancel.

    ``pace`` has ``elapsed_s``, ``per_s`` and ``rest_s`` where the owner knows better than the clock,
    because it was paused or began again.
    """
    elapsed = ((finished_at or timezone.now()) - started_at).total_seconds() if started_at else None
    rest = None
    if elapsed and total and 0 < done < total and not finished_at:
        rest = elapsed / done * (total - done)
    if pace is not None:
        elapsed, rest = pace.elapsed_s, pace.rest_s
    return {
        "rate": numbers.rate(pace.per_s) if pace is not None and pace.per_s else "",
        "done": done,
        "total": total,
        "unit": unit,
        "elapsed": elapsed,
        "rest": rest,
        "cancel_url": "" if finished_at else cancel_url,
        "csrf_token": context.get("csrf_token"),
    }


@register.inclusion_tag("components/field.html")
def field(bound: Any, optional: bool = True) -> dict[str, Any]:
    """One form field with label, help and errors. ``optional`` marks fields that may stay empty."""
    widget = bound.field.widget
    kind = getattr(widget, "input_type", "")
    group = kind in {"radio", "checkbox"} and hasattr(widget, "choices")
    return {
        "field": bound,
        "kind": kind,
        "group": group,
        "mark_optional": optional and not bound.field.required,
    }


@register.inclusion_tag("components/fields.html")
def fields(form: Any) -> dict[str, Any]:
    """All fields of a form, after the errors that belong to none of them."""
    return {"form": form}


@register.inclusion_tag("components/filters.html", takes_context=True)
def filters(context: Context, form: Any, target: str = "#list") -> dict[str, Any]:
    """Filters kept in the URL; with JavaScript ``target`` is replaced as they change."""
    request = context.get("request")
    return {"form": form, "target": target, "path": request.path if request else ""}


@register.inclusion_tag("components/pagination.html", takes_context=True)
def pagination(context: Context, page: Page[Any], noun: str = "row") -> dict[str, Any]:
    """Page links that keep the filters, and how many there are in all."""
    return {
        "page": page,
        "pages": list(page.paginator.get_elided_page_range(page.number, on_each_side=2, on_ends=1)),
        "gap": page.paginator.ELLIPSIS,
        "total": numbers.count(page.paginator.count, *noun.split(",")),
        "request": context.get("request"),
    }


@register.simple_tag(takes_context=True)
def live(context: Context, url: str = "", *, topic: str = "", select: str = "") -> SafeString:
    """Attributes of an element (with an id) that is fetched again when its project has news.

    ``topic`` limits that to events whose topic starts so; ``select`` takes one element out of a
    whole page. The answer replaces the element.
    """
    request = context["request"]
    select_html = format_html(' hx-select="{}"', select) if select else ""
    after = "" if getattr(request, "htmx", False) else _last_event(getattr(request, "project", None))
    return format_html(
        'data-live="{}" data-after="{}" hx-get="{}" hx-trigger="live" hx-swap="outerHTML"{}',
        topic,
        after,
        url or request.get_full_path(),
        select_html,
    )


def _last_event(project: Any) -> int:
    from apps.core.models import Event

    if project is None:
        return 0
    return Event.objects.filter(project=project).order_by("-pk").values_list("pk", flat=True).first() or 0
