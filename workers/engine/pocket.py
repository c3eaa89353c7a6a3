"""The embedded engine: ``python -m workers.engine.pocket --model DIR --port N``.

One process, one model, one computing thread; ``--speculative prompt-lookup`` makes it the
high-speed edition, whose greedy answers are the same up to ties that ``/metrics`` counts.
"""

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from aiohttp import web

from workers.engine.adapters import Served, merged
from workers.engine.batching import Batcher
from workers.engine.loop import EngineLoop
from workers.engine.model import assemble, load_model
from workers.engine.server import PocketServer
from workers.engine.text import Text

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PocketSettings:
    """``max_length`` 0 takes the model's own; ``adapter_dir``: each folder in it is served
    under the folder's name from the start; ``dtype`` is what the model computes in."""

    model: Path
    name: str = "pocket"
    host: str = "127.0.0.1"
    port: int = 0
    speculative: bool = False
    slots: int = 64
    max_length: int = 0
    adapter_dir: Path | None = None
    dtype: Literal["float32", "bfloat16"] = "float32"


class Pocket:
    """A running server: ``await start()``, read ``url``, ``await stop()``."""

    def __init__(self, settings: PocketSettings) -> None:
        self.settings = settings
        self.failed = asyncio.Event()
        self.url = ""
        config, base = load_model(settings.model, getattr(torch, settings.dtype))
        text = Text(settings.model)
        batcher = Batcher(
            config,
            decode=text.decode,
            slots=settings.slots,
            max_length=settings.max_length,
            speculative=settings.speculative,
        )
        self.engine = EngineLoop(batcher, self.failed.set)
        served = [Served(settings.name, assemble(config, base), str(settings.model))]
        for folder in sorted(settings.adapter_dir.iterdir()) if settings.adapter_dir else ():
            if (folder / "adapter_config.json").exists():
                served.append(Served(folder.name, merged(config, base, folder), str(folder), settings.name))
        self._server = PocketServer(config=config, base=base, served=served, text=text, engine=self.engine)
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        self.engine.start()
        self._runner = web.AppRunner(self._server.application(), handler_cancellation=True, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.settings.host, self.settings.port)
        await site.start()
        self.url = f"http://{self.settings.host}:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        self.engine.stop()


async def serve(settings: PocketSettings) -> int:
    """Run until a signal (0) or a failure of the computing thread (1), for a supervisor to see."""
    pocket = Pocket(settings)
    await pocket.start()
    print(f"pocket engine serves {settings.name} on {pocket.url}", flush=True)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    waits = [asyncio.create_task(event.wait()) for event in (stopped, pocket.failed)]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await wait
    await pocket.stop()
    return 1 if pocket.failed.is_set() else 0


def main() -> None:
    options = _options()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    torch.set_num_threads(options.threads)
    settings = PocketSettings(
        model=options.model,
        name=options.served_model_name,
        host=options.host,
        port=options.port,
        speculative=options.speculative == "prompt-lookup",
        slots=options.max_num_seqs,
        max_length=options.max_model_len,
        adapter_dir=options.adapter_dir,
        dtype=options.dtype,
    )
    sys.exit(asyncio.run(serve(settings)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder with weights and tokenizer")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--served-model-name", default="pocket")
    parser.add_argument("--speculative", choices=("prompt-lookup",), help="draft from the request's own text")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--max-num-seqs", type=int, default=64, help="requests that run at the same time")
    parser.add_argument("--max-model-len", type=int, default=0)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--adapter-dir", type=Path, help="serve every adapter in this folder from the start")
    return parser.parse_args()


if __name__ == "__main__":
    main()
