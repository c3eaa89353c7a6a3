"""Names, addresses, keys and the like out of messages, consistent pseudonyms in.

Content is walked value by value, JSON inside strings too; names of fields stay. The same value is
the same ``<PERSON_1>`` everywhere in a case, also where the detector missed it. What finds
entities is a ``Detector`` that the caller brings; secrets are found here. The original values live
in a ``PseudonymBook`` in memory only: nothing that is returned holds them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from domain.json_text import map_json_text
from domain.pseudonyms import PseudonymBook, canonical
from domain.secrets import find_secrets, is_secret_field
from domain.spans import PLACEHOLDER, Span, outside, without_overlaps
from domain.surrogates import surrogate, surrogate_map, surrogates

__all__ = [
    "PLACEHOLDER",
    "Anonymized",
    "BinaryContent",
    "Detector",
    "MaskedSpan",
    "PseudonymBook",
    "Rules",
    "Span",
    "anonymize",
    "anonymize_text",
    "surrogate",
    "surrogate_map",
    "surrogates",
]

_MAX_PASSES = 6
_BINARY_PARTS = frozenset({"image_url", "input_image", "image", "input_audio", "audio", "file", "input_file"})
_STRUCTURE = frozenset({"role", "type", "tool_call_id", "id", "finish_reason"})
_PLAIN_NAME = re.compile(r"[\w.\- /]{1,64}")
_LONG_NUMBER = 9


class Detector(Protocol):
    """Finds personal data in one text. Spans may overlap; offsets count characters."""

    def detect(self, text: str) -> Sequence[Span]: ...


class BinaryContent(ValueError):
    """An image, sound or file, which cannot be anonymized. The text is for users."""


@dataclass(frozen=True)
class Rules:
    """Rules of a project. ``allow`` values stay, ``deny`` texts always go, ``patterns`` map an entity
    to a regular expression, ``thresholds`` override ``threshold`` by entity, ``keep`` entities stay
    (extraction tasks need dates and amounts), ``fields`` map a field's name to what its value is.
    Placeholders with a score under ``review_below`` are for a person to look at."""

    allow: frozenset[str] = frozenset()
    deny: tuple[str, ...] = ()
    patterns: Mapping[str, str] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    threshold: float = 0.4
    keep: frozenset[str] = frozenset({"DATE_TIME", "DATE", "MONEY", "AMOUNT"})
    fields: Mapping[str, str] = field(
        default_factory=lambda: {
            "email": "EMAIL",
            "phone": "PHONE",
            "first_name": "PERSON",
            "last_name": "PERSON",
            "full_name": "PERSON",
            "customer_name": "PERSON",
        }
    )
    review_below: float = 0.7
    allow_images: bool = False


class MaskedSpan(NamedTuple):
    """A placeholder in the result: ``path`` like ``1.tool_calls.0.function.arguments`` names the
    text, offsets count in it. ``score`` is the lowest that led to it."""

    path: str
    start: int
    end: int
    entity: str
    placeholder: str
    score: float


class Anonymized(NamedTuple):
    """``mapping`` is placeholder -> entity; ``uncertain`` spans are for a person."""

    messages: list[dict[str, Any]]
    spans: list[MaskedSpan]
    mapping: dict[str, str]
    uncertain: list[MaskedSpan]


def anonymize(
    messages: Sequence[Mapping[str, Any]],
    detector: Detector,
    rules: Rules | None = None,
    book: PseudonymBook | None = None,
) -> Anonymized:
    """Anonymize the messages of one case (OpenAI format, or any JSON objects).

    The same ``book`` joins several calls to one case. Passes repeat until nothing new is found, so
    that anonymizing the result changes nothing. Raises ``BinaryContent`` for images, sound and
    files unless the rules allow images.
    """
    walker = _Walker(detector, rules or Rules(), book or PseudonymBook())
    current = [dict(message) for message in messages]
    for _, text in _texts(current, ""):
        walker.book.reserve(text)
    for _ in range(_MAX_PASSES):
        masked = [walker.mapping(message, message_level=True) for message in current]
        if masked == current:
            break
        current = masked
    spans = [found for path, text in _texts(current, "") for found in _masked(path, text, walker.book)]
    mapping = {span.placeholder: span.entity for span in spans}
    review = walker.rules.review_below
    return Anonymized(current, spans, mapping, [span for span in spans if span.score < review])


def anonymize_text(
    text: str, detector: Detector, rules: Rules | None = None, book: PseudonymBook | None = None
) -> Anonymized:
    """As ``anonymize``, for one text: it is ``result.messages[0]["content"]``."""
    return anonymize([{"content": text}], detector, rules, book)


class _Walker:
    def __init__(self, detector: Detector, rules: Rules, book: PseudonymBook) -> None:
        self.detector, self.rules, self.book = detector, rules, book
        self._detected: dict[str, list[Span]] = {}  # a detector is slow and every pass asks again
        self._allow = {canonical(value) for value in rules.allow}
        self._shapes = [(entity, re.compile(shape)) for entity, shape in rules.patterns.items()]
        self._shapes += [
            ("DENIED", re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.IGNORECASE))
            for text in rules.deny
            if text
        ]

    def mapping(self, value: Mapping[str, Any], message_level: bool = False) -> dict[str, Any]:
        kind = value.get("type")
        if isinstance(kind, str) and kind in _BINARY_PARTS:
            if not self.rules.allow_images:
                raise BinaryContent(f"Content of type {kind!r} cannot be anonymized and is not accepted.")
            return dict(value)
        call = "function" in value or message_level
        return {self._key(key): self._field(key, item, call) for key, item in value.items()}

    def value(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return self.mapping(value)
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if isinstance(value, str):
            return self.text(value)
        return self._number(value)

    def text(self, text: str) -> str:
        inside = map_json_text(text, self._key, self._json_leaf)
        return self._plain(text) if inside is None else inside

    def _field(self, key: str, item: Any, structural: bool) -> Any:
        if structural and key in _STRUCTURE and isinstance(item, str):
            return self._replace(item, self._settled(item, find_secrets(item)))
        if isinstance(item, list | tuple):
            return [self._field(key, element, False) for element in item]
        if isinstance(item, str) and (entity := self._entity_of_field(key)) is not None:
            return self._whole(item, entity)
        return self.value(item)

    def _entity_of_field(self, key: str) -> str | None:
        return "SECRET" if is_secret_field(key) else self.rules.fields.get(key.lower())

    def _json_leaf(self, key: str | None, value: Any) -> Any:
        """A string or number inside JSON text; ``key`` is the field it stands under, if any."""
        if isinstance(value, str):
            entity = None if key is None else self._entity_of_field(key)
            return self.text(value) if entity is None else self._whole(value, entity)
        return self._number(value)

    def _whole(self, text: str, entity: str) -> str:
        """The value of a field that is personal by its name."""
        if not text.strip() or entity in self.rules.keep:
            return self.text(text)
        parts = outside(Span(entity, 0, len(text), 0.9), _placeholders(text))
        if canonical(text) in self._allow:
            return text
        spans = [part for part in parts if any(map(str.isalnum, text[part.start : part.end]))]
        return self._replace(text, spans)

    def _number(self, value: Any) -> Any:
        """Long integers can be card or phone numbers; amounts and counts stay numbers."""
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) < 10 ** (_LONG_NUMBER - 1):
            return value
        text = str(value)
        masked = self._plain(text)
        return value if masked == text else masked

    def _key(self, key: str) -> str:
        return key if _PLAIN_NAME.fullmatch(key) and not find_secrets(key) else self._plain(key)

    def _plain(self, text: str) -> str:
        if not text.strip():
            return text
        if text not in self._detected:
            self._detected[text] = [*self.detector.detect(text), *find_secrets(text)]
        spans = [*self._detected[text], *self.book.known(text)]
        for entity, shape in self._shapes:
            spans += [Span(entity, *match.span(), 1.0) for match in shape.finditer(text)]
        return self._replace(text, self._settled(text, spans))

    def _settled(self, text: str, spans: Iterable[Span]) -> list[Span]:
        """Disjoint spans that the rules mark, without placeholders that stand there already."""
        marked = [span for span in spans if self._marks(text, span)]
        fixed = _placeholders(text)
        parts = [part for span in without_overlaps(marked) for part in outside(span, fixed)]
        return [part for part in parts if any(map(str.isalnum, text[part.start : part.end]))]

    def _marks(self, text: str, span: Span) -> bool:
        if span.entity in self.rules.keep or canonical(text[span.start : span.end]) in self._allow:
            return False
        return span.score >= self.rules.thresholds.get(span.entity, self.rules.threshold)

    def _replace(self, text: str, spans: Sequence[Span]) -> str:
        pieces, position = [], 0
        for span in sorted(spans, key=lambda s: s.start):
            raw = text[span.start : span.end]
            value = raw.strip()
            lead = len(raw) - len(raw.lstrip())
            start = span.start + lead
            pieces += [text[position:start], self.book.placeholder(span.entity, value, span.score)]
            position = start + len(value)
        return "".join([*pieces, text[position:]])


def _placeholders(text: str) -> list[Span]:
    return [Span(match[1], *match.span(), 1.0) for match in PLACEHOLDER.finditer(text)]


def _masked(path: str, text: str, book: PseudonymBook) -> list[MaskedSpan]:
    return [
        MaskedSpan(path, *match.span(), match[1], match[0], book.scores.get(match[0], 1.0))
        for match in PLACEHOLDER.finditer(text)
    ]


def _texts(value: Any, path: str) -> Iterable[tuple[str, str]]:
    """Every text in ``value`` with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _texts(item, f"{path}.{index}" if path else str(index))
