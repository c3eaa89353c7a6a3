"""Plotly figures as JSON that a page may carry. Colours are CSS variables, resolved in the browser."""

import json
import math
from typing import Any

from django.utils.safestring import SafeString, mark_safe

_ESCAPES = {ord("<"): "\\u003C", ord(">"): "\\u003E", ord("&"): "\\u0026"}


def figure_json(figure: Any) -> SafeString:
    """JSON of a plotly ``Figure`` or of ``{"data": [...], "layout": {...}}``, safe inside <script>.

    Numbers that are not finite become null: a gap in the curve, never a zero.
    """
    text = figure.to_json() if hasattr(figure, "to_json") else json.dumps(_finite(figure), default=str)
    return mark_safe(text.translate(_ESCAPES))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if hasattr(value, "tolist"):
        return _finite(value.tolist())
    return value
