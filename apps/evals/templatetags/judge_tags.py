"""``{% judge_warnings suite_version %}``: what speaks against scores that judges gave, above those scores."""

from typing import Any

from django import template

from apps.evals.judge_warnings import judge_warnings as warnings_of
from apps.evals.models import SuiteVersion

register = template.Library()


@register.inclusion_tag("evals/_judge_warnings.html")
def judge_warnings(suite_version: SuiteVersion) -> dict[str, Any]:
    return {"judge_warnings": warnings_of(suite_version)}
