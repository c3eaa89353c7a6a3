"""Read a value from a dict, a dataclass or a model by the first name that it has."""

from typing import Any


def read(source: Any, *names: str, default: Any = None) -> Any:
    """Return the first of ``names`` found on ``source`` that is a value: not None, not a method
    (a named tuple has a ``count`` that nobody meant)."""
    for name in names:
        value = source.get(name) if isinstance(source, dict) else getattr(source, name, None)
        if value is not None and not callable(value):
            return value
    return default
