"""Event streams as bytes."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.gateway.sse import Event, SseSplitter, encode_event


@given(st.lists(st.text(min_size=1), max_size=5), st.lists(st.integers(0, 400)), st.booleans())
def test_events_do_not_depend_on_where_the_stream_is_cut(
    texts: list[str], cuts: list[int], crlf: bool
) -> None:
    data = b"".join(encode_event({"text": text}) for text in texts)
    data = data.replace(b"\n", b"\r\n") if crlf else data
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    splitter = SseSplitter()

    events = [event for start, end in pairwise(edges) for event in splitter.feed(data[start:end])]

    assert [json.loads(event.data)["text"] for event in events] == texts


def test_comments_names_and_several_data_lines() -> None:
    events = list(SseSplitter().feed(b": ping\n\nevent: error\ndata: a\ndata: b\n\ndata:c\n\ndata: cut"))

    assert events == [Event("error", b"a\nb"), Event("", b"c")]


def test_an_endless_event_is_refused() -> None:
    splitter = SseSplitter()
    endless = (event for _ in range(9) for event in splitter.feed(b"data: " + b"x" * 1024 * 1024))

    with pytest.raises(ValueError, match="too large"):
        list(endless)
