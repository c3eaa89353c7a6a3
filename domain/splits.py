"""On which side of the wall between training and held-out data a source lies.

The side is a hash of the source, so that near-duplicates share it, and it never changes when data
are added. It is fixed once, when an asset is made.
"""

import hashlib
from typing import Literal

Split = Literal["train", "heldout"]


def split_of(source: str, heldout: float = 0.2, salt: str = "split-1") -> Split:
    """The side of ``source``; a share ``heldout`` in [0, 1] of all sources is held out.

    Raising the share moves sources to the held-out side only. Raises ``ValueError`` without a source.
    """
    if not source:
        raise ValueError("a split needs a source")
    if not 0.0 <= heldout <= 1.0:
        raise ValueError("the held-out share lies between 0 and 1")
    digest = hashlib.sha256(f"{salt}\x00{source}".encode()).digest()
    point = (int.from_bytes(digest[:8], "big") >> 11) / (1 << 53)
    return "heldout" if point < heldout else "train"
