import itertools

import pytest

from domain.lifecycle import (
    KINDS,
    RUN_ACTIONS,
    IllegalMove,
    check_move,
    is_final,
    may_act,
    may_move,
    next_state,
    state_after,
)

STATES = [(kind, state) for kind, moves in KINDS.items() for state in moves]


@pytest.mark.parametrize(("kind", "state"), STATES)
def test_every_target_is_a_state_of_its_kind_and_none_stays(kind: str, state: str) -> None:
    targets = KINDS[kind][state]

    assert targets <= set(KINDS[kind])
    assert state not in targets


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("work_unit", "pending sent running done"),
        ("work_unit", "pending sent running pending sent running failed pending"),
        ("case", "raw anonymized labelled asset"),
        ("case", "raw anonymized dismissed anonymized"),
        ("run", "pending running done"),
        ("run", "pending running paused running done running done"),
        ("run", "running paused done"),
        ("run", "running paused cancelled"),
        ("training_run", "draft running paused running done"),
        ("version", "registered candidate in_service retired in_service"),
        ("release", "running rolled_back"),
    ],
)
def test_the_usual_paths_are_legal(kind: str, path: str) -> None:
    states = path.split()

    for old, new in itertools.pairwise(states):
        check_move(kind, old, new)


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("work_unit", "done", "running"),
        ("work_unit", "cancelled", "pending"),
        ("case", "raw", "labelled"),
        ("case", "raw", "asset"),
        ("run", "done", "done"),
        ("training_run", "draft", "done"),
        ("version", "in_service", "registered"),
        ("release", "rolled_back", "promoted"),
        ("release", "aborted", "running"),
        ("run", "nonsense", "done"),
    ],
)
def test_other_moves_are_refused_with_a_sentence(kind: str, old: str, new: str) -> None:
    with pytest.raises(IllegalMove, match=r"cannot become .*\.$") as caught:
        check_move(kind, old, new)

    assert (caught.value.kind, caught.value.old, caught.value.new) == (kind, old, new)


def test_the_sentence_says_what_is_possible() -> None:
    with pytest.raises(IllegalMove) as caught:
        check_move("training_run", "paused", "done")

    assert str(caught.value) == (
        "This training run is paused and cannot become done; it can become cancelled, failed or running."
    )


def test_the_next_state_is_returned_when_it_is_legal() -> None:
    assert next_state("run", "pending", "running") == "running"
    with pytest.raises(IllegalMove):
        next_state("run", "cancelled", "running")


def test_final_states_end_the_story() -> None:
    assert is_final("release", "promoted")
    assert not is_final("release", "running")
    assert not may_move("release", "promoted", "rolled_back")


@pytest.mark.parametrize("action", sorted(RUN_ACTIONS))
@pytest.mark.parametrize("state", sorted(KINDS["run"]))
def test_an_action_on_a_run_is_a_legal_move_or_refused_with_a_sentence(action: str, state: str) -> None:
    if may_act(action, state):
        assert may_move("run", state, state_after(action, state))
    else:
        with pytest.raises(IllegalMove, match=r"^This run is .*\.$"):
            state_after(action, state)


def test_retrying_errors_does_not_resume_a_paused_run() -> None:
    assert may_move("run", "paused", "running")

    with pytest.raises(IllegalMove, match="only one that is done or failed can do this: retry errors"):
        state_after("retry_errors", "paused")
