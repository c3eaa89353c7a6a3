"""Who may read held-out cases. What a training is measured by stays unknown to those who train.

The scope ``held_out`` opens them: release managers and admins have it, and keys that were given it. All
others see that there is such a case, its family and whether it passed, and nothing that it says.
"""

from collections.abc import Iterable

from apps.core.errors import Refused
from apps.core.permissions import Actor
from apps.evals.comparison import Flip
from apps.evals.formats.splits import HELD_OUT
from apps.evals.models import Case, Result, SuiteVersion

SCOPE = "held_out"
HIDDEN = (
    "This case is held out: what it asks, what is expected and what was answered is shown to release "
    "managers, admins and keys with the scope “held_out” only."
)
WORD = "held out"


def may_see(actor: Actor) -> bool:
    return actor.may(SCOPE)


def is_hidden(case: Case, actor: Actor) -> bool:
    return case.split == HELD_OUT and not may_see(actor)


def may_cut(version: SuiteVersion, actor: Actor) -> bool:
    """Whether ``actor`` may see scores by tag or source: of held-out cases, both are what the case says."""
    return may_see(actor) or not version.cases.filter(split=HELD_OUT).exists()


def cut_checked(version: SuiteVersion, axis: str, actor: Actor) -> None:
    """Raise Refused for an axis other than the family where ``may_cut`` says no."""
    if axis not in ("", "family") and not may_cut(version, actor):
        raise Refused(
            "This suite has held-out cases, whose tags and sources are shown to release managers, admins and "
            "keys with the scope “held_out” only. Cut by family.",
            code="held_out",
            status=403,
        )


def hidden_results(results: Iterable[Result], actor: Actor) -> None:
    """Take from results of held-out cases, in memory, what ``actor`` may not read: answers, reasons, and
    errors, in which an endpoint may quote what it was asked."""
    if may_see(actor):
        return
    for row in results:
        if row.case.split == HELD_OUT:
            row.answer, row.verdict, row.flags = "", {"reasons": [WORD]}, []
            row.error = WORD if row.error else ""


def hidden_flips(flips: list[Flip], actor: Actor) -> list[Flip]:
    """The same flips, without the reasons of cases that ``actor`` may not read."""
    for flip in flips:
        if is_hidden(flip.case, actor):
            hidden_results([flip.before, flip.after], actor)
    return flips
