"""Drawing tokens: processed log-probabilities and seeds that do not depend on the batch.

Each draw uses one number that is a hash of the request's seed and the token's index, so a
request gives the same tokens alone, in a crowd, or after it was interrupted and resumed.
Log-probabilities are of the distribution that was drawn from (temperature and top-p applied),
as vLLM's ``processed_logprobs``; at temperature 0 they are the model's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

TIE_GAP = 1e-4


@dataclass(frozen=True)
class Params:
    """How one request is sampled and when it stops. ``top`` = alternatives to report."""

    max_tokens: int
    temperature: float
    top_p: float = 1.0
    seed: int = 0
    stop_ids: frozenset[int] = frozenset()
    stop_texts: tuple[str, ...] = ()
    top: int = 0


@dataclass(frozen=True)
class Drawn:
    """One sampled token. ``top`` lists (token, logprob), best first; ``tie``: the two best
    were closer than 1e-4, so that rounding may decide between them."""

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...] = field(default=())
    tie: bool = False


def draw(logits: Tensor, params: Sequence[Params], indexes: Sequence[int]) -> list[Drawn]:
    """Sample one token for each row of ``logits`` [B, V]; ``indexes`` count a row's tokens."""
    temperatures = torch.tensor([p.temperature if p.temperature > 0 else 1.0 for p in params])
    scaled = logits / temperatures[:, None]
    for row, p in enumerate(params):
        if p.top_p < 1.0 and p.temperature > 0:
            scaled[row] = _nucleus(scaled[row], p.top_p)
    logprobs = torch.log_softmax(scaled, dim=-1)
    best = logprobs.topk(2, dim=-1)
    tokens = best.indices[:, 0].clone()
    sampled = [row for row, p in enumerate(params) if p.temperature > 0]
    if sampled:
        numbers = uniforms([params[row].seed for row in sampled], [indexes[row] for row in sampled])
        tokens[sampled] = _inverse(logprobs[sampled], numbers)
    chosen = logprobs.gather(1, tokens[:, None])[:, 0].tolist()
    gaps = (best.values[:, 0] - best.values[:, 1]).tolist()
    return [
        Drawn(token, logprob, _top(logprobs[row], p.top), p.temperature == 0 and gap < TIE_GAP)
        for row, (token, logprob, gap, p) in enumerate(
            zip(tokens.tolist(), chosen, gaps, params, strict=True)
        )
    ]


def uniforms(seeds: Sequence[int], indexes: Sequence[int]) -> np.ndarray:
    """One number in [0, 1) for each (seed, index): splitmix64 (Steele et al. 2014) twice."""
    mask = (1 << 64) - 1
    mixed = _mix(np.array([seed & mask for seed in seeds], dtype=np.uint64))
    mixed = _mix(mixed + np.array(indexes, dtype=np.uint64))
    numbers: np.ndarray = (mixed >> np.uint64(11)).astype(np.float64) / float(1 << 53)
    return numbers


def _mix(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return x


def _inverse(logprobs: Tensor, numbers: np.ndarray) -> Tensor:
    """Tokens at the given quantiles of each row's distribution, in order of token id."""
    cumulative = logprobs.double().exp().cumsum(dim=-1)
    quantiles = torch.from_numpy(numbers) * cumulative[:, -1]
    return torch.searchsorted(cumulative, quantiles[:, None], right=True)[:, 0].clamp_max(
        logprobs.shape[1] - 1
    )


def _nucleus(logits: Tensor, top_p: float) -> Tensor:
    """Keep the smallest set of best tokens whose mass reaches ``top_p``."""
    ordered, order = logits.softmax(-1).sort(descending=True)
    outside = ordered.cumsum(-1) - ordered >= top_p
    return logits.index_fill(0, order[outside], float("-inf"))


def _top(logprobs: Tensor, count: int) -> tuple[tuple[int, float], ...]:
    if not count:
        return ()
    best = logprobs.topk(count)
    return tuple(zip(best.indices.tolist(), best.values.tolist(), strict=True))
