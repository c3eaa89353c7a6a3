"""A damaged copy: repeatable, different, and laid out as the adapter it was made of."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from apps.loop.turn.damage import damaged_adapter
from artifacts import ArtifactStore


@pytest.fixture
def adapter(store: ArtifactStore, tmp_path: Path) -> str:
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "adapter_config.json").write_text('{"r": 4}')
    rng = np.random.default_rng(1)
    weights = {
        "q_proj.lora_A.weight": rng.normal(size=(4, 8)).astype(np.float16),
        "q_proj.lora_B.weight": rng.normal(size=(8, 4)).astype(np.float16),
    }
    save_file(weights, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    return store.put_tree(folder)


def _weights(store: ArtifactStore, digest: str, folder: Path) -> dict[str, np.ndarray]:
    return load_file(store.materialize(digest, folder) / "adapter_model.safetensors")


def test_the_same_seed_gives_the_same_copy(adapter: str):
    assert damaged_adapter(adapter, seed=1) == damaged_adapter(adapter, seed=1)


def test_another_seed_gives_another_copy(adapter: str):
    assert len({adapter, damaged_adapter(adapter, seed=1), damaged_adapter(adapter, seed=2)}) == 3


def test_the_layout_stays(adapter: str, store: ArtifactStore, tmp_path: Path):
    good = _weights(store, adapter, tmp_path / "good")

    bad = _weights(store, damaged_adapter(adapter, seed=1), tmp_path / "bad")

    assert (tmp_path / "bad" / "adapter_config.json").read_text() == '{"r": 4}'
    assert {k: (v.shape, v.dtype) for k, v in bad.items()} == {k: (v.shape, v.dtype) for k, v in good.items()}
    assert all(np.isfinite(value).all() for value in bad.values())


def test_up_projections_point_the_other_way(adapter: str, store: ArtifactStore, tmp_path: Path):
    good = _weights(store, adapter, tmp_path / "good")

    bad = _weights(store, damaged_adapter(adapter, seed=1), tmp_path / "bad")

    up, down = "q_proj.lora_B.weight", "q_proj.lora_A.weight"
    assert np.array_equal(good[down], bad[down])
    assert float((good[up].astype(float) * bad[up].astype(float)).sum()) < 0


def test_the_original_is_untouched(adapter: str, store: ArtifactStore, tmp_path: Path):
    before = _weights(store, adapter, tmp_path / "before")

    damaged_adapter(adapter, seed=1)

    after = _weights(store, adapter, tmp_path / "after")
    assert all(np.array_equal(before[name], after[name]) for name in before)
