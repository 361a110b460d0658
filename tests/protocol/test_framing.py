"""Bytes to lines: what splits, what does not, and how little is held (R-10, R-11)."""

import tracemalloc
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executa_protocol.errors import UsageError
from executa_protocol.framing import BOM, LineSplitter, Oversized
from executa_protocol.limits import HEAD_BYTES, KIB, MAX_LINE, MIB, MIN_LINE_CAP, READ_CHUNK

Line = bytes | Oversized
CAP = MIN_LINE_CAP


def split(chunks: Iterable[bytes], cap: int = CAP) -> list[Line]:
    """The lines of a stream that came in these pieces, what is left at its end included."""
    splitter = LineSplitter(cap)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    rest = splitter.eof()
    return lines if rest is None else [*lines, rest]


def bytewise(data: bytes) -> list[bytes]:
    """One byte at a time."""
    return [data[index : index + 1] for index in range(len(data))]


# --- What splits ----------------------------------------------------------------------------


def test_lines_end_with_lf_and_keep_it() -> None:
    assert split([b"a\nb\n"]) == [b"a\n", b"b\n"]


def test_blank_lines_and_crlf_come_out_as_they_are() -> None:
    assert split([b"\n\r\na\r\n"]) == [b"\n", b"\r\n", b"a\r\n"]


@pytest.mark.parametrize(
    "other", ["\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\0"]
)
def test_nothing_but_lf_splits(other: str) -> None:
    line = f"a{other}b\n".encode()
    assert split([line]) == [line]
    assert split(bytewise(line)) == [line]


def test_a_character_may_be_split_between_chunks() -> None:
    line = '{"text":"zażółć 🦜"}\n'.encode()
    for cut in range(len(line)):
        assert split([line[:cut], line[cut:]]) == [line]


def test_the_end_of_the_stream_gives_what_is_left() -> None:
    assert split([b"a\nb"]) == [b"a\n", b"b"]
    assert split([]) == []
    assert split([b"a\n"]) == [b"a\n"]


def test_after_the_end_nothing_is_left() -> None:
    splitter = LineSplitter(CAP)
    splitter.feed(b"a")
    assert splitter.eof() == b"a"
    assert splitter.eof() is None


# --- The BOM --------------------------------------------------------------------------------


def test_one_bom_at_the_start_is_taken_off() -> None:
    assert split([BOM + b"a\n"]) == [b"a\n"]
    assert split(bytewise(BOM + b"a\n")) == [b"a\n"]


def test_a_second_bom_and_one_later_are_content() -> None:
    assert split([BOM + BOM + b"a\n" + BOM + b"b\n"]) == [BOM + b"a\n", BOM + b"b\n"]


def test_an_empty_chunk_does_not_end_the_start() -> None:
    assert split([b"", BOM[:1], b"", BOM[1:], b"a\n"]) == [b"a\n"]


def test_half_a_bom_is_content() -> None:
    assert split([BOM[:2], b"\n"]) == [BOM[:2] + b"\n"]
    assert split([BOM[:1]]) == [BOM[:1]]
    assert split([BOM]) == []


# --- The cap ----------------------------------------------------------------------------------


