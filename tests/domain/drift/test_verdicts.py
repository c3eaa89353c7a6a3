"""One round in one word, two rounds in a row, and how often that goes wrong."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.drift import Answer, Round, alarming, alarms_in, answers_reference, identity_reference, read_round
from domain.drift.false_alarms import most_alarms, quarter_of, upper_rate

N = 20
verdicts = st.lists(st.sampled_from(["flagged", "unchanged", "partial", "unmeasured"]), max_size=30)


def answers(text: str = "same") -> list[Answer]:
    return [Answer(f"{text} {number}", "m", "f", 7) for number in range(N)]


def reference_of(rounds: list[Round]) -> dict[str, object]:
    passes = [list(found.answers) for found in rounds]
    return {
        "identity": identity_reference(passes),  # type: ignore[arg-type]
        "answers": answers_reference(passes),  # type: ignore[arg-type]
        "border": {"counts": [{"a": 20, "b": 20}] * 5, "each": 10},
    }


REFERENCE = reference_of([Round(answers())] * 3)
CALM = [{"a": 5, "b": 5}] * 5
GONE = [{"a": 10}] * 5


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (Round(answers(), (), CALM), "unchanged"),
        (Round(answers(), (), GONE), "flagged"),
        (Round(answers("other"), (), CALM), "flagged"),
        (Round(answers("other"), (), [{}] * 5), "flagged"),
        (Round(answers(), (), [{}] * 5), "partial"),
        (Round([None] * N, (), CALM), "partial"),
        (Round([None] * N, (), [{}] * 5), "unmeasured"),
        (Round([*answers()[:3], *[None] * 17], (), [{}] * 5), "unmeasured"),
    ],
)
def test_a_round_in_one_word(found: Round, verdict: str) -> None:
    assert read_round(REFERENCE, found, {}, np.random.default_rng(1)).verdict == verdict


def test_every_reason_of_every_signal_is_told() -> None:
    reading = read_round(REFERENCE, Round(answers("x"), (), GONE), {}, np.random.default_rng(1))

    assert len(reading.reasons) == 2


@pytest.mark.parametrize(
    ("newest_first", "expected"),
    [
        (["flagged", "flagged"], True),
        (["flagged"], False),
        (["flagged", "unchanged", "flagged"], False),
        (["flagged", "unmeasured", "partial", "flagged"], True),
        (["unmeasured", "flagged", "flagged"], True),
        (["unchanged", "flagged", "flagged"], False),
        (["flagged", "reference", "flagged"], False),
        ([], False),
    ],
)
def test_two_rounds_in_a_row_that_say_something(newest_first: list[str], expected: bool) -> None:
    assert alarming(newest_first) is expected


@given(verdicts)
def test_alarms_begin_where_the_last_two_telling_rounds_are_flagged(found: list[str]) -> None:
    begun, before = 0, False
    for index in range(len(found)):
        now = alarming(found[index::-1])
        begun += now and not before
        before = now

    assert alarms_in(found) == begun


def test_a_replayed_quarter_counts_what_noise_does() -> None:
    rng = np.random.default_rng(5)

    def recorded() -> Round:
        rows = [row._replace(text="odd") if rng.random() < 0.1 else row for row in answers()]
        flips = [int(heads) for heads in rng.binomial(10, 0.5, size=5)]
        return Round(rows, (), [{"a": heads, "b": 10 - heads} for heads in flips])

    references = [reference_of([recorded() for _ in range(3)]) for _ in range(3)]

    quarter = quarter_of(references, [recorded() for _ in range(60)], rng, length=60, block=2)

    assert quarter.rounds == 60
    assert quarter.flags <= 3
    assert quarter.alarms == 0


def test_two_tests_at_four_rounds_a_day_make_fewer_than_one_alarm_in_90_days() -> None:
    assert most_alarms(86_400 / 4, 2) == pytest.approx(0.36)


@pytest.mark.parametrize(
    ("events", "n", "high"), [(0, 59, 0.0495), (0, 236, 0.0126), (1, 40, 0.1132), (5, 5, 1.0)]
)
def test_a_rate_is_at_most_what_clopper_and_pearson_allow(events: int, n: int, high: float) -> None:
    assert upper_rate(events, n) == pytest.approx(high, abs=2e-4)


@given(st.integers(1, 30), st.integers(0, 30))
def test_few_events_of_a_rate_above_the_bound_are_rarer_than_one_in_twenty(n: int, events: int) -> None:
    events = min(events, n - 1)
    rate = upper_rate(events, n)

    chance = sum(math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(events + 1))

    assert chance == pytest.approx(0.05, abs=1e-6)
