"""Which placeholder stands for which value inside one case."""

import re

from domain.spans import PLACEHOLDER, Span

_SHORTEST_KNOWN = 4


class PseudonymBook:
    """Values met so far in one case, and their placeholders. In memory only: it holds clear text."""

    def __init__(self) -> None:
        self._placeholders: dict[tuple[str, str], str] = {}
        self._values: dict[str, str] = {}
        self._counters: dict[str, int] = {}
        self.scores: dict[str, float] = {}

    def placeholder(self, entity: str, value: str, score: float) -> str:
        key = (entity, canonical(value))
        if key not in self._placeholders:
            self._counters[entity] = self._counters.get(entity, 0) + 1
            self._placeholders[key] = f"<{entity}_{self._counters[entity]}>"
            self._values.setdefault(value, entity)
        found = self._placeholders[key]
        self.scores[found] = min(score, self.scores.get(found, 1.0))
        return found

    def reserve(self, text: str) -> None:
        """Placeholders that stand in the text already are never given to a new value."""
        for match in PLACEHOLDER.finditer(text):
            self._counters[match[1]] = max(self._counters.get(match[1], 0), int(match[2]))

    def known(self, text: str) -> list[Span]:
        """Where values of the book stand in ``text`` as whole words."""
        spans = []
        for value, entity in self._values.items():
            if len(value) >= _SHORTEST_KNOWN and value in text:
                shape = rf"(?<!\w){re.escape(value)}(?!\w)"
                score = self.scores[self._placeholders[entity, canonical(value)]]
                spans += [Span(entity, *match.span(), score) for match in re.finditer(shape, text)]
        return spans


def canonical(value: str) -> str:
    """Case and spacing make no other person."""
    return " ".join(value.split()).casefold()
