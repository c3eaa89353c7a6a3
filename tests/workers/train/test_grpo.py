from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from domain.contracts.training import TrainConfig
from tests.workers.train.conftest import END
from workers.train.batch import Row
from workers.train.grpo import Diverged, Selection, select_rows, train_epochs
from workers.train.policy import Policy

CONFIG = TrainConfig(lora_r=4, lr=1e-2)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12))
def test_advantages_of_a_group_sum_to_zero(rewards: list[float]) -> None:
    chosen = select_rows(_group(rewards), CONFIG, policy_version=0)

    assert sum(sum(part) for part in chosen.advantages) == pytest.approx(0.0, abs=1e-9)


def test_a_missing_reward_is_excluded_from_the_baseline() -> None:
    """trl PR#5902: a None reward is neither 0 nor part of the mean."""
    chosen = select_rows(_group([1.0, None, 0.0, None]), CONFIG, policy_version=0)

    assert chosen.advantages == [[0.5, -0.5]]
    assert [row.sample for row in chosen.groups[0]] == [0, 2]
    assert chosen.left_out == {"rows_without_reward": 2}


def test_a_group_needs_two_scored_rows() -> None:
    chosen = select_rows(_group([1.0, None, None]), CONFIG, policy_version=0)

    assert chosen.groups == []
    assert chosen.left_out == {"rows_without_reward": 2, "groups_too_small": 1}


def test_a_group_without_variance_is_dropped() -> None:
    rows = [*_group([1.0, 1.0], "flat"), *_group([1.0, 0.0], "mixed")]

    chosen = select_rows(rows, CONFIG, policy_version=0)

    assert [group[0].group for group in chosen.groups] == ["mixed"]
    assert chosen.left_out == {"groups_without_variance": 1}


def test_advantages_can_be_divided_by_the_standard_deviation() -> None:
    config = CONFIG.model_copy(update={"scale_advantage": True})

    chosen = select_rows(_group([1.0, 0.0, 0.0, 1.0]), config, policy_version=0)

    assert np.std(chosen.advantages[0], ddof=1) == pytest.approx(1.0)


def test_rows_beyond_the_staleness_limit_are_dropped() -> None:
    rows = [*_group([1.0, 0.0], "old", version=3), *_group([1.0, 0.0], "new", version=4)]

    chosen = select_rows(rows, CONFIG, policy_version=5)

    assert [group[0].group for group in chosen.groups] == ["new"]
    assert chosen.left_out == {"rows_stale": 2}


def test_cut_off_rows_leave_numerator_and_denominator() -> None:
    """trl#6369: the loss of a batch equals that of the batch without its truncated rows."""
    rows = _group([1.0, 0.0, 0.0])
    rows[2] = _row(2, 0.0, finish_reason="length", tokens=(30, 31, 32, 33))

    chosen = select_rows(rows, CONFIG, policy_version=0)

    assert [row.sample for row in chosen.groups[0]] == [0, 1]
    assert chosen.left_out == {"rows_cut_off": 1}
    assert chosen.advantages[0] == pytest.approx([2 / 3, -1 / 3])


def test_all_rows_cut_off_leaves_nothing_and_says_why() -> None:
    rows = [_row(i, float(i), finish_reason="length") for i in range(2)]

    chosen = select_rows(rows, CONFIG, policy_version=0)

    assert chosen.groups == []
    assert chosen.reason == "nothing to train on: 2 rows cut off"


def test_overlong_shaping_needs_its_limits() -> None:
    with pytest.raises(ValueError, match="overlong_cache"):
        TrainConfig(overlong="shape", overlong_limit=4, overlong_cache=8)


def test_overlong_answers_can_be_punished_linearly_instead() -> None:
    config = CONFIG.model_copy(update={"overlong": "shape", "overlong_limit": 8, "overlong_cache": 4})
    rows = [_row(0, 1.0, tokens=(10,) * 4), _row(1, 1.0, tokens=(10,) * 6), _row(2, 1.0, tokens=(10,) * 9)]

    chosen = select_rows(rows, config, policy_version=0)

    # rewards 1, 0.5 and 0
    assert chosen.advantages[0] == pytest.approx([0.5, 0.0, -0.5])


