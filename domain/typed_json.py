"""Builtin Python values as JSON that keeps their types. Standard library only.

The text of this file is also executed inside a sandbox (it imports nothing of the project), so
both sides of the wall speak the same code. Plain JSON stands for itself; what JSON would bend
is wrapped as ``{"t": tag, "v": payload}``:

    tuple, set, frozenset   v = list of values
    dict                    v = list of [key, value]; used when a key is no string, or is "t"
    bytes                   v = base64 text
    float                   v = "nan" | "inf" | "-inf"
    complex                 v = [real, imag]
    int                     v = hexadecimal text, for integers above 1,000 bits

Only exact builtin types pass (and the dict variants of ``collections``, as dict): an object that
lies about equality cannot be encoded, so it is never compared.
"""

import base64
import collections
import math
from typing import Any

_DICTS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)
_TAGS = frozenset({"tuple", "set", "frozenset", "dict", "bytes", "float", "complex", "int"})
_MAX_DEPTH = 100
_BIG_INT_BITS = 1000


class Unencodable(TypeError):
    """The value is not built from builtin types, or is nested too deeply."""


def encode(value: Any) -> Any:
    """``value`` as something ``json.dumps(..., allow_nan=False)`` accepts.

    Raises ``Unencodable`` for foreign types, subclasses of builtins and nesting above 100.
    """
    return _encode(value, 0)


def decode(data: Any) -> Any:
    """The Python value that ``data`` stands for. Raises ``ValueError`` on malformed wrappers."""
    return _decode(data, 0)


def equal(a: Any, b: Any, rel: float = 0.0, *, strict: bool = False) -> bool:
    """Whether two decoded values agree, by type and value.

    bool is never a number; 1 and 1.0 agree, unless ``strict``; list and tuple differ; nan agrees
    with nan. ``rel`` is a relative tolerance where one of two numbers is a float (not for dict keys
    and set members).
    """
    if isinstance(a, bool) or isinstance(b, bool):
        return type(a) is type(b) and a == b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return not (strict and type(a) is not type(b)) and _numbers_equal(a, b, rel)
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(equal(x, y, rel, strict=strict) for x, y in zip(a, b, strict=True))
    if isinstance(a, (set, frozenset)):
        return {_identity(x, strict) for x in a} == {_identity(x, strict) for x in b}
    if isinstance(a, dict):
        left = {_identity(k, strict): v for k, v in a.items()}
        right = {_identity(k, strict): v for k, v in b.items()}
        return left.keys() == right.keys() and all(
            equal(v, right[k], rel, strict=strict) for k, v in left.items()
        )
    return bool(a == b)


def _encode(value: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise Unencodable(f"the value is nested deeper than {_MAX_DEPTH} levels")
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if value.bit_length() <= _BIG_INT_BITS else {"t": "int", "v": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"t": "float", "v": repr(value)}
    if kind is complex:
        return {"t": "complex", "v": [_encode(value.real, depth + 1), _encode(value.imag, depth + 1)]}
    if kind is list:
        return [_encode(item, depth + 1) for item in value]
    if kind in (tuple, set, frozenset):
        return {"t": kind.__name__, "v": [_encode(item, depth + 1) for item in value]}
    if kind in _DICTS:
        if all(type(key) is str and key != "t" for key in value):
            return {key: _encode(item, depth + 1) for key, item in value.items()}
        pairs = [[_encode(key, depth + 1), _encode(item, depth + 1)] for key, item in value.items()]
        return {"t": "dict", "v": pairs}
    if kind is bytes:
        return {"t": "bytes", "v": base64.b64encode(value).decode("ascii")}
    raise Unencodable(f"a value of type {kind.__name__} is not a builtin value")


def _decode(data: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH * 2:
        raise ValueError("the value is nested too deeply")
    if isinstance(data, list):
        return [_decode(item, depth + 1) for item in data]
    if not isinstance(data, dict):
        return data
    tag = data.get("t")
    if set(data) != {"t", "v"} or not isinstance(tag, str) or tag not in _TAGS:
        return {key: _decode(item, depth + 1) for key, item in data.items()}
    try:
        return _unwrap(tag, data["v"], depth)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"malformed {tag}: {error}") from error


def _unwrap(tag: str, payload: Any, depth: int) -> Any:
    if tag in ("bytes", "float", "int"):
        if not isinstance(payload, str):
            raise ValueError("text was expected")
        if tag == "bytes":
            return base64.b64decode(payload, validate=True)
        if tag == "int":
            return int(payload, 16)
        if payload not in ("nan", "inf", "-inf"):
            raise ValueError("only nan, inf and -inf are wrapped")
        return float(payload)
    if not isinstance(payload, list):
        raise ValueError("a list was expected")
    items = [_decode(item, depth + 1) for item in payload]
    if tag == "dict":
        if any(not isinstance(pair, list) or len(pair) != 2 for pair in items):
            raise ValueError("pairs were expected")
        return dict(items)
    if tag == "complex":
        if len(items) != 2 or any(type(part) not in (int, float) for part in items):
            raise ValueError("two numbers were expected")
        return complex(items[0], items[1])
    return {"tuple": tuple, "set": set, "frozenset": frozenset}[tag](items)


def _numbers_equal(a: float, b: float, rel: float) -> bool:
    if a == b:
        return True
    if type(a) is int and type(b) is int:
        return False
    try:
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return rel > 0.0 and math.isclose(a, b, rel_tol=rel)
    except OverflowError:  # an integer beyond the range of a float
        return False


def _identity(value: Any, strict: bool) -> Any:
    """A hashable stand-in under which True and 1 differ, 1 and 1.0 agree unless ``strict``, nan
    agrees with nan."""
    if isinstance(value, float) and math.isnan(value):
        return ("nan",)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return (type(value).__name__ if strict else "number", value)
    if isinstance(value, tuple):
        return ("tuple", tuple(_identity(item, strict) for item in value))
    if isinstance(value, frozenset):
        return ("frozenset", frozenset(_identity(item, strict) for item in value))
    return (type(value).__name__, value)
