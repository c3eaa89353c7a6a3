"""How many sentences of filler fill a length: counted by the target's own tokenizer.

An engine that speaks vLLM's API counts by ``/tokenize``. An endpoint that does not is asked for one
token after two short texts; the tokens that it reports for them give its tokens per character, and
longer texts are estimated by those.
"""

from collections.abc import Callable
from typing import NamedTuple

from apps.evals.asking import CannotAsk, Listener

_MOST_COUNTS = 60  # of one text; a handful is enough where counts are honest
_SAMPLE = 150  # sentences of the longer text that an endpoint is asked about, about 2,000 tokens


class Counter(NamedTuple):
    """``room`` is the longest sequence that the model takes, None where it is not told. ``exact``: by the
    target's tokenizer, not estimated."""

    count: Callable[[str], int]
    room: int | None
    exact: bool


class TooShort(Exception):
    """Without any filler the text takes ``least`` tokens, which is more than it may."""

    def __init__(self, least: int) -> None:
        super().__init__(f"{least} tokens")
        self.least = least


def counter_of(model: Listener, make: Callable[[int], str]) -> Counter:
    """``make(sentences)`` is a text such as will be counted. Raises CannotAsk."""
    try:
        told = model.tokens(make(0))
    except CannotAsk as problem:
        return _estimating(model, make, problem)
    return Counter(lambda text: model.tokens(text).used, told.room, exact=True)


def _estimating(model: Listener, make: Callable[[int], str], problem: CannotAsk) -> Counter:
    short, long = make(0), make(_SAMPLE)
    few, many = (model.ask(text, max_tokens=1).prompt_tokens for text in (short, long))
    if few is None or many is None or many <= few:
        raise CannotAsk(f"{problem} Nor does it report how many tokens a prompt has.")
    each = (many - few) / (len(long) - len(short))
    return Counter(lambda text: round(few + each * (len(text) - len(short))), None, exact=False)


def sentences_for(length: int, make: Callable[[int], str], count: Callable[[str], int]) -> int:
    """The most sentences with which ``make`` takes at most ``length`` tokens. Raises TooShort.

    A text with one sentence more takes at least as many tokens; raises CannotAsk where the counts deny
    that. Guesses by the tokens per sentence seen so far, so a handful of counts is enough at any length.
    """
    base = count(make(0))
    if base > length:
        raise TooShort(base)
    most = length - base + 1  # every sentence has some words, so it takes a token at least
    low, high = 0, None
    used, guess = base, max(1, (length - base) // 10)
    for _ in range(_MOST_COUNTS):
        if high is not None and high - low <= 1:
            break
        if guess > most:
            raise CannotAsk("It counts fewer tokens in a text than the text has sentences.")
        found = count(make(guess))
        if found <= length:
            low, used = guess, found
        else:
            high = guess
        each = max(1.0, (found - base) / guess)
        guess = low + max(1, int((length - used) / each))
        if high is not None:
            guess = min(guess, high - 1)
            if guess <= low:
                break
    else:
        raise CannotAsk("Its counts of tokens do not grow with the text.")
    return low
