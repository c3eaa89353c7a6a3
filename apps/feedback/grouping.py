"""Which failures look alike: MinHash over the words of anonymized prompts.

Jaccard similarity of two sets of shingles is estimated by the share of equal minima under random
hash functions (Broder 1997, "On the resemblance and containment of documents"). Numbers and
pseudonyms are reduced to their kind first, so that two invoices of one layout are alike.
"""

import hashlib
import re

import numpy as np
from numpy.typing import NDArray

HASHES = 64
ALIKE = 0.5  # share of equal minima from which two cases are one group
_PRIME = np.uint64((1 << 31) - 1)
_rng = np.random.default_rng(20240)
_A = _rng.integers(1, _PRIME, HASHES, dtype=np.uint64)  # [HASHES]
_B = _rng.integers(0, _PRIME, HASHES, dtype=np.uint64)  # [HASHES]
_PSEUDONYM = re.compile(r"<([A-Z][A-Z_]*)_\d+>")
_WORD = re.compile(r"[^\W\d_]+|\d+|[^\w\s]")

Signature = NDArray[np.uint32]  # [HASHES]


def signature(text: str, family: str = "") -> Signature:
    """The MinHash of ``text``; ``family`` keeps different kinds of task apart."""
    words = _words(text)
    shingles = {" ".join(words[i : i + n]) for n in (1, 2) for i in range(len(words) - n + 1)} or {""}
    hashes = np.array([_hash(f"{family}\x00{shingle}") for shingle in shingles], dtype=np.uint64)  # [S]
    return ((hashes[:, None] * _A + _B) % _PRIME).min(axis=0).astype(np.uint32)


def similarity(a: Signature, b: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Estimated Jaccard similarity of ``a`` [HASHES] with each row of ``b`` [N, HASHES]."""
    return np.asarray((b == a).mean(axis=1), dtype=np.float64)


def key_of(sig: Signature) -> str:
    """A name for the group that ``sig`` founds."""
    return hashlib.sha256(sig.tobytes()).hexdigest()[:16]


def _words(text: str) -> list[str]:
    reduced = _PSEUDONYM.sub(lambda match: match[1].lower(), text)
    return ["0" if word.isdigit() else word.casefold() for word in _WORD.findall(reduced)]


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big") % int(_PRIME)
