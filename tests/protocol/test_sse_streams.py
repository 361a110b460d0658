"""Server-sent events in pieces of any size, within their bounds, and as the standard reads them."""

import contextlib
import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executa_protocol.errors import PeerViolation
from executa_protocol.limits import MAX_LINE
from executa_protocol.sse import SseEvent, SseOverflow, SseParser

LINE_ENDS = [b"\n", b"\r", b"\r\n"]


# --- Bounds -----------------------------------------------------------------------------


def test_an_event_may_fill_its_cap_and_not_one_byte_more() -> None:
    block = b"event: a\nid: 1\ndata: 12345\n"
    for cut in (0, 5, 12, len(block)):
        parser = SseParser(max_event_bytes=len(block))
        events = parser.feed(block[:cut]) + parser.feed(block[cut:] + b"\n")
        assert [event.data for event in events] == [b"12345"]
        parser = SseParser(max_event_bytes=len(block) - 1)
        with pytest.raises(SseOverflow):
            parser.feed(block[:cut] + block[cut:] + b"\n")


@pytest.mark.parametrize("line", [b": " + b"x" * 100, b"data: " + b"x" * 100, b"foo" * 40])
def test_a_line_without_an_end_is_bounded_whatever_it_is(line: bytes) -> None:
    parser = SseParser(max_event_bytes=64)
    with pytest.raises(SseOverflow, match="64"):
        parser.feed(line)


def test_blank_lines_before_an_event_do_not_count() -> None:
    parser = SseParser(max_event_bytes=10)
    assert parser.feed(b"data: 1\n\n\n\ndata: 234\n\n") == [SseEvent(b"1"), SseEvent(b"234")]


def test_an_overflow_hands_over_the_events_before_it_and_lasts() -> None:
    parser = SseParser(max_event_bytes=20)
    with pytest.raises(SseOverflow) as caught:
        parser.feed(b"data: a\n\ndata: " + b"b" * 20 + b"\n\n")
    assert caught.value.events == [SseEvent(b"a")]
    assert isinstance(caught.value, PeerViolation)
    with pytest.raises(SseOverflow) as again:
        parser.feed(b"data: c\n\n")
    assert again.value.events == []


def test_the_default_cap_is_that_of_a_line() -> None:
    assert SseParser().max_event_bytes == MAX_LINE


def test_what_is_held_is_at_most_the_cap_and_one_chunk() -> None:
    parser = SseParser(max_event_bytes=1000)
    with contextlib.suppress(SseOverflow):
        for _ in range(100):
            parser.feed(b"data: " + b"x" * 50)
            assert parser.buffered <= 1000
    assert parser.buffered == 0


# --- Pieces -----------------------------------------------------------------------------

LINES = [
    b"data: a",
    b'data: {"event":"delta","text":"x"}',
    b"data:",
    b"data",
    b"event: add",
    b"event:",
    b"id: 7",
    b"id: 8\0",
    b"id",
    b"retry: 10",
    b"retry: x",
    b": comment",
    b"foo: bar",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"",
    b"",
    b"",
]
streams = st.lists(st.tuples(st.sampled_from(LINES), st.sampled_from(LINE_ENDS))).map(
    lambda lines: b"".join(line + end for line, end in lines)
)


def outcome(chunks: Sequence[bytes], cap: int) -> tuple[list[SseEvent], bool, str, int | None]:
    """Everything that a stream in these pieces gives."""
    parser = SseParser(max_event_bytes=cap)
    events: list[SseEvent] = []
    for chunk in chunks:
        try:
            events += parser.feed(chunk)
        except SseOverflow as overflow:
            return events + overflow.events, True, "", None
    return events, False, parser.last_event_id, parser.retry


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    """The stream in pieces."""
    marks = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[a:b] for a, b in itertools.pairwise(marks)]


@given(streams | st.binary(), st.lists(st.integers(0, 10_000)), st.sampled_from([12, 40, MAX_LINE]))
def test_pieces_of_any_size_give_what_the_whole_gives(
    stream: bytes, places: list[int], cap: int
) -> None:
    whole = outcome([stream], cap)
    assert outcome([stream[i : i + 1] for i in range(len(stream))], cap) == whole
    assert outcome(cut(stream, places), cap) == whole


def reference(stream: bytes) -> list[SseEvent]:
    """The standard's algorithm, word for word and slowly."""
    text = stream.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    events: list[SseEvent] = []
    data, kind, last, retry = "", "", "", None
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]
    for line in lines:
        if not line:
            if data:
                raw = data[:-1].encode("latin-1")
                name = kind.encode("latin-1").decode("utf-8", "replace")
                events.append(
                    SseEvent(
                        raw,
                        name or "message",
                        last.encode("latin-1").decode("utf-8", "replace"),
                        retry,
                    )
                )
            data, kind, retry = "", "", None
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data += value + "\n"
        elif field == "event":
            kind = value
        elif field == "id" and "\0" not in value:
            last = value
        elif field == "retry" and value and set(value) <= set("0123456789"):
            retry = int(value)
    return events


@given(streams)
def test_the_parser_agrees_with_the_standards_algorithm(stream: bytes) -> None:
    assert outcome([stream], MAX_LINE)[0] == reference(stream)
