"""Models that a name may silently be exchanged for: two adapters of one training, a base that was trained
on, the base with weights of eight bits. All from the pocket model, in seconds.

Not a benchmark: ``bench.evals_probes`` serves what this makes.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional

from domain.contracts.training import TrainConfig
from packs.starter.tasks import families, generate, gold_answer
from workers.engine.text import Text
from workers.train.policy import Policy

BASE = Path("models/pocket/weights")
ADAPTER_STEPS, ADAPTER_ROWS = 8, 8
BASE_STEPS = 12


def adapter(folder: Path, *, seed: int, base: Path = BASE) -> Path:
    """A PEFT folder after ``ADAPTER_STEPS`` steps on gold answers: seeds are runs of the same training."""
    torch.set_num_threads(1)
    policy = Policy(base, TrainConfig(seed=seed))
    text = Text(base)
    rows = _rows(text, seed)
    optimizer = torch.optim.AdamW(policy.parameters().values(), lr=2e-3)
    for step in range(ADAPTER_STEPS):
        for prompt, answer in rows[step * ADAPTER_ROWS : (step + 1) * ADAPTER_ROWS]:
            ids = torch.tensor([[*prompt, *answer]])
            logits = policy.model(input_ids=ids).logits[0, len(prompt) - 1 : -1]
            torch.autograd.backward(functional.cross_entropy(logits, torch.tensor(answer)) / ADAPTER_ROWS)
        optimizer.step()
        optimizer.zero_grad()
    folder.mkdir(parents=True)
    (folder / "adapter_model.safetensors").write_bytes(policy.adapter_weights())
    (folder / "adapter_config.json").write_bytes(policy.adapter_config())
    return folder


def trained_on(folder: Path, *, base: Path = BASE) -> Path:
    """The base after ``BASE_STEPS`` more steps of its own training, in the warm-up of the learning rate."""
    work = folder.parent / f"{folder.name}-work"
    command = [sys.executable, "-m", "models.pocket.train", "--start", str(base), "--work", str(work)]
    command += ["--steps", str(BASE_STEPS), "--out", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder


def int8(folder: Path, *, base: Path = BASE) -> Path:
    """Every matrix but the embedding rounded to 127 steps each way, one scale a row: weights only."""
    shutil.copytree(base, folder)
    tensors = load_file(base / "model.safetensors")
    save_file(
        {name: _eight_bits(name, value) for name, value in tensors.items()},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )
    return folder


def _eight_bits(name: str, value: Tensor) -> Tensor:
    if value.ndim != 2 or "embed" in name:
        return value
    scale = value.float().abs().amax(dim=1, keepdim=True) / 127
    return ((value.float() / scale).round() * scale).to(value.dtype).contiguous()


def _rows(text: Text, seed: int) -> list[tuple[list[int], list[int]]]:
    """Prompts and gold answers of the starter pack's families in turn, as token ids."""
    eos = json.loads((BASE / "config.json").read_text())["eos_token_id"]
    names = [family.name for family in families() if family.name != "tool_call"]
    rows = []
    for index in range(ADAPTER_STEPS * ADAPTER_ROWS):
        task = generate(names[index % len(names)], seed=1000 * seed + index, count=1)[0]
        messages = [message.model_dump(exclude_none=True) for message in task.messages]
        rows.append((text.chat(messages, None, True), [*text.encode(gold_answer(task)), eos]))
    return rows
