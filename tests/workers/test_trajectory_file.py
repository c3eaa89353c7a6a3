import io
import json

import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from domain.contracts import Check, SandboxStep, Step, Trajectory, Verdict
from domain.contracts.trajectory_table import COLUMNS, METADATA_KEY, RolloutInfo, from_row
from workers.trajectory_file import trajectory_file

INFO = RolloutInfo(policy_version=4, temperature=0.7, model="run-v4-a1", group_size=8, seed=3)

_token_ids = st.integers(0, 2**31 - 1)
_finite = st.floats(-50, 0)


@st.composite
def _steps(draw: st.DrawFn) -> Step:
    length = draw(st.integers(0, 5))
    return Step(
        observation=draw(st.text()),
        action=draw(st.text()),
        token_ids=tuple(draw(st.lists(_token_ids, min_size=length, max_size=length))),
        logprobs=tuple(draw(st.lists(_finite, min_size=length, max_size=length))),
        mask=tuple(draw(st.lists(st.integers(0, 1), min_size=length, max_size=length))),
        policy_version=draw(st.integers(0, 9)),
        finish_reason=draw(st.sampled_from(["stop", "length"])),
        sandbox=draw(
            st.sampled_from(
                [None, SandboxStep(command="pytest", status="nonzero", exit_code=1, stdout="é\u2028")]
            )
        ),
    )


_trajectories = st.builds(
    Trajectory,
    task_id=st.text(min_size=1),
    family=st.text(min_size=1),
    group=st.text(),
    sample=st.integers(0, 255),
    seed=st.integers(0, 2**53 - 1),
    prompt_ids=st.lists(_token_ids, max_size=5).map(tuple),
    steps=st.lists(_steps(), max_size=3).map(tuple),
    state=st.sampled_from(["passed", "failed", "error", "unscored", "cancelled"]),
    verdict=st.sampled_from(
        [None, Verdict(state="failed", score=0.25, checks=(Check(name="a", score=0.0),), reasons=("no",))]
    ),
    reward=st.none() | st.floats(0, 1),
    reward_terms=st.dictionaries(st.text(), st.floats(0, 1), max_size=2),
    error=st.text(),
    wall_s=st.floats(0, 100),
    prompt_tokens=st.integers(0, 100),
    completion_tokens=st.integers(0, 100),
    ttft_ms=st.none() | st.floats(0, 100),
    latency_ms=st.none() | st.floats(0, 100),
    served_model=st.text(),
)


@given(st.lists(_trajectories, max_size=4))
def test_trajectories_come_back_as_they_were_written(trajectories: list[Trajectory]) -> None:
    table = pq.read_table(io.BytesIO(trajectory_file(trajectories, INFO)))

    assert [from_row(row) for row in table.to_pylist()] == trajectories


def test_the_file_has_the_documented_columns_and_says_how_it_was_sampled() -> None:
    table = pq.read_table(io.BytesIO(trajectory_file([], INFO)))

    assert table.column_names == list(COLUMNS)
    assert RolloutInfo.model_validate_json(table.schema.metadata[METADATA_KEY]) == INFO
    assert json.loads(table.schema.metadata[METADATA_KEY])["format"] == "flywheel-trajectories-2"


def test_an_unknown_reward_is_null_and_not_zero() -> None:
    lost = Trajectory(task_id="t", family="f", state="error", reward=None)

    table = pq.read_table(io.BytesIO(trajectory_file([lost], INFO)))

    assert table["reward"].to_pylist() == [None]
    assert table["policy_version"].to_pylist() == [4]


def test_half_a_surrogate_pair_in_an_episode_costs_the_character_and_not_the_file() -> None:
    said = "a\ud800b"
    broken = Trajectory(
        task_id="t",
        family="f",
        group="g",
        sample=0,
        seed=1,
        state="failed",
        error=said,
        served_model=said,
        steps=(
            Step(
                observation=said, action=said, token_ids=(1,), logprobs=(-1.0,), mask=(1,), policy_version=0
            ),
        ),
        verdict=Verdict(state="failed", score=0.0, reasons=(said,)),
    )

    rows = pq.read_table(io.BytesIO(trajectory_file([broken], INFO))).to_pylist()

    read = from_row(rows[0])
    assert (read.error, read.served_model) == ("a\ufffdb", "a\ufffdb")
    assert read.steps[0].action == "a\ufffdb"
    assert read.verdict is not None
    assert read.verdict.reasons == ("a\ufffdb",)
    assert read.steps[0].token_ids == (1,)
