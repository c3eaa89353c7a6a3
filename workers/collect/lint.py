"""Evidence for ``lint``: what ruff finds in an answer, run in a sandbox with the image ``lint``.

The answer is data on stdin, never a program that runs; ruff reads no configuration and no suppression.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from workers.sandbox.protocol import Backend, ExecResult, Limits, SandboxSpec, SandboxUnavailable

_DETAIL = 300
_MOST = 200  # findings that are reported


async def collect_lint(
    backend: Backend,
    *,
    source: str,
    select: Sequence[str],
    settings: Mapping[str, Any],
    limits: Limits,
) -> dict[str, Any]:
    """See ``domain.verifiers.lint`` for the report."""
    limits = replace(limits, keep_bytes=limits.output_bytes)  # a report with a gap cannot be read
    argv = ["ruff", "check", "--isolated", "--no-cache", "--ignore-noqa", "--output-format", "json"]
    argv += ["--target-version", "py311", "--select", ",".join(select)]
    for name, value in sorted(settings.items()):
        argv += ["--config", f"{name}={json.dumps(value)}"]
    argv += ["--stdin-filename", "solution.py", "-"]
    try:
        result = await backend.run(
            SandboxSpec(image="lint", limits=limits), argv, stdin=source.encode("utf-8", "replace") or b"\n"
        )
    except SandboxUnavailable as unavailable:
        return {"status": "unavailable", "findings": None, "detail": str(unavailable)[:_DETAIL]}
    return _report(result)


def _report(result: ExecResult) -> dict[str, Any]:
    """Exit codes 0 and 1 come with a list of findings; anything else is a linter that did not work."""
    if result.status not in ("ok", "nonzero") or result.exit_code not in (0, 1):
        status = "infra_error" if result.status in ("ok", "nonzero") else result.status
        return {"status": status, "findings": None, "detail": _last_line(result)}
    try:
        found = json.loads(result.stdout.data)
        findings = [
            {"code": item["code"], "row": item["location"]["row"], "message": item["message"]}
            for item in found[:_MOST]
        ]
    except (ValueError, KeyError, TypeError):
        return {"status": "infra_error", "findings": None, "detail": "the linter's report cannot be read"}
    return {"status": "ok", "findings": findings, "detail": ""}


def _last_line(result: ExecResult) -> str:
    said = result.stderr.text.strip().splitlines()[-1:]
    return (result.detail or "".join(said) or f"exit code {result.exit_code}")[:_DETAIL]