def test_a_long_family_weighs_no_more_than_a_short_one(tiny_base: Path) -> None:
    short = [_row(i, float(i == 0), group="s", family="short", tokens=(10 + i, END)) for i in range(2)]
    long = [_row(i, float(i == 0), group="l", family="long", tokens=(10 + i, *[20] * 30)) for i in range(2)]

    losses = {}
    for name, rows in {"short": short, "long": long, "both": [*short, *long]}.items():
        losses[name] = _gradient(tiny_base, rows)

    expected = [(a + b) / 2 for a, b in zip(losses["short"], losses["long"], strict=True)]
    torch.testing.assert_close(losses["both"], expected, atol=1e-6, rtol=1e-4)


def test_family_weights_change_the_mixture(tiny_base: Path) -> None:
    a = [_row(i, float(i == 0), group="a", family="a", tokens=(10 + i, END)) for i in range(2)]
    b = [_row(i, float(i == 0), group="b", family="b", tokens=(30 + i, END)) for i in range(2)]

    mixed = _gradient(tiny_base, [*a, *b], family_weights={"a": 3.0})

    parts = zip(_gradient(tiny_base, a), _gradient(tiny_base, b), strict=True)
    torch.testing.assert_close(mixed, [0.75 * x + 0.25 * y for x, y in parts], atol=1e-6, rtol=1e-4)


def test_small_packs_give_the_gradient_of_large_ones(tiny_base: Path) -> None:
    rows = _group([1.0, 0.0, 0.0, 1.0, 0.0])

    torch.testing.assert_close(
        _gradient(tiny_base, rows, pack_tokens=8), _gradient(tiny_base, rows), atol=1e-6, rtol=1e-4
    )


@pytest.mark.parametrize("algorithm", ["grpo", "cispo"])
def test_training_makes_the_rewarded_answer_likelier(tiny_base: Path, algorithm: str) -> None:
    policy, rows = Policy(tiny_base, CONFIG), _group([1.0, 0.0])
    config = CONFIG.model_copy(update={"algorithm": algorithm})
    before = _gap(policy, rows)

    for step in range(8):
        _train(policy, _on_policy(policy, rows), config, steps_done=step)

    assert _gap(policy, rows) > before + 0.5


def test_first_step_ratio_is_one_at_a_temperature_below_one(tiny_base: Path) -> None:
    """trl#4159: log-probabilities are taken at the temperature that tokens were drawn at."""
    policy = Policy(tiny_base, CONFIG)
    config = CONFIG.model_copy(update={"temperature": 0.7, "epochs": 1, "groups_per_step": 1})
    rows = _on_policy(policy, [*_group([1.0, 0.0], "a"), *_group([0.0, 1.0], "b")], temperature=0.7)

    metrics = _train(policy, rows[:2], config)

    assert metrics["ratio_mean"] == pytest.approx(1.0, abs=1e-6)
    assert metrics["importance_mean"] == pytest.approx(1.0, abs=1e-4)
    assert metrics["engine_kl"] == pytest.approx(0.0, abs=1e-6)


def test_later_steps_on_the_same_rows_are_measured_against_the_first(tiny_base: Path) -> None:
    policy = Policy(tiny_base, CONFIG)
    config = CONFIG.model_copy(update={"epochs": 4})

    metrics = _train(policy, _on_policy(policy, _group([1.0, 0.0, 0.0])), config)

    assert metrics["ratio_mean"] != pytest.approx(1.0, abs=1e-4)
    assert 0.0 <= metrics["clip_fraction"] <= 1.0


def test_kl_pulls_back_to_the_reference(tiny_base: Path) -> None:
    free, held = Policy(tiny_base, CONFIG), Policy(tiny_base, CONFIG)
    strong = CONFIG.model_copy(update={"kl_beta": 5.0})
    rows = _on_policy(free, _group([1.0, 0.0]))

    for step in range(6):
        _train(free, rows, CONFIG, steps_done=step)
        metrics = _train(held, rows, strong, steps_done=step)

    assert metrics["kl"] > 0.0
    assert abs(_gap(held, rows) - _gap(Policy(tiny_base, CONFIG), rows)) < abs(
        _gap(free, rows) - _gap(Policy(tiny_base, CONFIG), rows)
    )


