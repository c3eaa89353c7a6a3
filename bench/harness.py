"""What every benchmark shares: a table, a JSON file of its lines, and an exit code.

A line holds when its ratio meets its bar. ``make bench-X`` writes ``var/bench/X.json`` as a list
of ``{name, value, unit, peer, bar, holds}`` and exits 1 if a bar is missed.
"""

import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Line:
    """``bar`` is the bound that ``value`` must meet in ``direction``; None only reports."""

    name: str
    value: float
    unit: str
    peer: str = ""
    bar: float | None = None
    direction: Literal["at_least", "at_most"] = "at_least"

    @property
    def holds(self) -> bool | None:
        if self.bar is None:
            return None
        return self.value >= self.bar if self.direction == "at_least" else self.value <= self.bar


def report(name: str, lines: Sequence[Line], *, folder: Path = Path("var/bench")) -> int:
    """Print the table, write the JSON, return the exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {**{k: v for k, v in asdict(line).items() if k != "direction"}, "holds": line.holds} for line in lines
    ]
    (folder / f"{name}.json").write_text(json.dumps(rows, indent=2) + "\n")
    width = max(len(line.name) for line in lines)
    print(f"\n{name}")
    for line in lines:
        bar = "" if line.bar is None else f"  {'≥' if line.direction == 'at_least' else '≤'} {line.bar:g}"
        mark = {True: "holds", False: "MISSED", None: ""}[line.holds]
        print(f"  {line.name:<{width}}  {line.value:>10.3g} {line.unit:<12} {line.peer:<32}{bar:<10} {mark}")
    return 1 if any(line.holds is False for line in lines) else 0


def median_s(action: Callable[[], object], *, repeats: int, warmup: int = 1) -> float:
    """Median wall time of ``action`` in seconds."""
    for _ in range(warmup):
        action()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
