"""What speaks against the scores of a suite version that judge models give: shown wherever they are."""

from collections import Counter
from functools import lru_cache
from typing import Any

from apps.evals.models import Case, SuiteVersion
from apps.feedback.judge_selectors import Asked, judge_doubts
from apps.feedback.judges import judge_digest
from domain.judge_specs import judge_specs


def judge_warnings(suite_version: SuiteVersion) -> list[str]:
    """One sentence for each reason; empty where no judge is asked, or where all were compared with people
    and agree with them well enough (``domain.calibration``). At most four queries, two when repeated."""
    asked = judges_asked(suite_version)
    if not asked:
        return []
    return judge_doubts(suite_version.suite.project, asked, suite_version.count)


def judges_asked(suite_version: SuiteVersion) -> list[Asked]:
    """Every judge that cases of the version ask, and how many of them."""
    return list(_asked(suite_version.tasks_digest, suite_version.pk))


@lru_cache(maxsize=256)
def _asked(tasks_digest: str, version_id: int) -> tuple[Asked, ...]:
    """A version never changes; its digest is in the key because ids are used again in tests."""
    counts: Counter[str] = Counter()
    found: dict[str, tuple[str, Any]] = {}
    rows = Case.objects.filter(versions=version_id).order_by().values_list("task__verifier", flat=True)
    for spec in rows.iterator(chunk_size=500):
        mine = {judge_digest(kind, params): (kind, params) for kind, params in judge_specs(spec or {})}
        found |= mine
        counts.update(mine.keys())
    return tuple(Asked(kind, params, counts[digest]) for digest, (kind, params) in found.items())
