"""The figures of a calibration as words, and as objects that the score components draw."""

from typing import Any

_TAKEN = {"gold": "gold answer", "label": "label", "correction": "correction"}
_LEFT_OUT = {
    "people_disagree": "about which people disagree",
    "no_correction": "without a corrected answer",
    "no_text": "without a text",
    "unreadable": "that cannot be read",
    "over_the_limit": "over the limit",
}

_SILENT = {
    "error": "could not be asked",
    "malformed": "malformed",
    "unstable": "changed its mind",
    "missing": "not asked",
    "disagreement": "in disagreement",
}


class CalibrationWords:
    """Properties for ``Calibration``; ``figures`` is ``domain.calibration.Calibration`` as JSON."""

    figures: Any
    taken: Any
    kappa: float | None
    prompt_tokens: int
    completion_tokens: int

    @property
    def kappa_words(self) -> str:
        """``κ 0.71 (0.58 to 0.81), n = 120``; "undefined" is said and is not 0."""
        n = (self.figures or {}).get("decided", 0)
        if self.kappa is None:
            return f"κ undefined, n = {n:,}"
        return f"κ {_with_span(self.kappa, self.figures.get('kappa_interval'))}, n = {n:,}"

    @property
    def length_words(self) -> str:
        interval = self.figures["length_interval"]
        return f"{_with_span(self.figures['length_effect'], interval)}, n = {interval['n']:,}"

    @property
    def accuracy(self) -> dict[str, Any]:
        return self._rate("accuracy")

    @property
    def f1(self) -> dict[str, Any]:
        return self._rate("f1")

    @property
    def first_place(self) -> dict[str, Any]:
        return self._rate("first_place")

    @property
    def sources(self) -> int:
        """Independent sources among the decided answers; 0 where too few for an interval."""
        return int((self.figures["accuracy_interval"] or {}).get("clusters") or 0)

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @property
    def taken_words(self) -> str:
        """``12 labels, 3 corrections``."""
        counts = [(self.taken.get(name, 0), noun) for name, noun in _TAKEN.items()]
        return ", ".join(f"{n:,} {noun}{'' if n == 1 else 's'}" for n, noun in counts if n)

    @property
    def left_out_words(self) -> str:
        left = self.taken.get("left_out", {})
        return ", ".join(f"{left[name]:,} {words}" for name, words in _LEFT_OUT.items() if left.get(name))

    @property
    def silent_words(self) -> str:
        """``10 could not be asked, 2 malformed``: why answers are undecided."""
        return ", ".join(f"{n:,} {_SILENT.get(kind, kind)}" for kind, n in self.figures["silent"].items())

    @property
    def alpha_words(self) -> str:
        return _number(self.figures["alpha"])

    @property
    def fleiss_words(self) -> str:
        return _number(self.figures["fleiss"])

    def _rate(self, name: str) -> dict[str, Any]:
        interval = self.figures[f"{name}_interval"]
        n = interval["n"] if interval else self.figures["decided"]
        return {"value": self.figures[name], "interval": interval, "n": n}


def _with_span(value: float, interval: Any) -> str:
    span = f" ({_number(interval['low'])} to {_number(interval['high'])})" if interval else ""
    return f"{_number(value)}{span}"


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
