"""Border inputs of a probe: prompts whose first token is nearly a coin flip, searched for and measured.

How much is asked fits into the time and the rate that the target leaves: fewer candidates and fewer
passes where requests are limited, and no border inputs at all where even those would not fit.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from apps.evals.asking import First, Listener
from apps.evals.probe_prompts import border_candidates
from apps.evals.volley import Volley
from domain.drift import border_reference, mixed_prompts, steadiest

MOST_REQUESTS, BORDER_REQUESTS = 100, 80  # of a round; of them for border inputs
FEWEST_REQUESTS = 30
ROUND_MINUTES = 2.5  # in which a round's requests must fit into a limit per minute
BORDER_PROMPTS, FEWEST_BORDER = 8, 3
ALONE, TOGETHER = 2, 6  # passes of the reference, one request at a time and several
# Low first: near a tie a change of the logits by a few temperatures turns an answer over, but the lower
# the temperature the fewer prompts are near one.
TEMPERATURES = (0.05, 0.3, 1.0)
CHUNK, SEARCH_SAMPLES = 50, 3
NARROW_PROMPTS, NARROW_SAMPLES, STEADY_PROMPTS = 30, 8, 12
WARM = "Border inputs are asked at temperature {}: there only large changes show."
RESERVE = 1.3  # of the requests that are still to come, against a target that becomes slower


class Border(NamedTuple):
    """``part`` of a reference, None where there is none; ``notes`` say why, or what it cannot see."""

    part: dict[str, Any] | None
    notes: list[str]


class Sizes(NamedTuple):
    """Requests of a round, passes of the reference, and the requests that follow the search."""

    narrowed: int
    budget: int
    alone: int
    together: int
    later: int


def border_part(model: Listener, prompts: Sequence[str], volley: Volley) -> Border:
    """Search at the lowest temperature that has border inputs, then measure them from fresh samples:
    those that chose them are biased to balance."""
    budget = min(BORDER_REQUESTS, MOST_REQUESTS - len(prompts))
    if volley.per_minute is not None:
        budget = min(budget, int(ROUND_MINUTES * volley.per_minute) - len(prompts))
    sizes = sizes_for(volley.room(), budget, volley.parallel) if budget >= FEWEST_REQUESTS else None
    if sizes is None:
        return Border(None, ["Its limits leave no room for border inputs, so only its answers are compared."])
    candidates = border_candidates(prompts)
    for temperature in TEMPERATURES if model.dialect.temperature else (1.0,):
        chosen = _searched(model, candidates, temperature, sizes, volley)
        if len(chosen) >= FEWEST_BORDER or volley.over:
            break
    if len(chosen) < FEWEST_BORDER:
        return Border(
            None, ["No prompts near a coin flip were found, so only its short answers are compared."]
        )
    part = measured(model, chosen, temperature, sizes, volley)
    if part is None:
        return Border(None, ["Not every border input was answered, so only its short answers are compared."])
    return Border(part, [WARM.format(temperature)] if temperature > TEMPERATURES[0] else [])


def sizes_for(room: int, budget: int, parallel: int) -> Sizes | None:
    """What fits into ``room`` requests; None where not even a short reference does."""
    for narrowed, alone, together in ((NARROW_PROMPTS, ALONE, TOGETHER), (20, 1, 3), (6, 0, 2)):
        steady = min(STEADY_PROMPTS, narrowed)
        longest = budget * steady // BORDER_PROMPTS  # a pass; one asked alone takes as long as several
        later = narrowed * NARROW_SAMPLES + longest * (together + alone * parallel)
        if room >= RESERVE * later + CHUNK * SEARCH_SAMPLES:
            return Sizes(narrowed, budget, alone, together, later)
    return None


def measured(
    model: Listener, chosen: Sequence[str], temperature: float, sizes: Sizes, volley: Volley
) -> dict[str, Any] | None:
    """The reference of ``chosen`` prompts, of which the steadiest are kept; None where answers miss."""
    each = sizes.budget // min(BORDER_PROMPTS, len(chosen))
    ask = partial(counts_of, model, chosen, each, temperature, volley)
    together = [ask() for _ in range(sizes.together)]
    alone = [ask(one_by_one=True) for _ in range(sizes.alone)]
    if any(not counts for one in (*together, *alone) for counts in one):
        return None
    kept = steadiest(alone or together[:1], together if alone else together[1:], BORDER_PROMPTS)
    passes = [[one[index] for index in kept] for one in (*alone, *together)]
    part = border_reference([chosen[index] for index in kept], passes)
    return {**part, "each": each, "temperature": temperature}


def counts_of(
    model: Listener,
    prompts: Sequence[str],
    each: int,
    temperature: float,
    volley: Volley,
    *,
    one_by_one: bool = False,
) -> list[dict[str, int]]:
    """How often each prompt was answered with which first token."""
    question = partial(model.first_token, temperature=temperature)
    asked = in_turn(prompts, each, question, volley, one_by_one=one_by_one)
    return [dict(Counter(first.token for first in row)) for row in asked]


def in_turn(
    prompts: Sequence[str],
    each: int,
    question: Callable[[str], First],
    volley: Volley,
    *,
    one_by_one: bool = False,
) -> list[list[First]]:
    """``each`` answers of every prompt, prompts in turn so that they share what a moment brings."""
    order = [index for _ in range(each) for index in range(len(prompts))]
    answers = volley.ask([partial(question, prompts[index]) for index in order], one_by_one=one_by_one)
    rows: list[list[First]] = [[] for _ in prompts]
    for index, answer in zip(order, answers, strict=True):
        if answer is not None:
            rows[index].append(answer)
    return rows


def _searched(
    model: Listener, candidates: Sequence[str], temperature: float, sizes: Sizes, volley: Volley
) -> list[str]:
    """The most balanced of ``candidates``, asked chunk by chunk until enough of them are mixed."""
    found: dict[str, dict[str, int]] = {}
    for start in range(0, len(candidates), CHUNK):
        chunk = candidates[start : start + CHUNK]
        counts = counts_of(model, chunk, SEARCH_SAMPLES, temperature, volley)
        found |= dict(zip(chunk, counts, strict=True))
        enough = len(mixed_prompts(found, sizes.narrowed)) == sizes.narrowed
        if enough or volley.over or volley.room() < RESERVE * sizes.later + CHUNK * SEARCH_SAMPLES:
            break
    mixed = mixed_prompts(found, sizes.narrowed)
    narrowed = counts_of(model, mixed, NARROW_SAMPLES, temperature, volley)
    return mixed_prompts(dict(zip(mixed, narrowed, strict=True)), STEADY_PROMPTS)
