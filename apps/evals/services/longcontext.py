"""Suites for the long-context map: something to find in filler, at chosen lengths and depths.

Lengths are tokens as the target's own tokenizer counts them, so a cell means the same for the model
that is asked. What is hidden, and asked for, is in ``domain.long_context``.
"""

import time
from collections.abc import Sequence

from apps.core.errors import Refused
from apps.core.models import Project
from apps.core.permissions import Actor
from apps.evals.asking import CannotAsk, Listener
from apps.evals.context_lengths import Counter, TooShort, counter_of, sentences_for
from apps.evals.models import Suite, SuiteVersion
from apps.evals.services.suites import suite_create, suite_slug, suite_version_create
from apps.versions.models import Deployment, EditionKind, ModelVersion
from domain.contracts import ChatMessage, TaskSpec, VerifierSpec
from domain.long_context import TASKS, Haystack, family_of, haystack

ANSWER_TOKENS = 16
MAX_CELLS, MAX_CASES = 64, 512
# Of all cases together: they are counted while somebody waits, and kept in the database.
MAX_TOKENS = 8_000_000
COUNT_WITHIN_S = 300.0
_SHARES = (0.25, 0.5, 0.75, 1.0)
DEPTHS = (0, 25, 50, 75, 100)


def context_suite_create(
    *,
    project: Project,
    name: str,
    version: ModelVersion | None = None,
    edition_kind: str = EditionKind.STANDARD,
    deployment: Deployment | None = None,
    kinds: Sequence[str] = ("retrieval",),
    lengths: Sequence[int] = (),
    depths: Sequence[int] = DEPTHS,
    per_cell: int = 4,
    seed: int = 0,
    by: Actor,
) -> SuiteVersion:
    """A suite, or its next version, with ``per_cell`` cases for each of ``kinds`` (names in
    ``domain.long_context.TASKS``), each length (tokens) and each depth (per cent).

    Without ``lengths`` four up to the model's context are chosen. Each case takes at most its
    length, and at most one sentence less; so nearly, where the target only reports what prompts took.
    Raises Refused where the target cannot count tokens or a length does not fit.
    """
    if (version is None) == (deployment is None):
        raise Refused("Choose one target: a version of yours, or an endpoint.", code="target_unclear")
    if any(row is not None and row.project_id != project.pk for row in (version, deployment)):
        raise Refused("The target belongs to another project.", code="target_foreign")
    asked = _kinds(kinds)
    _check_sizes(lengths, depths, per_cell, len(asked))
    try:
        with Listener(version=version, edition_kind=edition_kind, deployment=deployment) as model:
            model.end_s = time.monotonic() + COUNT_WITHIN_S
            counter = counter_of(model, lambda n: haystack(asked[0], "0", sentences=n, depth=0.0).prompt)
            least = max(counter.count(haystack(kind, "0", sentences=0, depth=0.0).prompt) for kind in asked)
            chosen = _lengths(lengths, least, counter.room)
            cells = len(asked) * len(set(depths)) * per_cell
            if len(chosen) * cells > MAX_CASES:
                raise Refused(f"A map holds at most {MAX_CASES} cases.", code="map_too_large")
            if sum(chosen) * cells > MAX_TOKENS:
                raise Refused(
                    f"These cases have {sum(chosen) * cells:,} tokens in all; a map holds at most "
                    f"{MAX_TOKENS:,}. Take fewer lengths, depths or cases per cell.",
                    code="map_too_large",
                )
            tasks = [
                _made(counter, kind, length, depth, number, seed)
                for kind in asked
                for length in chosen
                for depth in sorted(set(depths))
                for number in range(per_cell)
            ]
    except CannotAsk as problem:
        raise Refused(f"The target could not count tokens. {problem}", code="cannot_tokenize") from None
    suite = Suite.objects.filter(project=project, slug=suite_slug(name)).first()
    suite = suite or suite_create(
        project=project, name=name, description="Finding facts in filler text.", by=by
    )
    how = "" if counter.exact else ", lengths estimated from reported usage"
    note = f"{', '.join(map(str, chosen))} tokens, seed {seed}{how}"
    return suite_version_create(suite=suite, tasks=tasks, note=note, by=by)


def _kinds(kinds: Sequence[str]) -> list[str]:
    """In the order of the catalogue, each once."""
    unknown = [kind for kind in kinds if kind not in TASKS]
    if unknown or not kinds:
        given = f"“{unknown[0][:60]}” is not one." if unknown else "None was chosen."
        raise Refused(f"Choose what is asked for among {', '.join(TASKS)}. {given}", code="kind_unknown")
    return [kind for kind in TASKS if kind in kinds]


def _check_sizes(lengths: Sequence[int], depths: Sequence[int], per_cell: int, kinds: int) -> None:
    if not depths or any(not 0 <= depth <= 100 for depth in depths):
        raise Refused("Depths are percentages from 0 to 100.", code="depth_invalid")
    if not 1 <= per_cell <= 50:
        raise Refused("Choose 1 to 50 cases per cell.", code="per_cell_invalid")
    if any(length < 1 for length in lengths):
        raise Refused("A length must be a positive number of tokens.", code="length_invalid")
    if len(set(lengths)) * len(set(depths)) > MAX_CELLS:
        raise Refused(f"A map has at most {MAX_CELLS} cells.", code="map_too_large")
    if len(set(lengths)) * len(set(depths)) * kinds * per_cell > MAX_CASES:
        raise Refused(f"A map holds at most {MAX_CASES} cases.", code="map_too_large")


def _lengths(wanted: Sequence[int], least: int, room: int | None) -> list[int]:
    most = room - ANSWER_TOKENS if room is not None else None
    if wanted:
        for length in sorted(set(wanted)):
            if length < least:
                raise _short(least, length)
            if most is not None and room is not None and length > most:
                raise Refused(
                    f"{length:,} tokens do not fit: this model takes {room:,}, and {ANSWER_TOKENS} are "
                    "kept for the answer.",
                    code="length_long",
                    length=length,
                )
        return sorted(set(wanted))
    if most is None:
        raise Refused(
            "This target does not tell how much context it has. Give the lengths.", code="room_unknown"
        )
    if most < least:
        raise Refused("This model has no room for the facts and the question.", code="room_small")
    # Other names take a few tokens more or less.
    return sorted({max(min(least * 5 // 4, most), int(most * share) // 8 * 8) for share in _SHARES})


def _short(least: int, length: int) -> Refused:
    return Refused(
        f"The facts and the question alone take {least} tokens.", code="length_short", length=length
    )


def _made(counter: Counter, task: str, length: int, depth: int, number: int, seed: int) -> TaskSpec:
    name = f"{length}-{depth}-{number}"

    def make(sentences: int) -> Haystack:
        return haystack(task, f"{seed}:{task}:{name}", sentences=sentences, depth=depth / 100)

    try:
        filled = make(sentences_for(length, lambda n: make(n).prompt, counter.count))
    except TooShort as error:
        raise _short(error.least, length) from None
    return TaskSpec(
        id=f"context-{task}-{seed}-{name}",
        family=family_of(task),
        messages=(ChatMessage(role="user", content=filled.prompt),),
        verifier=VerifierSpec(kind="numeric"),
        reference=filled.answer,
        max_tokens=ANSWER_TOKENS,
        tags={"task": task, "length": length, "depth": depth},
    )
