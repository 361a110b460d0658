"""Reads transcripts: one part for each host that recorded, whole or cut off.

A transcript whose end is missing is read up to where it was cut; one that is none is refused
with a sentence that says what the file is instead. What the lines mean is `model`'s business.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from executa_host.transcripts.files import read_header
from executa_protocol import codec, transcript
from executa_protocol.errors import DecodeFailure, UsageError
from executa_protocol.transcript import FORMAT, FORMAT_VERSION, AnyEvent, End, Header, Stamp

_REMARKS: Final = 20
"""Faults of lines that are told one by one."""


class Line(Struct, frozen=True):
    """One line of a transcript: `row` of the file, its stamp, and what it tells.

    `event` is None for an event that this version does not know.
    """

    row: int
    stamp: Stamp
    event: AnyEvent | None
    raw: bytes


class Part(Struct):
    """What one host recorded. `end` is None if it was cut off."""

    header: Header
    lines: list[Line] = field(default_factory=list[Line])
    end: End | None = None


class Transcript(Struct):
    """A file of one part or more. `remarks` are sentences about what could not be read."""

    path: Path
    parts: list[Part]
    remarks: list[str]

    @property
    def cut(self) -> bool:
        """Whether it ends before its end."""
        return self.parts[-1].end is None

    @property
    def dropped(self) -> int:
        """Lines that the disk was too slow for."""
        return sum(part.end.dropped for part in self.parts if part.end is not None)


_FORMAT: Final = FORMAT.encode()
_STAMP: Final = msgspec.json.Decoder(Stamp)
_END: Final = msgspec.json.Decoder(End)


class _Foreign(Struct):
    """Members by which recordings of other tools are told."""

    jsonrpc: object = None
    ns: object = None
    dir: object = None
    event: object = None
    format: object = None
    version: object = None


_FOREIGN: Final = msgspec.json.Decoder(_Foreign)


def read_transcript(path: Path) -> Transcript:
    """Read a whole file. Raises `UsageError` if it is no transcript or cannot be read."""
    parts: list[Part] = []
    remarks: list[str] = []
    faults = 0
    try:
        with path.open("rb") as file:
            for row, whole, line in _lines(file):
                header = read_header(line) if _FORMAT in line else None
                if header is not None:
                    parts.append(Part(_supported(path, header)))
                elif not parts:
                    raise UsageError(_what_it_is(path, line, whole=whole))
                elif not (fault := _take(parts[-1], row, line)):
                    continue
                elif whole:
                    faults += 1
                    if faults <= _REMARKS:
                        remarks.append(f"line {row} cannot be read and is left out: {fault}")
    except OSError as fault:
        msg = f"{path} cannot be read: {fault.strerror}"
        raise UsageError(msg) from None
    if not parts:
        msg = f"{path} is empty; a transcript begins with a header"
        raise UsageError(msg)
    if faults > _REMARKS:
        remarks.append(f"{faults - _REMARKS:,} more lines cannot be read")
    found = Transcript(path, parts, remarks)
    remarks += _gaps(found)
    return found


def _lines(file: Iterator[bytes]) -> Iterator[tuple[int, bool, bytes]]:
    """Rows from 1, whether each has its LF, and its bytes without it."""
    for row, line in enumerate(file, start=1):
        yield row, line.endswith(b"\n"), line.rstrip(b"\r\n")


def _take(part: Part, row: int, line: bytes) -> str:
    """Add a line to its part; what is wrong with it, if anything."""
    if not line.strip():
        return ""
    try:
        codec.check_content(line)
        if b'"end"' in line:
            with contextlib.suppress(DecodeFailure):  # of another event
                part.end = codec.decode(line, _END)
                return ""
        stamp = codec.decode(line, _STAMP)
    except DecodeFailure as fault:
        return str(fault)
    try:
        event = transcript.decode_event(line)
    except DecodeFailure as fault:
        if "Invalid value" not in str(fault) and "event" not in str(fault):
            return str(fault)
        event = None  # of a later version
    part.lines.append(Line(row, stamp, event, line))
    return ""


def _supported(path: Path, header: Header) -> Header:
    if header.version > FORMAT_VERSION:
        msg = (
            f"{path} has version {header.version} of the format, and this reads up to "
            f"{FORMAT_VERSION}; read it with the version that recorded it ({header.host or '?'})"
        )
        raise UsageError(msg)
    return header


def _what_it_is(path: Path, line: bytes, *, whole: bool) -> str:
    """Why a file that begins with `line` is no transcript."""
    advice = "a transcript is what --record writes"
    if not whole and _FORMAT in line:
        return f"{path} is cut off within its first line, so there is nothing to read"
    try:
        found = _FOREIGN.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return f"{path} is no transcript: its first line is no JSON object; {advice}"
    if found.ns is not None or found.dir is not None:
        return f"{path} is a recording of another tool (ns, method, args); {advice}"
    if found.jsonrpc is not None:
        return f"{path} holds bare JSON-RPC lines without time and direction; {advice}"
    if found.event is not None and found.format is None:
        return f"{path} holds events without a header, as --json prints; {advice}"
    return f"{path} is no transcript: its first line is not the header; {advice}"


def _gaps(found: Transcript) -> Iterator[str]:
    """What is missing, as far as the numbers tell."""
    for number, part in enumerate(found.parts, start=1):
        name = f"part {number}" if len(found.parts) > 1 else "it"
        missing = _missing(part)
        if missing:
            yield f"{name} lacks {missing:,} of its lines"
        if part.end is None:
            last = part.lines[-1].stamp.t if part.lines else 0.0
            yield (
                f"{name} is cut off after {last:.3f} s, {len(part.lines):,} lines: "
                "its host ended before the recording did"
            )
        elif part.end.dropped:
            yield f"{name} lacks {part.end.dropped:,} lines that the disk was too slow for"


def _missing(part: Part) -> int:
    expected = 0
    if part.lines:
        expected = part.lines[-1].stamp.n
    if part.end is not None:
        expected = part.end.lines
    return max(0, expected - len(part.lines))
