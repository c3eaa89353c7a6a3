"""A trajectory's tokens as a person reads them: text, probability, who wrote it."""

import math
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tokenizers import Tokenizer

from domain.contracts import Step

SHOWN = 2000
# Shares of probability at which the marks get heavier.
_LEVELS = (0.9, 0.6, 0.3, 0.1)
LEGEND = [(0, "90 % or more"), (1, "60 %"), (2, "30 %"), (3, "10 %"), (4, "less")]


class Token(NamedTuple):
    """``level`` 0 (expected) to 4 (surprising); None for a token that the policy did not sample."""

    text: str
    id: int
    logprob: float
    probability: float
    level: int | None


def tokens_of(step: Step, tokenizer_path: str, limit: int = SHOWN) -> list[Token]:
    """At most ``limit`` tokens; without the tokenizer's file a token's text is its number."""
    tokenizer = _tokenizer(tokenizer_path)
    rows = zip(step.token_ids, step.logprobs, step.mask, strict=True)
    return [
        Token(
            _text(tokenizer, token),
            token,
            logprob,
            math.exp(min(logprob, 0.0)),
            _level(logprob) if mask else None,
        )
        for token, logprob, mask in list(rows)[:limit]
    ]


def _level(logprob: float) -> int:
    return sum(math.exp(logprob) < share for share in _LEVELS)


def _text(tokenizer: Tokenizer | None, token: int) -> str:
    if tokenizer is None:
        return str(token)
    return str(tokenizer.decode([token], skip_special_tokens=False)) or str(token)


@lru_cache(maxsize=4)
def _tokenizer(folder: str) -> Tokenizer | None:
    path = Path(folder) / "tokenizer.json"
    return Tokenizer.from_file(str(path)) if path.is_file() else None
