"""What a pool did, as numbers for metrics."""

import time
from dataclasses import dataclass, fields, replace

_LEVELS = ("ready", "live", "leased", "waiting", "places", "wait_max_s")  # states, not counts


@dataclass(frozen=True)
class PoolStats:
    """``ready`` are parked, ``live`` all that there are, ``leased`` in use, of ``places`` at most. Counts
    are since the pool began: ``created``, ``replaced`` (sick at checkout), ``leaked`` (taken back from
    an owner that never closed), ``refused`` (full or too late), ``checkouts``. ``wait_s`` is the sum
    from asking to having, ``used_s`` sandboxes in use over time, ``span_s`` the time that passed."""

    ready: int = 0
    live: int = 0
    leased: int = 0
    waiting: int = 0
    places: int = 0
    created: int = 0
    replaced: int = 0
    leaked: int = 0
    refused: int = 0
    checkouts: int = 0
    wait_s: float = 0.0
    wait_max_s: float = 0.0
    used_s: float = 0.0
    span_s: float = 0.0

    @property
    def busy_share(self) -> float:
        """Mean share of the places in use, in [0, 1]."""
        return min(1.0, self.used_s / (self.span_s * self.places)) if self.span_s and self.places else 0.0

    @property
    def wait_mean_s(self) -> float:
        return self.wait_s / self.checkouts if self.checkouts else 0.0

    def since(self, before: "PoolStats") -> "PoolStats":
        """What was counted after ``before``, for the figures of one batch."""
        counts = [each.name for each in fields(self) if each.name not in _LEVELS]
        return replace(self, **{name: getattr(self, name) - getattr(before, name) for name in counts})

    def as_dict(self) -> dict[str, float]:
        shown = {each.name: getattr(self, each.name) for each in fields(self)}
        shown |= {"busy_share": self.busy_share, "wait_mean_s": self.wait_mean_s}
        return {f"sandbox_{name}": round(float(value), 6) for name, value in shown.items()}


class Meter:
    """Counts, and how many sandboxes were in use over time."""

    def __init__(self, places: int) -> None:
        self.created = self.replaced = self.leaked = self.refused = self.checkouts = 0
        self._places = places
        self._wait_s = self._wait_max_s = 0.0
        self._began = self._since = time.monotonic()
        self._inside = 0
        self._used_s = 0.0

    def waited(self, seconds: float) -> None:
        self.checkouts += 1
        self._wait_s += seconds
        self._wait_max_s = max(self._wait_max_s, seconds)

    def move(self, inside: int) -> None:
        """So many are in use from now on."""
        now = time.monotonic()
        self._used_s += (now - self._since) * self._inside
        self._inside, self._since = inside, now

    def stats(self, *, ready: int, live: int, leased: int, waiting: int) -> PoolStats:
        self.move(self._inside)
        return PoolStats(
            ready=ready,
            live=live,
            leased=leased,
            waiting=waiting,
            places=self._places,
            created=self.created,
            replaced=self.replaced,
            leaked=self.leaked,
            refused=self.refused,
            checkouts=self.checkouts,
            wait_s=self._wait_s,
            wait_max_s=self._wait_max_s,
            used_s=self._used_s,
            span_s=self._since - self._began,
        )