@pytest.mark.parametrize(
    ("logprob", "what"), [(np.nan, "the loss is nan"), (-np.inf, "gradient's norm is inf")]
)
def test_what_is_not_finite_stops_before_the_weights_change(
    tiny_base: Path, logprob: float, what: str
) -> None:
    policy = Policy(tiny_base, CONFIG)
    before = policy.adapter_weights()
    rows = _group([1.0, 0.0])
    rows[0].logprobs[:] = logprob

    with pytest.raises(Diverged, match=what) as caught:
        _train(policy, rows, CONFIG.model_copy(update={"importance_cap": 1e30}))

    assert policy.adapter_weights() == before
    assert list(caught.value.rows) == rows


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ({}, [0.01, 0.01, 0.01, 0.01]),
        ({"warmup_steps": 4}, [0.0025, 0.005, 0.0075, 0.01]),
        ({"decay_steps": 2}, [0.01, 0.005, 0.0005, 0.0005]),
        ({"warmup_steps": 2, "decay_steps": 4}, [0.005, 0.0075, 0.005, 0.0025]),
    ],
)
def test_the_rate_follows_its_schedule(
    tiny_base: Path, schedule: dict[str, int], expected: list[float]
) -> None:
    config = CONFIG.model_copy(update=schedule)
    policy = Policy(tiny_base, config)
    optimizer, selection = _optimizer(policy), select_rows(_group([1.0, 0.0]), config, policy_version=0)

    rates = []
    for done in range(4):
        train_epochs(policy, optimizer, selection, config, steps_done=done)
        rates.append(optimizer.param_groups[0]["lr"])

    assert rates == pytest.approx(expected)


def _row(
    sample: int,
    reward: float | None,
    *,
    group: str = "g",
    family: str = "f",
    tokens: Sequence[int] | None = None,
    finish_reason: str = "stop",
    version: int = 0,
) -> Row:
    tokens = (10 + sample, 20, END) if tokens is None else tokens
    return Row(
        task_id=group,
        family=family,
        group=group,
        sample=sample,
        policy_version=version,
        reward=reward,
        state="error" if reward is None else "failed",
        finish_reason=finish_reason,
        prompt_ids=np.array([1, 7, 8]),
        token_ids=np.array(tokens),
        logprobs=np.full(len(tokens), -2.0, dtype=np.float32),
        mask=np.ones(len(tokens), dtype=bool),
    )


def _group(rewards: Sequence[float | None], name: str = "g", version: int = 0) -> list[Row]:
    return [_row(i, reward, group=name, version=version) for i, reward in enumerate(rewards)]


def _optimizer(policy: Policy) -> torch.optim.Optimizer:
    return torch.optim.AdamW(policy.parameters().values(), lr=CONFIG.lr, weight_decay=0.0)


def _train(policy: Policy, rows: list[Row], config: TrainConfig, steps_done: int = 0) -> dict[str, float]:
    selection = select_rows(rows, config, policy_version=0)
    return train_epochs(policy, _optimizer(policy), selection, config, steps_done=steps_done)[0]


def _gradient(base: Path, rows: list[Row], **changes: object) -> list[torch.Tensor]:
    """The gradient of one step on ``rows``, read off plain gradient descent with rate 1."""
    config = CONFIG.model_copy(update={"lr": 1.0, "max_grad_norm": 1e9} | changes)
    policy = Policy(base, config)
    _shake(policy)
    before = [value.detach().clone() for value in policy.parameters().values()]
    optimizer = torch.optim.SGD(policy.parameters().values(), lr=1.0)
    selection: Selection = select_rows(_on_policy(policy, rows), config, policy_version=0)
    train_epochs(policy, optimizer, selection, config, steps_done=0)
    return [a - b.detach() for a, b in zip(before, policy.parameters().values(), strict=True)]


def _shake(policy: Policy) -> None:
    generator = torch.Generator().manual_seed(3)
    for value in policy.parameters().values():
        value.data += 0.1 * torch.randn(value.shape, generator=generator)


def _on_policy(policy: Policy, rows: list[Row], temperature: float = 1.0) -> list[Row]:
    """The rows with the log-probabilities that an engine with this policy would have returned."""
    return [_scored(policy, row, temperature) for row in rows]


def _scored(policy: Policy, row: Row, temperature: float) -> Row:
    return Row(**{**vars(row), "logprobs": _logp(policy, row, temperature).numpy()})


def _logp(policy: Policy, row: Row, temperature: float = 1.0) -> torch.Tensor:
    network: Callable[..., torch.Tensor] = policy.model
    ids = torch.from_numpy(np.concatenate([row.prompt_ids, row.token_ids]))[None]
    with torch.no_grad():
        scores = torch.log_softmax(network(input_ids=ids).logits[0, :-1] / temperature, -1)
    return scores.gather(-1, ids[0, 1:, None])[len(row.prompt_ids) - 1 :, 0]


def _gap(policy: Policy, rows: list[Row]) -> float:
    """How much likelier the first row's answer is than the second's, in nats."""
    return float(_logp(policy, rows[0]).sum() - _logp(policy, rows[1]).sum())
