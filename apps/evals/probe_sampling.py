"""What a probe asks, when its reference is taken and in a round. Knows the target only as a ``Listener``.

A round is 20 answers and 24 first tokens with log-probabilities, or 80 border samples where the target
shows none: 44 or 100 requests. A reference is several passes of the same, and what it takes to choose
prompts; border inputs are in ``probe_border``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from apps.evals.asking import Asked, CannotAsk, Listener
from apps.evals.dialect import REFUSALS, TOP_CHOICES, Dialect, variants
from apps.evals.probe_border import border_part, counts_of, in_turn
from apps.evals.probe_prompts import SHORT_PROMPTS
from apps.evals.volley import Volley
from domain.drift import (
    Answer,
    Round,
    answers_reference,
    identity_reference,
    informative_prompts,
    logprobs_reference,
)

PASSES = 3
LOGPROB_PROMPTS, LOGPROB_EACH = 8, 3
LOGPROB_PASSES = 2  # one request at a time, and as many together
NO_LOGPROBS = "It shows no log-probabilities, so first tokens of border inputs stand in for them."


class Taken(NamedTuple):
    """``reference`` is None where it could not be taken; ``problem`` says why."""

    reference: dict[str, Any] | None
    problem: str


def take_round(model: Listener, reference: Mapping[str, Any], volley: Volley) -> Round:
    """Ask one round. What was not answered is missing in it, see ``volley.problem``."""
    model.dialect = Dialect.from_json(reference["dialect"])
    answers = _answers(model, reference["prompts"], volley)
    samples: list[list[dict[str, float]]] = []
    counts: list[dict[str, int]] = []
    if reference.get("logprobs"):
        tracked = reference["logprobs"]
        samples = _samples(model, tracked["prompts"], tracked["each"], volley)
    if reference.get("border"):
        border = reference["border"]
        counts = counts_of(model, border["prompts"], border["each"], border["temperature"], volley)
    return Round(answers, samples, counts)


def take_reference(
    model: Listener, prompts: Sequence[str], volley: Volley, *, tracked: Sequence[str] = ()
) -> Taken:
    """Learn how the target wants to be asked, choose prompts, and measure its own noise.

    ``tracked`` are the prompts whose log-probabilities are followed, where they need not be chosen.
    """
    try:
        model.dialect = _dialect(model, prompts[0])
    except CannotAsk as error:
        return Taken(None, str(error))
    passes: list[list[Answer]] = []
    for _ in range(PASSES):
        answers = _answers(model, prompts, volley)
        if any(answer is None for answer in answers):
            return Taken(None, volley.problem)
        passes.append([answer for answer in answers if answer is not None])
    reference: dict[str, Any] = {
        "format": 2,
        "prompts": list(prompts),
        "dialect": model.dialect.as_json(),
        "identity": identity_reference(passes),
        "answers": answers_reference(passes),
        "logprobs": _logprobs_part(model, prompts, tracked, volley) if model.dialect.top else None,
        "notes": [],
    }
    if model.dialect.top and reference["logprobs"] is None:
        return Taken(None, volley.problem or "Not every log-probability came.")
    if not model.dialect.top:
        border = border_part(model, prompts, volley)
        if volley.over:
            return Taken(None, volley.problem)
        reference["border"], reference["notes"] = border.part, [NO_LOGPROBS, *border.notes]
    if not model.dialect.temperature:
        reference["notes"].append("It refuses a temperature, so its answers are drawn at its own.")
    return Taken(reference, "")


def requests_of(reference: Mapping[str, Any]) -> int:
    """How many requests a round against ``reference`` takes."""
    count = len(reference["prompts"])
    if reference.get("logprobs"):
        count += reference["logprobs"]["each"] * len(reference["logprobs"]["prompts"])
    if reference.get("border"):
        count += reference["border"]["each"] * len(reference["border"]["prompts"])
    return count


def candidates_of(prompts: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*prompts, *SHORT_PROMPTS]))


def _dialect(model: Listener, prompt: str) -> Dialect:
    """The first way to ask that is not refused, with as many log-probabilities as are shown."""
    spoken = None
    problem: CannotAsk | None = None
    for variant in variants():
        try:
            model.ask(prompt, max_tokens=1, dialect=variant)
        except CannotAsk as error:
            if error.status not in REFUSALS:
                raise
            problem = error
        else:
            spoken = variant
            break
    if spoken is None:
        assert problem is not None
        raise problem
    model.dialect = spoken
    for top in TOP_CHOICES:
        try:
            if model.first_token(prompt, top=top).sample is not None:
                return replace(spoken, top=top)
        except CannotAsk as error:
            if error.status not in REFUSALS:
                raise
    return spoken


def _answers(model: Listener, prompts: Sequence[str], volley: Volley) -> list[Answer | None]:
    asked = volley.ask([partial(model.ask, prompt) for prompt in prompts])
    return [_answer(answer) if answer is not None else None for answer in asked]


def _answer(asked: Asked) -> Answer:
    return Answer(*asked)


def _logprobs_part(
    model: Listener, prompts: Sequence[str], tracked: Sequence[str], volley: Volley
) -> dict[str, Any] | None:
    chosen = list(tracked) or _chosen(model, prompts, volley)
    together = [_samples(model, chosen, LOGPROB_EACH, volley) for _ in range(LOGPROB_PASSES)]
    alone = [_samples(model, chosen, LOGPROB_EACH, volley, one_by_one=True) for _ in range(LOGPROB_PASSES)]
    if not chosen or any(len(rows) < LOGPROB_EACH for one in (*alone, *together) for rows in one):
        return None
    return {**logprobs_reference(chosen, alone, together), "each": LOGPROB_EACH}


def _chosen(model: Listener, prompts: Sequence[str], volley: Volley) -> list[str]:
    candidates = candidates_of(prompts)[: len(prompts) + len(SHORT_PROMPTS) // 4]
    tried = dict(zip(candidates, _samples(model, candidates, 1, volley), strict=True))
    known = {prompt: samples for prompt, samples in tried.items() if samples}
    return informative_prompts(known, LOGPROB_PROMPTS)


def _samples(
    model: Listener, prompts: Sequence[str], each: int, volley: Volley, *, one_by_one: bool = False
) -> list[list[dict[str, float]]]:
    """``each`` samples of every prompt, prompts in turn so that they share what a moment brings."""
    question = partial(model.first_token, top=model.dialect.top)
    asked = in_turn(prompts, each, question, volley, one_by_one=one_by_one)
    return [[first.sample for first in row if first.sample is not None] for row in asked]
