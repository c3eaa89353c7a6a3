"""Engines to test against: the pocket server in this process, and a real vLLM where one is installed."""

import asyncio
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest
import torch
from safetensors.torch import save_file

from tests.ports import free_port
from tests.waiting import GUARD_S
from workers.engine.pocket import Pocket, PocketSettings

ROOT = Path(__file__).parents[3]
WEIGHTS = ROOT / "models" / "pocket" / "weights"
VLLM_START_S = 800.0


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@contextmanager
def running_pocket(settings: PocketSettings) -> Iterator[str]:
    """The URL of a pocket server on a loop and thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    pocket = Pocket(settings)
    asyncio.run_coroutine_threadsafe(pocket.start(), loop).result(GUARD_S)
    try:
        yield pocket.url
    finally:
        asyncio.run_coroutine_threadsafe(pocket.stop(), loop).result(GUARD_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(GUARD_S)


@pytest.fixture(scope="session")
def pocket_url() -> Iterator[str]:
    with running_pocket(PocketSettings(model=WEIGHTS)) as url:
        yield url


@pytest.fixture(scope="session")
def vllm_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A vLLM server on the CPU with the same model, up in about a minute."""
    python = os.environ.get("FLYWHEEL_VLLM_PYTHON", str(ROOT / ".venv-vllm" / "bin" / "python"))
    if not Path(python).exists():
        pytest.skip("no environment with vLLM: `make vllm` makes it, FLYWHEEL_VLLM_PYTHON names another")
    port = free_port()
    log = tmp_path_factory.mktemp("vllm") / "server.log"
    command = [
        python,
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        str(WEIGHTS),
        "--port",
        str(port),
    ]
    command += [
        "--host",
        "127.0.0.1",
        "--served-model-name",
        "pocket",
        "--dtype",
        "float32",
        "--enforce-eager",
    ]
    command += ["--enable-lora", "--max-loras", "4", "--max-lora-rank", "16"]
    command += ["--logprobs-mode", "processed_logprobs", "--scheduling-policy", "priority"]
    environment = os.environ | {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    with log.open("w") as out:
        server = subprocess.Popen(
            command, env=environment, stdout=out, stderr=subprocess.STDOUT, cwd=log.parent
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(url, server, log)
        yield url
    finally:
        server.terminate()
        server.wait(GUARD_S)


@pytest.fixture(scope="session", params=["pocket", pytest.param("vllm", marks=pytest.mark.vllm)])
def engine_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
async def http(engine_url: str) -> Iterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(engine_url, timeout=aiohttp.ClientTimeout(total=GUARD_S)) as session:
        yield session


@pytest.fixture(scope="session")
def make_adapter(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Writes a PEFT folder with random LoRA matrices that visibly change the model's answers."""

    def make(seed: int) -> Path:
        folder = tmp_path_factory.mktemp("adapter") / f"a{seed}"
        folder.mkdir()
        settings = json.loads((WEIGHTS / "config.json").read_text())
        hidden, inner = settings["hidden_size"], settings["intermediate_size"]
        shapes = {"self_attn.q_proj": (hidden, hidden), "mlp.down_proj": (inner, hidden)}
        generator = torch.Generator().manual_seed(seed)
        tensors = {}
        for layer in range(settings["num_hidden_layers"]):
            for module, (inputs, outputs) in shapes.items():
                stem = f"base_model.model.model.layers.{layer}.{module}"
                tensors[f"{stem}.lora_A.weight"] = torch.randn(4, inputs, generator=generator) * 0.2
                tensors[f"{stem}.lora_B.weight"] = torch.randn(outputs, 4, generator=generator) * 0.5
        save_file(tensors, folder / "adapter_model.safetensors")
        config = {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": "pocket",
            "r": 4,
            "lora_alpha": 8,
            "lora_dropout": 0.0,
            "bias": "none",
            "target_modules": ["q_proj", "down_proj"],
        }
        (folder / "adapter_config.json").write_text(json.dumps(config))
        return folder

    return make


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    import urllib.error
    import urllib.request

    deadline = time.monotonic() + VLLM_START_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError(f"vLLM ended with {server.returncode}:\n{log.read_text()[-3000:]}")
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    raise TimeoutError(f"vLLM did not start in {VLLM_START_S:.0f} s:\n{log.read_text()[-3000:]}")
