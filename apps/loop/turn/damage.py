"""A damaged copy of an adapter, for the drill: what a broken export or a bad merge would look like."""

import tempfile
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from artifacts import get_store

_WEIGHTS = "adapter_model.safetensors"


def damaged_adapter(digest: str, *, seed: int, scale: float = 3.0) -> str:
    """Digest of a copy whose up-projections point the other way, ``scale`` times as far, with noise.

    The same arguments give the same copy.
    """
    store = get_store()
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        tree = store.materialize(digest, Path(folder) / "adapter")
        weights = load_file(tree / _WEIGHTS)
        for name in sorted(weights):
            if "lora_B" in name:
                spread = float(np.abs(weights[name]).mean())
                noise = rng.normal(0.0, spread, weights[name].shape)
                weights[name] = (-scale * weights[name] + scale * noise).astype(weights[name].dtype)
        save_file(weights, tree / _WEIGHTS, metadata={"format": "pt"})
        return store.put_tree(tree)
