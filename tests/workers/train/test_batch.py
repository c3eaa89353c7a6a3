from collections.abc import Callable

import numpy as np
import pytest

from artifacts import ArtifactStore
from domain.contracts import Flag
from domain.contracts.training import TrainConfig
from tests.workers.train.conftest import END, group_of, trajectory
from workers.train.batch import RolloutsRefused, Row, make_packs, read_rollouts
from workers.train.grpo import select_rows

Put = Callable[..., str]


def test_ids_are_those_of_the_engine_end_to_end(store: ArtifactStore, put_rollouts: Put) -> None:
    """trl#5224: ids that no text would give again survive to the training batch."""
    turns = trajectory("g", 0, 1.0, tokens=(41, 5, 5, END, 30, 31, 17, END), prompt=(1, 9, 9, 3))
    digest = put_rollouts([turns, trajectory("g", 1, 0.0, prompt=(1, 9, 9, 3))])

    rows = read_rollouts(store, [digest], temperature=1.0)
    (pack,) = make_packs(rows, advantage=_ones(rows), weight=_ones(rows), pack_tokens=100)

    assert pack.input_ids.tolist() == [1, 9, 9, 3, 41, 5, 5, END, 30, 31, 17, END, 11, 21, END]
    assert pack.target.tolist() == [41, 5, 5, END, 30, 31, 17, END, 11, 21, END]


def test_end_token_is_trained_when_it_is_also_the_padding_token(
    store: ArtifactStore, put_rollouts: Put
) -> None:
    """trl#1623: rows of unequal length, pad token = end token; every sampled end token counts."""
    digest = put_rollouts([trajectory("g", 0, 1.0, tokens=(10, END)), trajectory("g", 1, 0.0)])

    rows = read_rollouts(store, [digest], temperature=1.0)
    (pack,) = make_packs(rows, advantage=_ones(rows), weight=_ones(rows), pack_tokens=100)

    assert pack.target.tolist().count(END) == 2


def test_exactly_one_first_token_reaches_training(store: ArtifactStore, put_rollouts: Put) -> None:
    """alignment-handbook#127, trl#3520: nothing is tokenized here, so nothing is added or lost."""
    digest = put_rollouts(group_of([1.0, 0.0], prompt=(1, 7, 8)))

    rows = read_rollouts(store, [digest], temperature=1.0)
    (pack,) = make_packs(rows, advantage=_ones(rows), weight=_ones(rows), pack_tokens=100)

    assert pack.input_ids.tolist().count(1) == 1


def test_every_row_has_the_positions_of_a_row_by_itself(store: ArtifactStore, put_rollouts: Put) -> None:
    digest = put_rollouts([trajectory("g", 0, 1.0, tokens=(10, END)), trajectory("g", 1, 0.0)])

    rows = read_rollouts(store, [digest], temperature=1.0)
    (pack,) = make_packs(rows, advantage=_ones(rows), weight=_ones(rows), pack_tokens=100)

    assert pack.position_ids.tolist() == [0, 1, 2, 3, 4, 5, 4, 5, 6]
    assert pack.source.tolist() == [3, 4, 3, 6, 7]


def test_packs_keep_to_their_size_and_hold_every_row_once(store: ArtifactStore, put_rollouts: Put) -> None:
    digest = put_rollouts(group_of([1.0, 0.0, 1.0, 0.0, 1.0]))

    rows = read_rollouts(store, [digest], temperature=1.0)
    packs = make_packs(rows, advantage=_ones(rows), weight=_ones(rows), pack_tokens=10)

    assert [len(pack.input_ids) for pack in packs] == [10, 10, 7]
    assert sorted(t for pack in packs for t in pack.target.tolist() if t < 20 and t != END) == [
        10,
        11,
        12,
        13,
        14,
    ]


@pytest.mark.parametrize(
    ("info", "reason"),
    [
        ({"temperature": 0.7}, "temperature 0.7"),
        ({"top_p": 0.9}, "top_p 0.9"),
        ({"logprobs": "none"}, "log-probabilities"),
    ],
)
def test_rollouts_sampled_in_a_way_that_cannot_be_corrected_are_refused(
    store: ArtifactStore, put_rollouts: Put, info: dict[str, object], reason: str
) -> None:
    digest = put_rollouts(group_of([1.0, 0.0]), **info)

    with pytest.raises(RolloutsRefused, match=reason):
        read_rollouts(store, [digest], temperature=1.0)


def test_rows_without_anything_to_train_on_are_refused_by_name(
    store: ArtifactStore, put_rollouts: Put
) -> None:
    """trl#6668: training on rows with every label gone gives loss 0 and a broken adapter."""
    digest = put_rollouts([trajectory("good", 0, 1.0), trajectory("empty", 3, 0.0, tokens=())])

    with pytest.raises(RolloutsRefused, match=r"1 rows have no sampled token.*empty#3"):
        read_rollouts(store, [digest], temperature=1.0)


def test_a_log_probability_above_zero_is_refused(store: ArtifactStore, put_rollouts: Put) -> None:
    digest = put_rollouts([trajectory("g", 0, 1.0, logprobs=(0.5, -1.0, -1.0)), trajectory("g", 1, 0.0)])

    with pytest.raises(RolloutsRefused, match="log-probability above 0"):
        read_rollouts(store, [digest], temperature=1.0)


def test_a_flagged_row_keeps_its_place_but_not_its_reward(store: ArtifactStore, put_rollouts: Put) -> None:
    """What looks like gaming is in no baseline, no loss and no curriculum, like a broken sandbox."""
    gaming = trajectory("g", 0, 1.0).model_copy(update={"flags": (Flag(detector="d", reason="r"),)})
    digest = put_rollouts([gaming, trajectory("g", 1, 0.0), trajectory("g", 2, 0.8)])

    rows = read_rollouts(store, [digest], temperature=1.0)
    chosen = select_rows(rows, TrainConfig(), policy_version=0)

    assert [(row.flagged, row.reward, row.state) for row in rows] == [
        (True, None, "cancelled"),
        (False, 0.0, "failed"),
        (False, 0.8, "passed"),
    ]
    assert [row.sample for row in chosen.groups[0]] == [1, 2]
    assert chosen.advantages == [[-0.4, 0.4]]
    assert chosen.left_out == {"flagged": 1}


def test_one_task_in_two_artifacts_makes_two_groups(store: ArtifactStore, put_rollouts: Put) -> None:
    first, second = put_rollouts(group_of([1.0, 0.0])), put_rollouts(group_of([0.0, 1.0]))

    rows = read_rollouts(store, [first, second], temperature=1.0)

    assert len({row.group for row in rows}) == 2


def _ones(rows: list[Row]) -> np.ndarray:
    return np.ones(len(rows))
