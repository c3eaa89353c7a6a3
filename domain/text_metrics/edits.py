"""Likeness by edits and by longest common subsequence, bit-parallel: one wide integer a step.

Sources: G. Myers, "A fast bit-vector algorithm for approximate string matching", J. ACM 46 (1999), in the
form of H. Hyyrö (2003); for the subsequence H. Hyyrö, "Bit-parallel LCS-length computation revisited"
(2004).
"""

from collections.abc import Hashable, Sequence


def levenshtein(answer: str, reference: str) -> float:
    """1 − edits / length of the longer text: insertions, deletions and substitutions count one each."""
    longer = max(len(answer), len(reference))
    return 1.0 - distance(answer, reference) / longer if longer else 0.0


def fuzzy_match(answer: str, reference: str) -> float:
    """2·LCS / (lengths together): the ratio that RapidFuzz computes as ``fuzz.ratio``, of 1."""
    total = len(answer) + len(reference)
    return 2.0 * common(answer, reference) / total if total else 0.0


def distance(a: str, b: str) -> int:
    """Levenshtein's distance."""
    if not a or not b:
        return len(a) + len(b)
    places, full, top = _places(a), (1 << len(a)) - 1, 1 << (len(a) - 1)
    more, less, edits = full, 0, len(a)  # where the column of the matrix goes up, and down
    for sign in b:
        same = places.get(sign, 0)
        diagonal = (((same & more) + more) ^ more) | same | less
        up = less | (full & ~(diagonal | more))
        down = diagonal & more
        edits += bool(up & top) - bool(down & top)
        up, down = (up << 1) | 1, down << 1
        more = full & (down | ~(diagonal | up))
        less = full & up & diagonal
    return edits


def common(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """Length of the longest common subsequence."""
    if not a or not b:
        return 0
    places, full = _places(a), (1 << len(a)) - 1
    row = full
    for item in b:
        taken = row & places.get(item, 0)
        row = full & ((row + taken) | (row - taken))
    return len(a) - row.bit_count()


def _places(items: Sequence[Hashable]) -> dict[Hashable, int]:
    """For each item the positions where it stands, as bits."""
    where: dict[Hashable, list[int]] = {}
    for index, item in enumerate(items):
        where.setdefault(item, []).append(index)
    return {item: _bits(indices, len(items)) for item, indices in where.items()}


def _bits(indices: list[int], size: int) -> int:
    field = bytearray(size // 8 + 1)
    for index in indices:
        field[index >> 3] |= 1 << (index & 7)
    return int.from_bytes(field, "little")
