"""Server-sent events, checked against the examples and rules of the WHATWG standard."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executa_protocol.errors import UsageError
from executa_protocol.sse import SseEvent, SseParser, encode_event


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
