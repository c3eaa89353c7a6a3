"""Text that every database and every page can hold.

Models and users write NUL and halves of surrogate pairs. PostgreSQL keeps neither in text nor in jsonb,
and a page cannot encode the latter.
"""

from collections.abc import Mapping
from typing import Any


def storable(value: Any) -> Any:
    """``value`` with NUL and half of a surrogate pair replaced by U+FFFD, keys included; two halves that
    belong together become the one character. Tuples become lists."""
    if isinstance(value, str):
        if value.isascii() and "\0" not in value:
            return value
        return value.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    if isinstance(value, Mapping):
        return {storable(key): storable(item) for key, item in value.items()}
    return value
