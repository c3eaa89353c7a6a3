"""How far raters agree beyond chance. Where chance alone explains everything (one class only) the
answer is None, "undefined", and never 0. Missing ratings are None and ignored."""

from collections import Counter
from collections.abc import Hashable, Sequence

from domain.intervals import Interval, clustered_rate


def cohen_kappa(first: Sequence[Hashable | None], second: Sequence[Hashable | None]) -> float | None:
    """Cohen's κ of two raters over the same items [n]; None without a common item or with p_e = 1.

    Source: J. Cohen, Educational and Psychological Measurement 20 (1960): (p_o − p_e) / (1 − p_e).
    """
    if len(first) != len(second):
        raise ValueError("both raters need one entry per item")
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    if not pairs:
        return None
    n = len(pairs)
    left, right = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    agreed = sum(a == b for a, b in pairs)
    chance = sum(left[label] * right[label] for label in left)  # n² p_e, exact
    if chance == n * n:
        return None
    return (agreed * n - chance) / (n * n - chance)


def krippendorff_alpha(items: Sequence[Sequence[Hashable | None]]) -> float | None:
    """Krippendorff's α for nominal labels; ``items`` [n][raters], None where a rater is missing.

    None without an item that two raters share, or when all such ratings are one label. Source:
    K. Krippendorff, "Computing Krippendorff's alpha-reliability" (2011), nominal coincidences.
    """
    values: Counter[Hashable] = Counter()
    disagreement = 0.0
    for item in items:
        labels = Counter(label for label in item if label is not None)
        raters = sum(labels.values())
        if raters < 2:
            continue
        values.update(labels)
        same = sum(count * (count - 1) for count in labels.values())
        disagreement += (raters * (raters - 1) - same) / (raters - 1)
    total = sum(values.values())
    chance = total * total - sum(count * count for count in values.values())
    if chance == 0:
        return None
    return 1.0 - (total - 1) * disagreement / chance


def fleiss_kappa(items: Sequence[Sequence[Hashable | None]]) -> float | None:
    """Fleiss' κ over the items that all raters have rated; None without such an item, with fewer than
    two raters, or when all ratings are one label.

    Source: J. L. Fleiss, Psychological Bulletin 76 (1971): (P̄ − P̄_e) / (1 − P̄_e).
    """
    whole = [item for item in items if len(item) > 1 and all(label is not None for label in item)]
    if not whole:
        return None
    raters = len(whole[0])
    if any(len(item) != raters for item in whole):
        raise ValueError("every item needs one entry per rater")
    shares = Counter(label for item in whole for label in item)
    total = raters * len(whole)
    chance = sum(count * count for count in shares.values())  # total² P̄_e, exact
    if chance == total * total:
        return None
    same = sum(count * (count - 1) for item in whole for count in Counter(item).values())
    agreed = same / (total * (raters - 1))
    return (agreed - chance / total**2) / (1.0 - chance / total**2)


def kappa_interval(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    clusters: Sequence[Hashable],
    confidence: float = 0.95,
) -> Interval | None:
    """An interval for Cohen's κ over items [n] that may share ``clusters`` [n]; None where κ is
    undefined or where there are fewer than two clusters.

    Source: Cohen (1960), who holds chance agreement p_e fixed at the observed margins. Deviation: the
    observed agreement gets Wilson's interval on n_eff = n / deff (``clustered_rate``) in place of his
    normal one, so that full agreement of few items has a width too.
    """
    if cohen_kappa(first, second) is None:
        return None
    agreed = [a == b for a, b in zip(first, second, strict=True)]
    rate = clustered_rate(agreed, clusters, confidence)
    if rate is None:
        return None
    n, left, right = len(agreed), Counter(first), Counter(second)
    chance = sum(left[label] * right[label] for label in left) / (n * n)
    low, high = ((bound - chance) / (1.0 - chance) for bound in (rate.low, rate.high))
    return Interval(max(-1.0, low), min(1.0, high), n, "Cohen, Wilson", rate.clusters)
