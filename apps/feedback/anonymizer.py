"""Anonymization of captured exchanges: ``domain.anonymize`` with Presidio behind it and a project's rules.

One exchange is one case: messages, answer, correction and feedback share their pseudonyms. What
arrives later joins them through keyed hashes of the values, which is all that is kept of them.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import regex  # type: ignore[import-untyped]

from apps.core.crypto import keyed_hash
from apps.core.errors import Refused
from apps.feedback import detectors
from apps.feedback.rules import (
    DEFAULT_THRESHOLDS,
    MASK_FROM,
    PATTERN_TIMEOUT_S,
    Rules,
    rules_checked,
    rules_in_force,
)
from domain import anonymize as pure
from domain.spans import Span
from domain.storable import storable

_UNSURE_BELOW = 0.7


class CannotAnonymize(ValueError):
    """The text stays encrypted. The message is for people and quotes nothing."""


class Anonymized(NamedTuple):
    """``spans``: where placeholders stand, ``[{"path", "start", "end", "entity", "score", "unsure"}]``;
    ``pseudonyms``: keyed hash of a value -> placeholder, for text that comes later."""

    content: dict[str, Any]
    spans: list[dict[str, Any]]
    pseudonyms: dict[str, str]


class Anonymizer:
    """Holds the language model; one per process (``get_anonymizer``)."""

    def __init__(self) -> None:
        detectors.warm_up()

    def content(
        self, content: Mapping[str, Any], rules: Rules, known: Mapping[str, str] | None = None
    ) -> Anonymized:
        """Anonymize one exchange. Raises ``CannotAnonymize``."""
        content = storable(content)
        messages = list(content.get("messages", []))
        rest = {key: value for key, value in content.items() if key not in ("messages", "verifier")}
        book = _Book(known or {})
        try:
            done = pure.anonymize([*messages, rest], _Detector(rules), _domain_rules(rules), book)
        except pure.BinaryContent as problem:
            raise CannotAnonymize(str(problem)) from None
        except TimeoutError:
            raise CannotAnonymize("A pattern of the project's rules took too long on this text.") from None
        result = dict(done.messages[-1])
        if "messages" in content:
            result["messages"] = done.messages[:-1]
        if "verifier" in content and self._is_clean(content["verifier"], rules):
            result["verifier"] = content["verifier"]
        spans = [_span(found, len(messages), found in set(done.uncertain)) for found in done.spans]
        return Anonymized(result, spans, {**(known or {}), **book.hashes})

    def _is_clean(self, verifier: Any, rules: Rules) -> bool:
        """A verifier's parameters are kept word for word, or not at all."""
        text = "\n".join(_words(verifier))
        done = pure.anonymize_text(text, _Detector(rules), _domain_rules(rules))
        return not done.spans


_loading = threading.Lock()
_loaded: list[Anonymizer] = []


def get_anonymizer() -> Anonymizer:
    """The anonymizer of this process; loading it takes some seconds, once."""
    with _loading:
        if not _loaded:
            _loaded.append(Anonymizer())
        return _loaded[0]


def warm_in_background() -> None:
    """Load the model while a person still reads: what they type next must not wait for it."""
    if not _loaded and not _loading.locked():
        threading.Thread(target=get_anonymizer, name="load-anonymizer", daemon=True).start()


def anonymize_content(
    content: Mapping[str, Any], rules: Rules, known: Mapping[str, str] | None = None
) -> Anonymized:
    """Anonymize an exchange, or any mapping of texts. ``known`` are the pseudonyms given before."""
    return get_anonymizer().content(content, rules, known)


def anonymize_text(text: str, rules: Rules, known: Mapping[str, str] | None = None) -> str:
    return str(anonymize_content({"text": text}, rules, known).content["text"])


def rules_try(*, rules: Mapping[str, Any], text: str) -> Anonymized:
    """What these rules would do to ``text``. Nothing is stored."""
    try:
        return anonymize_content({"text": text}, rules_checked(rules))
    except CannotAnonymize as problem:
        raise Refused(str(problem), code="rules_fail") from None


class _Book(pure.PseudonymBook):
    """Pseudonyms that continue those of an exchange whose values are known by their hashes only."""

    def __init__(self, known: Mapping[str, str]) -> None:
        super().__init__()
        self._known_hashes = known
        self.hashes: dict[str, str] = {}
        self.reserve(" ".join(known.values()))

    def placeholder(self, entity: str, value: str, score: float) -> str:
        digest = keyed_hash(f"pseudonym:{entity}", " ".join(value.split()).casefold())
        if digest in self._known_hashes:
            found = self._known_hashes[digest]
            self.scores[found] = min(score, self.scores.get(found, 1.0))
            return found
        found = super().placeholder(entity, value, score)
        self.hashes[digest] = found
        return found


class _Detector:
    """Presidio, our recognizers and the project's patterns; one text is looked at once."""

    def __init__(self, rules: Rules) -> None:
        self._patterns = [(p["entity"], regex.compile(p["regex"])) for p in rules.patterns]
        self._seen: dict[str, list[Span]] = {}

    def detect(self, text: str) -> Sequence[Span]:
        if text not in self._seen:
            found = [Span(hit.entity, hit.start, hit.end, hit.score) for hit in detectors.detect(text)]
            for entity, shape in self._patterns:
                for match in shape.finditer(text, timeout=PATTERN_TIMEOUT_S):
                    found.append(Span(entity, match.start(), match.end(), 1.0))
            self._seen[text] = found
        return self._seen[text]


def _domain_rules(rules: Rules) -> pure.Rules:
    return pure.Rules(
        allow=frozenset(rules.allow),
        deny=rules.deny,
        thresholds={**DEFAULT_THRESHOLDS, **rules.thresholds},
        threshold=MASK_FROM,
        keep=frozenset(rules.keep),
        review_below=_UNSURE_BELOW,
    )


def _span(found: pure.MaskedSpan, messages: int, unsure: bool) -> dict[str, Any]:
    """The path as it is in the content: the rest of an exchange was walked as one more message."""
    index, _, tail = found.path.partition(".")
    path = f"messages.{index}.{tail}" if int(index) < messages else tail
    return {
        "path": path,
        "start": found.start,
        "end": found.end,
        "entity": found.entity,
        "score": round(found.score, 2),
        "unsure": unsure,
    }


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _words(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _words(item)


__all__ = [
    "Anonymized",
    "Anonymizer",
    "CannotAnonymize",
    "anonymize_content",
    "anonymize_text",
    "get_anonymizer",
    "rules_in_force",
    "warm_in_background",
]
