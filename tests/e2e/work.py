"""Work that goes on while processes are killed: users, a stream of captures, evaluations, training.

Every sender does what a careful client does: it repeats what was not acknowledged, under the same id.
"""

import itertools
import json
import random
import string
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from safetensors.numpy import save_file

from artifacts import ArtifactStore
from clients.flywheel import ApiError, Client
from packs.registry import pack_named
from tests.e2e.stack import ROOT, RunningStack
from tests.waiting import until

FAMILY = "invoice_fields"
AWAY = (0, 502, 503, 504)  # nobody there, or the gateway says "in a moment"


class Work:
    """Threads that run until ``stop``; what they were told is kept, to be compared with what is stored."""

    def __init__(self, stack: RunningStack) -> None:
        self._stack = stack
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=(step, pause_s), daemon=True)
            for step, pause_s in ((self._ask, 0.3), (self._capture, 1.0), (self._evaluate, 0.5))
        ]
        self._numbers = itertools.count()
        self.tag = f"kill-{_letters()}"
        self.answered: dict[str, tuple[float, float]] = {}  # operation -> asked and answered when, monotonic
        self.acknowledged: list[str] = []  # external ids of captures
        self.runs: list[int] = []
        self.errors: list[str] = []
        with stack.client() as client:
            self.base = _base(client)
            suite = client.post("/suites", {"name": self.tag})
            tasks = [
                task.model_dump(mode="json", exclude_defaults=True)
                for task in pack_named("starter").generate(FAMILY, seed=77, count=48, reserved=True)
            ]
            cases = {"tasks": tasks, "keep_personal_data": True}  # nobody's: stored without a worker
            self._suite = client.post(f"/suites/{suite['id']}/versions", cases)["id"]

    def __enter__(self) -> "Work":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=600)

    def wait_for_more(self, *, timeout_s: float = 600.0) -> None:
        """Until users are answered again and captures are taken again."""
        asked, taken = len(self.answered), len(self.acknowledged)
        until(
            lambda: len(self.answered) >= asked + 2 and len(self.acknowledged) > taken,
            what="requests are answered and captures are taken",
            timeout_s=timeout_s, every_s=0.3,
        )  # fmt: skip

    def _repeat(self, step: Callable[[Client], None], pause_s: float) -> None:
        with self._stack.client() as client:
            while not self._stop.is_set():
                try:
                    step(client)
                except ApiError as error:
                    if error.status not in AWAY:
                        self.errors.append(f"{step.__name__}: {error}")
                except Exception as error:  # shown by the test that owns us
                    self.errors.append(f"{step.__name__}: {error!r}")
                self._stop.wait(pause_s)

    def _ask(self, client: Client) -> None:
        asked = time.monotonic()
        answer = client.chat([{"role": "user", "content": "Add 12 and 30."}], max_tokens=6)
        self.answered[answer.headers["x-flywheel-operation"]] = (asked, time.monotonic())

    def _capture(self, client: Client) -> None:
        number = next(self._numbers)
        messages = [{"role": "user", "content": f"Read invoice INV-{number}: total EUR {number}.50"}]
        items = [
            {
                "external_id": f"{self.tag}-{number}-{part}",
                "messages": messages,
                "answer": "{}",
                "family": FAMILY,
            }
            for part in "ab"
        ]
        while not self._stop.is_set():
            try:
                results = client.post("/captures", {"items": items})["results"]
            except ApiError as error:
                if error.status not in AWAY:
                    raise
                time.sleep(0.5)
                continue
            assert {row["status"] for row in results} <= {"created", "exists"}, results
            self.acknowledged += [item["external_id"] for item in items]
            return

    def _evaluate(self, client: Client) -> None:
        """One run after the other, so that there is always one."""
        if self.runs and client.get(f"/runs/{self.runs[-1]}")["state"] == "running":
            return
        body = {"suite_version_id": self._suite, "version_id": self.base, "batch_size": 8}
        self.runs.append(client.post("/runs", body)["id"])


def start_training(client: Client, base: int, name: str) -> int:
    """A run as small as can be: its id."""
    dataset = client.post("/datasets", {"name": name, "kind": "rl", "split": "train", "families": [FAMILY]})
    body = {
        "name": name, "dataset_id": dataset["id"], "parent_version_id": base, "steps": 2, "seed": 3,
        "config": {"groups": 2, "group_size": 4, "refills": 0},
    }  # fmt: skip
    return int(client.post("/training/runs", body)["id"])


def _letters() -> str:
    """A name of its own: of digits, one in ten would look like a card number and be refused."""
    return "".join(random.choices(string.ascii_lowercase, k=12))


def serve_adapter(stack: RunningStack, client: Client, folder: Path) -> dict[str, Any]:
    """Put a version with an adapter (drawn, and useless) into service."""
    digest = ArtifactStore(f"file://{stack.data / 'artifacts'}").put_tree(_adapter(folder))
    name = f"e2e-{_letters()}"
    version: dict[str, Any] = client.post("/versions", {"adapter_name": name, "adapter_digest": digest})
    client.post(
        f"/versions/{version['id']}/promote",
        {"reason": "To watch engines load it.", "without_evidence": True},
    )
    return version


def engine_models(address: str) -> list[str]:
    try:
        answer = httpx.get(f"{address}/v1/models", timeout=60)
        return [card["id"] for card in answer.json()["data"]] if answer.status_code == 200 else []
    except (httpx.HTTPError, ValueError):
        return []


def _base(client: Client) -> int:
    return int(next(row for row in client.get("/versions") if row["parent_id"] is None)["id"])


def _adapter(folder: Path) -> Path:
    """A LoRA folder as PEFT writes it, small enough not to change much."""
    settings = json.loads((ROOT / "models" / "pocket" / "weights" / "config.json").read_text())
    hidden, draw = settings["hidden_size"], np.random.default_rng(5)
    tensors = {}
    for layer in range(settings["num_hidden_layers"]):
        stem = f"base_model.model.model.layers.{layer}.self_attn.q_proj"
        tensors[f"{stem}.lora_A.weight"] = draw.normal(0, 0.02, (4, hidden)).astype(np.float32)
        tensors[f"{stem}.lora_B.weight"] = draw.normal(0, 0.02, (hidden, 4)).astype(np.float32)
    folder.mkdir(parents=True)
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    config = {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": "pocket", "r": 4,
        "lora_alpha": 8, "lora_dropout": 0.0, "bias": "none", "target_modules": ["q_proj"],
    }  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder
