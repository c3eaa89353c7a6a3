import math

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.engine.sampling import Params, draw, uniforms


def _params(**changes: object) -> Params:
    return Params(**({"max_tokens": 8, "temperature": 1.0} | changes))  # type: ignore[arg-type]


def _frequencies(logits: torch.Tensor, params: list[Params]) -> torch.Tensor:
    drawn = draw(logits.expand(len(params), -1), params, [0] * len(params))
    return torch.bincount(torch.tensor([d.token for d in drawn]), minlength=logits.shape[-1]) / len(params)


def test_tokens_are_drawn_as_often_as_their_probability_says() -> None:
    logits = torch.tensor([0.0, 1.0, 2.0, -1.0])

    found = _frequencies(logits, [_params(seed=seed, temperature=0.7) for seed in range(20_000)])

    assert torch.allclose(found, (logits / 0.7).softmax(0), atol=0.012)


def test_top_p_draws_only_from_the_nucleus_and_its_logprobs_sum_to_one() -> None:
    logits = torch.tensor([3.0, 2.9, 0.0, -1.0])

    drawn = draw(logits.expand(500, -1), [_params(seed=s, top_p=0.6) for s in range(500)], [0] * 500)

    assert {d.token for d in drawn} == {0, 1}
    assert math.isclose(
        sum(math.exp(v) for v in {d.token: d.logprob for d in drawn}.values()), 1.0, abs_tol=1e-5
    )


def test_temperature_zero_takes_the_best_and_reports_the_models_own_logprob() -> None:
    logits = torch.tensor([[0.0, 2.0, 1.0]])

    (drawn,) = draw(logits, [_params(temperature=0.0, top=2)], [0])

    assert drawn.token == 1
    assert math.isclose(drawn.logprob, float(logits.log_softmax(-1)[0, 1]), abs_tol=1e-6)
    assert [token for token, _ in drawn.top] == [1, 2]


def test_two_best_tokens_that_rounding_may_swap_are_a_tie() -> None:
    logits = torch.tensor([[1.0, 1.00001, 0.0], [1.0, 1.1, 0.0]])

    close, clear = draw(logits, [_params(temperature=0.0)] * 2, [0, 0])

    assert (close.tie, clear.tie) == (True, False)


def test_neighbouring_seeds_and_indexes_are_unrelated() -> None:
    by_seed = uniforms(list(range(5000)), [0] * 5000)
    by_index = uniforms([1] * 5000, list(range(5000)))

    for numbers in (by_seed, by_index):
        assert abs(numbers.mean() - 0.5) < 0.02
        assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.05
    assert abs(np.corrcoef(by_seed, by_index)[0, 1]) < 0.05


@settings(deadline=None)
@given(st.integers(min_value=-(2**63), max_value=2**63 - 1), st.integers(min_value=0, max_value=10**6))
def test_a_draws_number_is_fixed_by_seed_and_index(seed: int, index: int) -> None:
    (number,) = uniforms([seed], [index])

    assert 0.0 <= number < 1.0
    assert uniforms([5, seed], [0, index])[1] == number
