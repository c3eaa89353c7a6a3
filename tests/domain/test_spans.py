import time

from hypothesis import given
from hypothesis import strategies as st

from domain.spans import Span, outside, without_overlaps

spans = st.lists(
    st.builds(
        lambda entity, start, size, score: Span(entity, start, start + size, score),
        st.sampled_from("ABC"),
        st.integers(0, 30),
        st.integers(0, 12),
        st.sampled_from([0.5, 0.8, 1.0]),
    ),
    max_size=10,
)


def covered(found: list[Span]) -> set[int]:
    return {place for span in found for place in range(span.start, span.end)}


@given(spans)
def test_settling_overlaps_covers_exactly_what_was_covered(found: list[Span]) -> None:
    settled = without_overlaps(found)

    assert covered(settled) == covered(found)
    assert sum(span.end - span.start for span in settled) == len(covered(settled))
    assert without_overlaps(settled) == settled


def test_an_e_mail_is_one_entity() -> None:
    parts = [Span("PERSON", 0, 4, 0.85), Span("URL", 5, 12, 0.5), Span("EMAIL_ADDRESS", 0, 12, 1.0)]

    assert without_overlaps(parts) == [Span("EMAIL_ADDRESS", 0, 12, 1.0)]


def test_the_score_decides_before_the_length() -> None:
    settled = without_overlaps([Span("LONG", 0, 10, 0.6), Span("SURE", 2, 5, 0.9)])

    assert [(span.entity, span.start, span.end) for span in settled] == [
        ("LONG", 0, 2),
        ("SURE", 2, 5),
        ("LONG", 5, 10),
    ]


def test_equal_scores_are_settled_by_length() -> None:
    assert without_overlaps([Span("A", 0, 4, 0.8), Span("B", 0, 9, 0.8)]) == [Span("B", 0, 9, 0.8)]


def test_an_empty_span_marks_nothing() -> None:
    assert outside(Span("A", 3, 3, 1.0), []) == []


def test_many_spans_are_settled_quickly() -> None:
    many = [Span("A", 10 * n, 10 * n + 12, 0.5 + n % 3 / 10) for n in range(5_000)]

    started = time.thread_time()
    without_overlaps(many)

    assert time.thread_time() - started < 10.0
