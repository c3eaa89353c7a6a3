"""JSON as bytes, whatever a text holds.

A model may write half of a surrogate pair (``"\\ud800"`` is JSON), and that has no UTF-8. Such a value
is written escaped, so it reads back as it was; everything else is plain UTF-8.
"""

import json
from typing import Any


def json_bytes(value: Any, *, sort_keys: bool = False, allow_nan: bool = False) -> bytes:
    """``value`` as one line of JSON. Raises ValueError for NaN and infinities unless they are allowed."""
    try:
        text = json.dumps(value, sort_keys=sort_keys, ensure_ascii=False, allow_nan=allow_nan)
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, sort_keys=sort_keys, allow_nan=allow_nan).encode()
