from hypothesis import given
from hypothesis import strategies as st

from workers.sandbox.capture import Capture


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=12), st.integers(2, 400))
def test_start_and_end_are_kept_and_everything_is_counted(chunks: list[bytes], keep: int) -> None:
    capture = Capture(cap=1 << 20, keep=keep)

    for chunk in chunks:
        capture.add(chunk)

    said, got = b"".join(chunks), capture.result()
    assert got.total == len(said)
    assert said.startswith(got.head)
    assert said.endswith(got.tail)
    assert len(got.head) + len(got.tail) == min(len(said), keep)
    if len(said) <= keep:
        assert got.data == said
