"""``code_functions``: functions of medium difficulty over integers, texts, lists and dicts."""

import random

from packs.coding import algorithms, pipelines
from packs.coding.calls import draft as drafted
from packs.coding.draft import Draft

_SHAPES = (
    pipelines.integers,
    pipelines.words,
    pipelines.records,
    algorithms.shape,
    algorithms.shape,
    algorithms.shape,
)


def draft(rng: random.Random) -> Draft:
    return drafted(rng.choice(_SHAPES)(rng), rng)
