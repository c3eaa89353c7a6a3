"""What asking judges has cost, where the prices of their endpoints are known."""

from collections.abc import Iterable, Mapping
from typing import Any

from apps.core.models import Project
from apps.versions.models import Deployment


def cost_usd(project: Project, entries: Iterable[Mapping[str, Any]]) -> float | None:
    """Dollars for the replies in ``entries``; None where a price that is needed is not known."""
    rows = list(Deployment.objects.filter(project=project).externals().order_by("name"))
    by_name = {row.name: row for row in rows}
    if rows:
        by_name[""] = rows[0]  # as apps.versions.selectors.judge_targets names it
    total = 0.0
    for entry in entries:
        if "reply" not in entry:
            continue
        row = by_name.get(str(entry.get("model", "")))
        if row is None or row.input_usd_per_mtok is None or row.output_usd_per_mtok is None:
            return None
        total += entry.get("prompt_tokens", 0) * float(row.input_usd_per_mtok) / 1e6
        total += entry.get("completion_tokens", 0) * float(row.output_usd_per_mtok) / 1e6
    return total
