"""Server-sent events, checked against the examples and rules of the WHATWG standard."""

import contextlib
import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executa_protocol.errors import PeerViolation, UsageError
from executa_protocol.limits import MAX_LINE
from executa_protocol.sse import SseEvent, SseOverflow, SseParser, encode_event


def parsed(*chunks: bytes) -> list[SseEvent]:
    """The events of a stream that came in these pieces."""
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


def message(data: bytes, **fields: str | int) -> SseEvent:
    """An event with these fields."""
    return SseEvent(data, **fields)  # type: ignore[arg-type]


# --- The standard's own examples --------------------------------------------------------


def test_three_lines_of_data_are_one_event() -> None:
    stream = b"data: YHOO\ndata: +2\ndata: 10\n\n"
    assert parsed(stream) == [message(b"YHOO\n+2\n10")]


def test_comments_ids_and_a_single_space_are_read_as_the_standard_shows() -> None:
    first, second, third = (
        b"data: first event\nid: 1",
        b"data:second event\nid",
        b"data:  third event",
    )
    stream = b"\n\n".join([b": test stream", first, second, third, b""])
    assert parsed(stream) == [
        message(b"first event", id="1"),
        message(b"second event"),
        message(b" third event"),
    ]


def test_empty_data_is_an_event_and_an_unfinished_one_is_discarded() -> None:
    assert parsed(b"data\n\ndata\ndata\n\ndata:") == [message(b""), message(b"\n")]


def test_at_most_one_space_after_the_colon_is_taken_off() -> None:
    assert parsed(b"data:test\n\ndata: test\n\n") == [message(b"test")] * 2


# --- Fields -----------------------------------------------------------------------------


def test_an_event_type_holds_for_its_event_only() -> None:
    stream = b"event: add\ndata: 1\n\ndata: 2\n\nevent:\ndata: 3\n\n"
    assert [event.type for event in parsed(stream)] == ["add", "message", "message"]


def test_a_type_without_data_is_forgotten() -> None:
    assert parsed(b"event: add\n\ndata: 1\n\n") == [message(b"1")]


def test_the_last_of_two_types_counts() -> None:
    assert parsed(b"event: a\nevent: b\ndata: 1\n\n") == [message(b"1", type="b")]


def test_unknown_fields_and_other_cases_are_ignored() -> None:
    assert parsed(b"Data: 0\nfoo: 1\nfoo\n data: 2\ndata : 3\ndata: 4\n\n") == [message(b"4")]


def test_an_id_holds_until_another_comes() -> None:
    stream = b"id: 1\ndata: a\n\ndata: b\n\nid: 2\ndata: c\n\nid\ndata: d\n\n"
    assert [event.id for event in parsed(stream)] == ["1", "1", "2", ""]


def test_an_id_with_nul_is_ignored() -> None:
    assert [event.id for event in parsed(b"id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n")] == ["1", "1"]


def test_the_last_event_id_is_that_of_the_last_event_that_ended() -> None:
    parser = SseParser(last_event_id="0")
    assert parser.feed(b"data: a\n\n") == [message(b"a", id="0")]
    assert parser.feed(b"id: 1\n\n") == []
    assert parser.last_event_id == "1"
    assert parser.feed(b"data: b\nid: 2\n") == []
    assert parser.last_event_id == "1"
    assert parser.feed(b"\n") == [message(b"b", id="2")]
    assert parser.last_event_id == "2"


@pytest.mark.parametrize(
    ("value", "retry"),
    [
        (b"1500", 1500),
        (b"0", 0),
        (b"007", 7),
        (b"", None),
        (b"-1", None),
        (b"+1", None),
        (b"1.5", None),
        (b"1 ", None),
        (b"\xd9\xa1", None),
        (b"9" * 18, 10**18 - 1),
        (b"9" * 19, 10**18),
        (b"9" * 9999, 10**18),
    ],
)
def test_a_reconnection_time_is_ascii_digits_only(value: bytes, retry: int | None) -> None:
    parser = SseParser()
    assert parser.feed(b"retry: " + value + b"\ndata: a\n\n") == [SseEvent(b"a", retry=retry)]
    assert parser.retry == retry


