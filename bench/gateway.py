"""CPU that a request costs in the gateway, against a Django view with stock middleware.

Both run in the same run behind uvicorn, one process each, in front of the same upstream, and are
measured in turns. The view only parses, forwards and answers; the gateway also checks the key,
draws the arm, reads the answer, encrypts its text and writes its log row to disk.
"""

import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from bench.harness import Line, report

REQUESTS = 1000
CONCURRENCY = 16
ROUNDS = 3
KEY = "fw_bench"
BODY = {
    "model": "auto",
    "messages": [{"role": "user", "content": "What is the total of this invoice? " * 20}],
}
ANSWER = {
    "id": "1",
    "object": "chat.completion",
    "model": "base",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "The total is 1,234.56. " * 10},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 200, "completion_tokens": 60, "total_tokens": 260},
}


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="flywheel-bench-") as folder:
        ports = {role: _free_port() for role in ("upstream", "gateway", "django")}
        env = {
            **os.environ,
            "FLYWHEEL_DATA": folder,
            "BENCH_UPSTREAM": f"http://127.0.0.1:{ports['upstream']}",
            "FLYWHEEL_LOG_LEVEL": "ERROR",
        }
        processes = {
            role: subprocess.Popen([sys.executable, "-m", "bench.gateway", role, str(port)], env=env)
            for role, port in ports.items()
        }
        try:
            lines = asyncio.run(_measure(ports, {role: p.pid for role, p in processes.items()}))
        finally:
            for process in processes.values():
                process.terminate()
            for process in processes.values():
                process.wait(timeout=10)
    return report("gateway", lines)


async def _measure(ports: dict[str, int], pids: dict[str, int]) -> list[Line]:
    urls = {role: f"http://127.0.0.1:{port}/v1/chat/completions" for role, port in ports.items()}
    cpu_ms: dict[str, list[float]] = {"gateway": [], "django": []}
    latency_ms: dict[str, list[float]] = {"upstream": [], "gateway": [], "django": []}
    connector = aiohttp.TCPConnector(limit=0)
    headers = {"Authorization": f"Bearer {KEY}"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as client:
        for url in urls.values():
            await _ready(client, url)
            await _send(client, url, 200)
        for _ in range(ROUNDS):
            for role in cpu_ms:
                before = _cpu_s(pids[role])
                await _send(client, urls[role], REQUESTS)
                cpu_ms[role].append((_cpu_s(pids[role]) - before) / REQUESTS * 1000)
        for _ in range(ROUNDS):
            for role, url in urls.items():
                latency_ms[role].append(await _alone_ms(client, url))
    gateway, django = statistics.median(cpu_ms["gateway"]), statistics.median(cpu_ms["django"])
    direct = statistics.median(latency_ms["upstream"])
    view = "Django view, stock middleware"
    return [
        Line("CPU a request, gateway", gateway, "ms"),
        Line("CPU a request, Django", django, "ms", view),
        Line("latency added, gateway", statistics.median(latency_ms["gateway"]) - direct, "ms", "no proxy"),
        Line("latency added, Django", statistics.median(latency_ms["django"]) - direct, "ms", "no proxy"),
        Line("CPU ratio", gateway / django, "gateway/view", view, bar=0.5, direction="at_most"),
    ]


async def _ready(client: aiohttp.ClientSession, url: str) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            async with client.post(url, json=BODY) as response:
                if response.status == 200:
                    return
        except aiohttp.ClientError:
            pass
        if time.monotonic() > deadline:
            raise SystemExit(f"{url} did not come up")
        await asyncio.sleep(0.1)


async def _send(client: aiohttp.ClientSession, url: str, count: int) -> None:
    left = iter(range(count))

    async def work() -> None:
        for _ in left:
            async with client.post(url, json=BODY) as response:
                answer = await response.json()
                assert answer["choices"][0]["message"]["content"], "an empty answer is no measurement"

    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))


async def _alone_ms(client: aiohttp.ClientSession, url: str) -> float:
    times = []
    for _ in range(50):
        start = time.perf_counter()
        async with client.post(url, json=BODY) as response:
            await response.read()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def _cpu_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _serve_upstream(port: int) -> None:
    from aiohttp import web

    body = json.dumps(ANSWER).encode()

    async def handle(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=body, content_type="application/json")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", handle)
    web.run_app(app, host="127.0.0.1", port=port, access_log=None, print=None)


def _serve_gateway(port: int) -> None:
    import django
    import uvicorn

    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    django.setup()
    from apps.core.crypto import key_digest
    from apps.gateway.asgi import Gateway
    from apps.gateway.limits import Limits
    from apps.gateway.snapshot import KeyInfo, Snapshot
    from apps.gateway.spool import Spool

    arm = {"version_id": 1, "version": "1.0", "model": "base", "adapter_digest": ""}
    deployments = [{"deployment_id": 1, "base_url": os.environ["BENCH_UPSTREAM"]}]
    routing = {
        "revision": 1,
        "arms": {"control": arm, "canary": {**arm, "version_id": 2, "version": "1.1"}},
        "release": {"id": 1, "number": 1, "salt": "s", "weight": 0.1, "segment": 0},
        "editions": {"standard": deployments, "high_speed": deployments},
        "externals": {},
        "task_types": {"interactive": "high_speed"},
        "default_edition": "standard",
        "capture": {"failures": True, "success_rate": 0.05},
    }
    key = KeyInfo(1, 1, frozenset({"gateway"}), Limits(10_000_000, 10_000_000_000, 10_000))
    gateway = Gateway(
        load=lambda: Snapshot({1: routing}, {key_digest(KEY): key}),
        spool=Spool(Path(os.environ["FLYWHEEL_DATA"]) / "spool"),
        max_body_bytes=4 * 1024 * 1024,
    )
    app: Any = gateway
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False)


def _serve_django(port: int) -> None:
    import django
    import uvicorn
    from django.conf import settings

    settings.configure(
        SECRET_KEY="bench",
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF="bench.peers.django_proxy",
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"],
        MIDDLEWARE=[  # as startproject writes it
            "django.middleware.security.SecurityMiddleware",
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.common.CommonMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
            "django.middleware.clickjacking.XFrameOptionsMiddleware",
        ],
    )
    django.setup()
    from django.core.asgi import get_asgi_application

    app: Any = get_asgi_application()
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False, lifespan="off")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        {"upstream": _serve_upstream, "gateway": _serve_gateway, "django": _serve_django}[sys.argv[1]](
            int(sys.argv[2])
        )
    else:
        raise SystemExit(main())