@pytest.mark.parametrize("pieces", [1, 2, 7, CAP])
def test_a_line_at_the_cap_is_whole_and_one_byte_more_is_oversized(pieces: int) -> None:
    def cut(data: bytes) -> list[bytes]:
        size = -(-len(data) // pieces)
        return [data[start : start + size] for start in range(0, len(data), size)]

    fits, over = b"x" * CAP, b"x" * (CAP + 1)
    assert split(cut(fits + b"\nnext\n")) == [fits + b"\n", b"next\n"]
    assert split(cut(over + b"\nnext\n")) == [Oversized(over[:HEAD_BYTES], CAP + 1), b"next\n"]


def test_the_head_of_an_oversized_line_is_its_first_bytes() -> None:
    line = bytes(range(32, 127)) * 1000
    for chunks in ([line + b"\n"], bytewise(line + b"\n"), [line]):
        assert split(chunks) == [Oversized(line[:HEAD_BYTES], len(line))]


def test_an_oversized_line_may_be_the_last_of_several_chunks_and_the_first_of_the_next() -> None:
    long = b"x" * (3 * CAP)
    stream = b"a\n" + long + b"\nb\n" + long + b"\n"
    wanted = [b"a\n", Oversized(long[:HEAD_BYTES], len(long)), b"b\n"]
    assert split([stream[:100], stream[100:]])[:3] == wanted
    assert split(bytewise(stream))[:3] == wanted


def test_the_default_cap_is_16_mib() -> None:
    line = b"x" * (MAX_LINE + 1)
    assert split([line[1:], b"\n"], MAX_LINE) == [line[1:] + b"\n"]
    splitter = LineSplitter()
    assert splitter.feed(line + b"\n") == [Oversized(line[:HEAD_BYTES], len(line))]


def test_a_cap_that_no_handshake_fits_into_is_refused() -> None:
    LineSplitter(MIN_LINE_CAP)
    with pytest.raises(UsageError, match="at least 4096"):
        LineSplitter(MIN_LINE_CAP - 1)


# --- What is held -----------------------------------------------------------------------------


def test_a_line_that_is_drained_is_not_held() -> None:
    splitter = LineSplitter(CAP)
    for _ in range(100):
        splitter.feed(b"x" * 1000)
        assert splitter.held <= CAP
    assert splitter.held == 0


def test_memory_stays_at_the_cap_however_long_the_line_is() -> None:
    cap, chunk = 1 * MIB, b"x" * READ_CHUNK
    splitter = LineSplitter(cap)
    tracemalloc.start()
    try:
        for _ in range(64):
            splitter.feed(chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < cap + 2 * READ_CHUNK


def test_tiny_pieces_of_a_long_line_cost_little_more_than_their_bytes() -> None:
    splitter = LineSplitter()
    tracemalloc.start()
    try:
        for _ in range(64 * KIB):
            splitter.feed(b"xyz")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert splitter.held == 3 * 64 * KIB
    assert held < 2 * splitter.held


# --- Any bytes in any pieces ------------------------------------------------------------------

fragments = st.lists(
    st.one_of(
        st.binary(max_size=40),
        st.sampled_from([b"\n", b"\r\n", BOM, BOM[:1], b"x" * CAP, b"y" * 1000]),
    ),
    max_size=30,
)


@given(fragments)
def test_byte_by_byte_equals_all_at_once_equals_any_pieces(chunks: list[bytes]) -> None:
    stream = b"".join(chunks)
    whole = split([stream])
    assert split(chunks) == whole
    assert split(bytewise(stream)) == whole


@given(fragments)
def test_lines_are_the_stream_and_no_more_is_held_than_the_cap(chunks: list[bytes]) -> None:
    splitter = LineSplitter(CAP)
    sizes = 0
    for chunk in chunks:
        for line in splitter.feed(chunk):
            sizes += len(line) if isinstance(line, bytes) else line.size + 1
            assert not isinstance(line, bytes) or (line.endswith(b"\n") and len(line) <= CAP + 1)
            assert not isinstance(line, Oversized) or line.size > CAP
        assert splitter.held <= CAP
    rest = splitter.eof()
    if rest is not None:
        sizes += len(rest) if isinstance(rest, bytes) else rest.size
    stream = b"".join(chunks)
    assert sizes == len(stream.removeprefix(BOM))


@pytest.mark.parametrize("size", [4_095, 4_096, 5_000, READ_CHUNK - 1, READ_CHUNK, READ_CHUNK + 1])
@pytest.mark.parametrize("line", [100, 9_000, 70_000, 200_000])
def test_what_is_kept_as_a_view_is_the_same_line_in_the_end(size: int, line: int) -> None:
    lines = [b"%06d" % number + b"x" * line + b"\n" for number in range(400_000 // line + 2)]
    stream = b"".join(lines)
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    found = split(chunks, MAX_LINE)
    assert found == lines
    assert {type(each) for each in found} == {bytes}


@pytest.mark.parametrize("size", [5_000, READ_CHUNK])
def test_a_line_kept_as_views_is_drained_like_any_other(size: int) -> None:
    stream = b"a\n" + b"x" * 300_000 + b"\n" + b"y" * 6_000 + b"\nb\n"
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert split(chunks, 100_000) == [
        b"a\n",
        Oversized(b"x" * HEAD_BYTES, 300_000),
        b"y" * 6_000 + b"\n",
        b"b\n",
    ]


def test_the_end_of_the_stream_gives_what_was_kept_as_a_view() -> None:
    assert split([b"a\n" + b"x" * 50_000], MAX_LINE) == [b"a\n", b"x" * 50_000]
