"""Adding up: in any order, with samples replaced, the sums are those of what is there at the end."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from domain.summary import STATES, summarize, summary_of
from domain.tally import COUNTS, WHOLE, CaseOf, Part, Rollup, Sample, Tally

SCORES = {"passed": 1.0, "failed": 0.0}


def sample(state: str, **fields: object) -> Sample:
    return Sample(state, SCORES.get(state), answered=state != "error", **fields)  # type: ignore[arg-type]


samples = st.builds(
    sample,
    st.sampled_from(STATES),
    attempts=st.integers(1, 4),
    cached=st.booleans(),
    flagged=st.booleans(),
    prompt_tokens=st.integers(0, 500),
    completion_tokens=st.integers(0, 500),
    earlier_prompt_tokens=st.integers(0, 50),
    latency_ms=st.none() | st.floats(0, 1e6),
    ttft_ms=st.none() | st.floats(0, 1e6),
)
# (case, its samples): later entries of a case replace samples of the same number.
changes = st.lists(
    st.tuples(st.integers(0, 7), st.dictionaries(st.integers(0, 3), samples, min_size=1)), max_size=25
)


def case_of(case: int) -> CaseOf:
    """Even cases stand alone; odd ones share two sources."""
    parts: list[Part] = [WHOLE, ("family", f"family {case % 3}")]
    return CaseOf(parts, "" if case % 2 == 0 else f"source {case % 4}")


class Held:
    """What a table keeps: tallies by part, clusters by source and part."""

    def __init__(self) -> None:
        self.tallies: defaultdict[Part, Tally] = defaultdict(Tally)
        self.clusters: defaultdict[tuple[str, Part], tuple[int, int]] = defaultdict(lambda: (0, 0))

    def apply(self, rollup: Rollup) -> None:
        for source, parts in rollup.sources.items():
            for part, (rows, passed) in parts.items():
                old = self.clusters[source, part]
                new = (old[0] + rows, old[1] + passed)
                rollup.move_cluster(part, old, new)
                self.clusters[source, part] = new
        for part, tally in rollup.tallies.items():
            self.tallies[part].merge(tally)

    def rows(self) -> dict[Part, object]:
        return {part: tally.as_row() for part, tally in self.tallies.items() if tally.results}


@given(changes)
def test_what_is_added_step_by_step_is_what_is_there_at_the_end(
    steps: list[tuple[int, dict[int, Sample]]],
) -> None:
    stepwise, at_once = Held(), Held()
    results: dict[int, dict[int, Sample]] = {}
    for case, fresh in steps:
        rollup = Rollup()
        before = results.get(case, {})
        results[case] = {**before, **fresh}
        rollup.change(case_of(case), before, results[case])
        stepwise.apply(rollup)

    rollup = Rollup()
    for case, kept in results.items():
        rollup.change(case_of(case), {}, kept)
    at_once.apply(rollup)

    assert stepwise.rows() == at_once.rows()
    whole = stepwise.tallies[WHOLE]
    states = [row.state for kept in results.values() for row in kept.values()]
    sources = [case_of(case).source or f"case {case}" for case, kept in results.items() for _ in kept]
    assert summary_of(whole.counts, whole.moments) == summarize(states, sources)


@given(changes)
def test_a_row_reads_back_as_the_tally_that_was_written(steps: list[tuple[int, dict[int, Sample]]]) -> None:
    tally = Tally()
    for _, kept in steps:
        for row in kept.values():
            tally.add(row)
        tally.add_case(len(kept), 0)

    written = tally.as_row()

    assert Tally.of_row(written).as_row() == written
    assert set(written) == {*COUNTS, "sketches", "cases"}


def test_cached_answers_cost_nothing_and_are_no_latency() -> None:
    tally = Tally()
    tally.add(sample("passed", cached=True, prompt_tokens=10, completion_tokens=5, latency_ms=3.0))

    assert tally.counts["prompt_tokens"] == 10
    assert tally.counts["paid_prompt_tokens"] == 0
    assert not tally.sketches["latency_ms"]


def test_tokens_of_an_error_that_was_replaced_are_paid_for() -> None:
    tally = Tally()
    tally.add(sample("passed", completion_tokens=5, earlier_completion_tokens=7))

    assert tally.counts["completion_tokens"] == 5
    assert tally.counts["paid_completion_tokens"] == 12
