"""Tokens as a person reads them."""

import math
from pathlib import Path

import pytest

from apps.training.tokens import tokens_of
from domain.contracts import Step

WEIGHTS = Path(__file__).parents[3] / "models" / "pocket" / "weights"


def step(*tokens: int, probability: float = 0.5, mask: int = 1) -> Step:
    return Step(token_ids=tokens, logprobs=(math.log(probability),) * len(tokens), mask=(mask,) * len(tokens))


@pytest.mark.parametrize(
    ("probability", "level"), [(0.99, 0), (0.9, 0), (0.7, 1), (0.5, 2), (0.2, 3), (0.01, 4)]
)
def test_the_mark_grows_with_surprise(probability: float, level: int) -> None:
    (token,) = tokens_of(step(7, probability=probability), "")

    assert token.level == level
    assert token.probability == pytest.approx(probability)


def test_what_the_model_saw_has_no_level() -> None:
    assert tokens_of(step(7, mask=0, probability=1.0), "")[0].level is None


def test_without_a_tokenizer_a_token_is_its_number(tmp_path: Path) -> None:
    assert tokens_of(step(7), str(tmp_path))[0].text == "7"


def test_special_tokens_are_shown() -> None:
    texts = [token.text for token in tokens_of(step(0, 1, 2, 40), str(WEIGHTS))]

    assert any(text.startswith("<") for text in texts)
    assert all(texts)


def test_a_long_answer_is_cut() -> None:
    assert len(tokens_of(step(*range(50)), "", limit=10)) == 10
