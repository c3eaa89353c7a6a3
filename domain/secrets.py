"""Keys, tokens and passwords in text, found by their own shapes.

Privacy goes first: what looks like a password after ``password=`` is one, however weak.
"""

import math
import re
from collections import Counter

from domain.spans import Span

_B = r"(?<![A-Za-z0-9])"  # no letter or digit before
_API_KEYS = "|".join(
    (
        r"sk-[A-Za-z0-9_-]{16,}",
        r"(?:sk|rk|pk|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,}",
        r"gh[pousr]_[A-Za-z0-9]{20,}",
        r"github_pat_[A-Za-z0-9_]{20,}",
        r"glpat-[A-Za-z0-9_-]{16,}",
        r"(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}(?![A-Z0-9])",
        r"AIza[A-Za-z0-9_-]{30,}",
        r"ya29\.[A-Za-z0-9_-]{20,}",
        r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
        r"hf_[A-Za-z0-9]{20,}",
        r"npm_[A-Za-z0-9]{30,}",
        r"pypi-[A-Za-z0-9_-]{40,}",
        r"dop_v1_[a-f0-9]{40,}",
        r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
        r"fw_[A-Za-z0-9_-]{16,}",
    )
)
_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "PRIVATE_KEY",
        re.compile(
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?"
            r"(?:-----END [A-Z0-9 ]*KEY(?: BLOCK)?-----|\Z)",
            re.DOTALL,
        ),
    ),
    (
        "CONNECTION_STRING",
        re.compile(
            r"\b[a-z][a-z0-9+.-]{1,30}://[^\s:/@\"'<>]{0,200}:[^\s\"'<>@]{1,500}@[^\s\"'<>()]+", re.IGNORECASE
        ),
    ),
    ("JWT", re.compile(_B + r"eyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*){2,4}")),
    ("API_KEY", re.compile(_B + rf"(?:{_API_KEYS})")),
)
_AUTHORIZATION = re.compile(
    r"\b(?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?(?:[A-Za-z][A-Za-z0-9-]{1,19}\s+)?"
    r"(?P<value>[^\s\"',;<>]{6,})",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\bbearer\s+(?P<value>[A-Za-z0-9._~+/=-]{12,})", re.I)
_PASSWORD = re.compile(
    r"(?:password|passwd|passphrase|pwd|secret)[\w-]{0,30}[\"']?\s*(?:=>|:=|[:=])\s*"
    r"(?:\"(?P<double>[^\"\n]{4,})\"|'(?P<single>[^'\n]{4,})'|(?P<bare>[^\s\"'<>;,&]{4,}))",
    re.I,
)
_TOKEN = re.compile(
    r"(?:token|api[_-]?key|apikey|access[_-]?key|account[_-]?key|private[_-]?key|credential|auth)[\w-]{0,30}"
    r"[\"']?\s*(?:=>|:=|[:=])\s*[\"']?(?P<value>[^\s\"'<>;,&]{8,})",
    re.I,
)
_ASSIGNED = re.compile(r"[\w.-]{2,64}[\"']?\s*[:=]\s*[\"']?(?P<value>[A-Za-z0-9+/_=.-]{24,})")
_SECRET_FIELD = re.compile(
    r"(?:^|[_.\-\s])(?:password|passwd|passphrase|pwd|secret|client[_-]?secret|api[_-]?key|access[_-]?key|private[_-]?key|"
    r"authorization|credentials?|(?:access|refresh|auth|id|session)_?token|token)$",
    re.I,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_PASSWORDS = frozenset(
    {
        "required", "optional", "missing", "invalid", "incorrect", "expired", "changed", "reset", "forgotten",
        "protected", "string", "null", "none", "true", "false", "must", "should", "cannot", "wrong", "empty",
        "hidden", "unknown", "undefined", "redacted",
    }
)  # fmt: skip


def find_secrets(text: str) -> list[Span]:
    """Secrets in ``text``; spans may overlap. Entities: PRIVATE_KEY, CONNECTION_STRING, JWT,
    API_KEY, TOKEN, PASSWORD, SECRET."""
    spans = [Span(entity, *match.span(), 1.0) for entity, shape in _SHAPES for match in shape.finditer(text)]
    spans += [Span("TOKEN", *match.span("value"), 1.0) for match in _AUTHORIZATION.finditer(text)]
    spans += [Span("TOKEN", *m.span("value"), 1.0) for m in _BEARER.finditer(text) if _mixed(m["value"])]
    for match in _PASSWORD.finditer(text):
        group = next(name for name in ("double", "single", "bare") if match[name] is not None)
        if match[group].strip(".!?").lower() not in _NO_PASSWORDS:
            spans.append(Span("PASSWORD", *match.span(group), 0.95))
    for match in _TOKEN.finditer(text):
        if _mixed(match["value"]) and entropy(match["value"]) >= 2.5:
            spans.append(Span("TOKEN", *match.span("value"), 0.95))
    for match in _ASSIGNED.finditer(text):
        if _dense(match["value"]):
            spans.append(Span("SECRET", *match.span("value"), 0.8))
    return spans


def is_secret_field(name: str) -> bool:
    """Whether the value under a field of this name is a secret whatever it looks like."""
    return _SECRET_FIELD.search(_CAMEL.sub("_", name)) is not None


def entropy(text: str) -> float:
    """Shannon entropy in bits a character."""
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


def _mixed(text: str) -> bool:
    """Letters with digits, or long: words and plain numbers are no tokens."""
    letters = any(char.isalpha() for char in text)
    return letters and (any(char.isdigit() for char in text) or len(text) >= 24)


def _dense(text: str) -> bool:
    kinds = (str.isupper, str.islower, str.isdigit)
    return all(any(kind(char) for char in text) for kind in kinds) and entropy(text) >= 4.0
