"""Which split a case belongs to. The tag ``split`` says so, in any of the words people use."""

from typing import Any

from domain.splits import split_of

TRAIN, VALIDATION, HELD_OUT = "train", "validation", "held_out"
SPLITS = (TRAIN, VALIDATION, HELD_OUT)
TAG = "split"
_WORDS = {
    "train": TRAIN, "training": TRAIN,
    "validation": VALIDATION, "valid": VALIDATION, "val": VALIDATION, "dev": VALIDATION, "eval": VALIDATION,
    "held_out": HELD_OUT, "heldout": HELD_OUT, "holdout": HELD_OUT, "hold_out": HELD_OUT, "test": HELD_OUT,
}  # fmt: skip


def split_named(value: Any) -> str:
    """``train``, ``validation``, ``held_out``, or empty where the word names no split."""
    if not isinstance(value, str):
        return ""
    return _WORDS.get("_".join(value.strip().lower().replace("-", " ").replace("_", " ").split()), "")


def split_by_hash(source: str, *, validation: float, held_out: float) -> str:
    """The split of ``source`` by the hash that task assets are split by, so that one wall stands between
    training and what it is measured by. Shares in [0, 1]; raising one moves sources out of ``train`` only.
    """
    if split_of(source, held_out) == "heldout":
        return HELD_OUT
    return VALIDATION if split_of(source, min(1.0, held_out + validation)) == "heldout" else TRAIN
