"""A transcript is read whole or up to where it was cut; what is none is told from it."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executa_host.transcripts.reading import read_transcript
from executa_protocol.errors import UsageError
from tests.transcripts.conftest import HEADER, write

NOISE = {"event": "noise", "kind": "k", "message": "m"}


def test_a_whole_transcript_has_no_remarks(tmp_path: Path) -> None:
    found = read_transcript(write(tmp_path / "t.jsonl", [NOISE] * 3))
    assert not found.cut
    assert found.remarks == []
    assert [line.stamp.n for line in found.parts[0].lines] == [1, 2, 3]
    assert [line.row for line in found.parts[0].lines] == [2, 3, 4]


def test_cut_at_every_byte_of_its_end_it_is_read_up_to_the_last_whole_line(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", [NOISE] * 3)
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for length in range(first, len(whole) - 1):
        path.write_bytes(whole[:length])
        found = read_transcript(path)
        lines = whole[first:length].count(b"\n")
        tail = whole[first:length].rpartition(b"\n")[2]
        assert len(found.parts[0].lines) in (lines, lines + 1 if tail.endswith(b"}") else lines)
        assert found.cut
        assert "cut off" in found.remarks[-1]


def test_several_parts_are_read_one_after_the_other(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", [NOISE])
    once = path.read_bytes()
    cut = once.splitlines(keepends=True)[:2]
    path.write_bytes(b"".join(cut) + once)
    found = read_transcript(path)
    assert [part.end is None for part in found.parts] == [True, False]
    assert not found.cut
    assert found.remarks[0].startswith("part 1 is cut off")


def test_an_event_of_a_later_version_is_kept_as_a_line(tmp_path: Path) -> None:
    found = read_transcript(write(tmp_path / "t.jsonl", [{"event": "telepathy", "x": 1}, NOISE]))
    first, second = found.parts[0].lines
    assert first.event is None
    assert b"telepathy" in first.raw
    assert second.event is not None
    assert found.remarks == []


def test_a_line_in_the_middle_that_is_broken_is_told_and_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", [NOISE] * 3)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = b'{"n":2,"t":oops}\n'
    path.write_bytes(b"".join(lines))
    found = read_transcript(path)
    assert len(found.parts[0].lines) == 2
    assert "line 3 cannot be read" in found.remarks[0]
    assert "lacks 1 of its lines" in found.remarks[1]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"# Notes\n", "no JSON object"),
        (b"\x89PNG\r\n\x1a\n\x00", "no JSON object"),
        (b"[1, 2]\n", "no JSON object"),
        (b'{"name": "x"}\n', "its first line is not the header"),
        (b'{"t":1,"dir":"out","ns":"sampling","method":"createMessage"}\n', "of another tool"),
        (b'{"jsonrpc":"2.0","id":1,"method":"describe"}\n', "bare JSON-RPC lines"),
        (b'{"event":"spawned","pid":1,"at":1.0}\n', "as --json prints"),
        (json.dumps(HEADER).encode()[:60], "cut off within its first line"),
        (json.dumps(HEADER | {"version": 2}).encode() + b"\n", "has version 2"),
    ],
)
def test_what_is_no_transcript_is_told_by_what_it_is(
    tmp_path: Path, content: bytes, told: str
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=told):
        read_transcript(path)


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be read: "):
        read_transcript(tmp_path / name)


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_whatever_follows_a_header_is_read_or_told(lines: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        path.write_bytes(json.dumps(HEADER).encode() + b"\n" + b"\n".join(lines))
        found = read_transcript(path)
    assert not found.parts[0].lines
    assert found.cut
