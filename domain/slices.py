"""A comparison cut along one axis: which slices there are, and the paired difference on each.

A difference on one slice of many stands only after Benjamini and Hochberg; a slice of few cases has none.
"""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from domain.multiplicity import benjamini_hochberg
from domain.paired import ComparisonVerdict, PairedDifference, paired_difference

MIN_CASES = 10
MANY = 5  # from so many comparisons on, some would seem to differ by chance alone
MAX_SLICES = 30
BINS = 6
MAX_NUMBERS = 12
NONE = "(none)"
OTHERS = "(others)"


class SliceDifference(NamedTuple):
    """One slice: its ``label``, its paired ``difference``, and whether n is too small to read it.

    ``adjusted`` is the p value after Benjamini–Hochberg where many slices are compared, else None;
    ``verdict`` is what is left of the difference's own verdict then.
    """

    label: str
    difference: PairedDifference
    small: bool
    adjusted: float | None
    verdict: ComparisonVerdict


class Sliced(NamedTuple):
    """``rows`` in the order to show; ``tested`` of them carry a p value; ``many`` says whether adjusted."""

    rows: tuple[SliceDifference, ...]
    tested: int
    many: bool


def slice_labels(values: Sequence[str | None]) -> tuple[list[str], list[str]]:
    """A label for each case [n], and the labels in the order to show.

    Numbers are ordered, and cut at their quantiles into at most six ranges where more than twelve differ;
    other values come by size, the smallest of many together as others. None is a slice of its own, last.
    """
    known = [value for value in values if value is not None]
    numbers = [_number(value) for value in known]
    if known and all(number is not None for number in numbers) and len(set(numbers)) > MAX_NUMBERS:
        return _binned(values)
    counts = Counter(known)
    if known and all(number is not None for number in numbers):
        order = sorted(counts, key=lambda value: (_number(value) or 0.0, value))
    else:
        order = sorted(counts, key=lambda value: (-counts[value], value))
    kept = order if len(order) <= MAX_SLICES else order[: MAX_SLICES - 1]
    named = set(kept)
    labels = [NONE if v is None else v if v in named else OTHERS for v in values]
    present = set(labels)
    return labels, [*kept, *(label for label in (OTHERS, NONE) if label in present and label not in named)]


def slice_differences(
    base: Sequence[float | None],
    new: Sequence[float | None],
    clusters: Sequence[Hashable],
    labels: Sequence[str],
    order: Sequence[str],
) -> Sliced:
    """The paired difference on every label of ``order``, over cases [n]."""
    places: dict[str, list[int]] = {label: [] for label in order}
    for at, label in enumerate(labels):
        places[label].append(at)
    found = [
        paired_difference([base[i] for i in at], [new[i] for i in at], [clusters[i] for i in at])
        for at in places.values()
    ]
    small = [difference.n < MIN_CASES or difference.low is None for difference in found]
    tested = [at for at, few in enumerate(small) if not few]
    many = len(tested) >= MANY
    adjusted: dict[int, float] = {}
    if many:
        p_values = [_p(found[at]) for at in tested]
        adjusted = dict(zip(tested, benjamini_hochberg(p_values).adjusted, strict=True))
    rows = tuple(
        SliceDifference(
            label=label,
            difference=difference,
            small=small[at],
            adjusted=adjusted.get(at),
            verdict=_verdict(difference, small[at], adjusted.get(at)),
        )
        for at, (label, difference) in enumerate(zip(places, found, strict=True))
    )
    return Sliced(rows, len(tested), many)


def _verdict(difference: PairedDifference, small: bool, adjusted: float | None) -> ComparisonVerdict:
    if small or (adjusted is not None and adjusted > 0.05):
        return "cannot_tell"
    return difference.verdict


def _p(difference: PairedDifference) -> float:
    return 1.0 if difference.p_value is None else difference.p_value


def _binned(values: Sequence[str | None]) -> tuple[list[str], list[str]]:
    numbers = np.array([np.nan if value is None else _number(value) for value in values], dtype=np.float64)
    known = numbers[~np.isnan(numbers)]
    edges = np.unique(np.quantile(known, np.linspace(0, 1, BINS + 1), method="nearest"))
    at = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, max(0, len(edges) - 2))
    names: dict[int, str] = {}
    for index in sorted({int(i) for i, n in zip(at, numbers, strict=True) if not math.isnan(n)}):
        inside = known[np.clip(np.searchsorted(edges, known, side="right") - 1, 0, len(edges) - 2) == index]
        low, high = float(inside.min()), float(inside.max())
        names[index] = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    labels = [NONE if math.isnan(n) else names[int(i)] for i, n in zip(at, numbers, strict=True)]
    return labels, [*dict.fromkeys(names.values()), *([NONE] if len(known) < len(values) else [])]


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
