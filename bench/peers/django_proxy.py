"""The peer of the gateway's benchmark: an async Django view that forwards a chat request."""

import json
import os
from typing import Any

import aiohttp
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

_session: aiohttp.ClientSession | None = None


@csrf_exempt
async def chat(request: HttpRequest) -> JsonResponse:
    global _session
    if _session is None:
        _session = aiohttp.ClientSession()
    body: Any = json.loads(request.body)
    url = os.environ["BENCH_UPSTREAM"] + request.path
    async with _session.post(url, json={**body, "model": "base"}) as response:
        return JsonResponse(await response.json())


urlpatterns = [path("v1/chat/completions", chat)]