def test_a_reconnection_time_outlives_its_event() -> None:
    parser = SseParser()
    assert parser.feed(b"retry: 5\n\ndata: a\n\n") == [message(b"a")]
    assert parser.retry == 5


# --- Bytes ------------------------------------------------------------------------------


def test_one_byte_order_mark_is_skipped_at_the_start_and_nowhere_else() -> None:
    bom = b"\xef\xbb\xbf"
    assert parsed(bom + b"data: a\n\n") == [message(b"a")]
    assert parsed(bom + bom + b"data: a\n\ndata: b\n\n") == [message(b"b")]
    assert parsed(b"\n\n" + bom + b"data: a\n\n") == []


def test_a_stream_that_begins_like_a_byte_order_mark_is_read_whole() -> None:
    assert parsed(b"\xef", b"", b"\xbb:x\ndata: a\n\n") == [message(b"a")]


def test_bad_utf_8_reads_as_the_replacement_character_and_stays_in_the_data() -> None:
    (event,) = parsed(b"event: \xff\nid: \xfe\ndata: a\xc3\n\n")
    assert event == SseEvent(b"a\xc3", type="�", id="�")
    assert event.text == "a�"


LINE_ENDS = [b"\n", b"\r", b"\r\n"]


@pytest.mark.parametrize("end", LINE_ENDS)
def test_each_line_end_may_be_split_anywhere(end: bytes) -> None:
    stream = b"event: add\nid: 1\ndata: a\ndata: b\n\n\ndata: c\n\n".replace(b"\n", end)
    expected = [message(b"a\nb", type="add", id="1"), message(b"c", id="1")]
    for cut in range(len(stream) + 1):
        assert parsed(stream[:cut], b"", stream[cut:]) == expected


def test_line_ends_may_be_mixed() -> None:
    assert parsed(b"data: a\r\rdata: b\r\n\ndata: c\n\r\n") == [
        message(b"a"),
        message(b"b"),
        message(b"c"),
    ]


def test_a_line_feed_after_a_carriage_return_is_one_line_end_also_across_an_empty_chunk() -> None:
    assert parsed(b"data: a\r", b"", b"\ndata: b\r\n", b"\r", b"\n") == [message(b"a\nb")]


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
    assert parser.feed(b"data: 1\n\n\n\ndata: 234\n\n") == [message(b"1"), message(b"234")]


def test_an_overflow_hands_over_the_events_before_it_and_lasts() -> None:
    parser = SseParser(max_event_bytes=20)
    with pytest.raises(SseOverflow) as caught:
        parser.feed(b"data: a\n\ndata: " + b"b" * 20 + b"\n\n")
    assert caught.value.events == [message(b"a")]
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


# --- Writing ----------------------------------------------------------------------------


def test_an_event_is_written_with_every_field() -> None:
    written = encode_event("a\nb", event="add", event_id="1", retry=5, comment="x")
    assert written == b": x\nevent: add\nid: 1\nretry: 5\ndata: a\ndata: b\n\n"


def test_a_comment_alone_is_a_sign_of_life() -> None:
    assert parsed(encode_event(comment="still here\rreally")) == []


@pytest.mark.parametrize(
    "fields", [{"event": "a\nb"}, {"event": "a\r"}, {"event_id": "\n"}, {"event_id": "\0"}]
)
def test_what_a_reader_would_read_otherwise_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        encode_event("a", **fields)  # type: ignore[arg-type]


def test_a_negative_reconnection_time_is_refused() -> None:
    with pytest.raises(UsageError):
        encode_event("a", retry=-1)


names = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]))


@given(st.text(), names, names, st.none() | st.integers(0, 10**17))
def test_what_is_written_is_read_back(
    data: str, event: str, event_id: str, retry: int | None
) -> None:
    written = encode_event(data, event=event, event_id=event_id, retry=retry)
    (read,) = parsed(written)
    assert read.text == data.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace(
        "\r", "\n"
    )
    assert (read.type, read.id, read.retry) == (event or "message", event_id, retry)
