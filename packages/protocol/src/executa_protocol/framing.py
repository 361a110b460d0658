"""Bytes to lines, in bounded memory and without looking at a byte twice (R-10, R-11).

`LineSplitter` knows LF and the cap; what a line says is `envelope`'s business.
Lines come out with their LF still on (JSON reads past it, so cutting it off would
only copy), and CRLF therefore needs no care here.
"""

from io import BytesIO
from typing import Final

from msgspec import Struct

from executa_protocol.errors import UsageError
from executa_protocol.limits import HEAD_BYTES, KIB, MAX_LINE, MIN_LINE_CAP, READ_CHUNK

BOM: Final = b"\xef\xbb\xbf"
LF: Final = b"\n"

_VIEW_FROM: Final = 4 * KIB
"""From so many bytes on, the start of a line is kept as a view of what was read, and not
copied. The rest of what was read stays in memory with it, so only of one read."""


class Oversized(Struct, frozen=True):
    """A line over the cap: its first `HEAD_BYTES` bytes and its whole `size` in bytes."""

    head: bytes
    size: int


class LineSplitter:
    """Splits a byte stream on LF, and on nothing else.

    `max_line` is the most bytes that one line may have, its LF not counted. A
    longer line is drained to its LF without being kept, and comes out as
    `Oversized`. Never holds more than the cap and one chunk; only to join a line
    that came in pieces, its size is needed once more for a moment.
    """

    __slots__ = ("_dropped", "_fresh", "_head", "_held", "_max", "_parts")

    def __init__(self, max_line: int = MAX_LINE) -> None:
        if max_line < MIN_LINE_CAP:
            msg = f"the line cap is {max_line} bytes; it must be at least {MIN_LINE_CAP}"
            raise UsageError(msg)
        self._max = max_line
        self._parts: list[bytes | memoryview] = []  # the unfinished line
        self._held = 0  # bytes in _parts
        self._head = b""  # of a line that is being drained
        self._dropped = 0  # bytes drained of it so far; 0 when none is
        self._fresh = True  # nothing has come yet, so a BOM may

    @property
    def held(self) -> int:
        """Bytes kept for the unfinished line."""
        return self._held

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """Take the next bytes of the stream and return the lines that they finish."""
        if self._fresh:
            data = self._without_bom(data)
        first = data.find(LF) + 1
        if not first:  # part of a long line: kept as it is, not copied
            if data:
                self._hold(data)
            return []
        last = first if first == len(data) else data.rfind(LF) + 1
        lines: list[bytes | Oversized] = []
        if self._held or self._dropped:
            # A view: what is joined is not cut out before.
            lines.append(self._finish(memoryview(data)[:first]))
        elif first == len(data):  # one whole line is what a quiet connection reads
            lines.append(data)
        else:
            first = 0
        if first < last:
            rest = BytesIO(data)
            rest.seek(first)
            lines += rest.readlines(last - first)
        if len(data) > self._max:
            lines = [self._checked(line) for line in lines]
        if last < len(data):
            few = len(data) - last < _VIEW_FROM or len(data) > READ_CHUNK
            self._hold(data[last:] if few else memoryview(data)[last:])
        return lines

    def eof(self) -> bytes | Oversized | None:
        """The stream has ended: what is left without an LF, or None."""
        if self._dropped:
            rest: bytes | Oversized | None = Oversized(self._head, self._dropped)
        else:
            rest = b"".join(self._parts) or None
        self._reset()
        return rest

    def _without_bom(self, data: bytes) -> bytes:
        data = b"".join([*self._parts, data])
        if len(data) < len(BOM) and BOM.startswith(data):
            self._parts[:] = (data,)
            self._held = len(data)
            return b""
        self._fresh = False
        self._reset()
        return data.removeprefix(BOM)

    def _hold(self, data: bytes | memoryview) -> None:
        if self._dropped:
            self._dropped += len(data)
            return
        parts = self._parts
        parts.append(data)
        self._held += len(data)
        if self._held > self._max:
            self._head = _start_of(parts)
            self._dropped = self._held
            self._parts, self._held = [], 0
            return
        # Many tiny pieces would cost far more than the bytes in them: join like
        # with like, so that a byte is copied a few times at most and the list is short.
        while len(parts) > 1 and len(parts[-2]) <= len(parts[-1]) < READ_CHUNK:
            newest = parts.pop()
            parts[-1] = b"".join((parts[-1], newest))

    def _finish(self, data: bytes | memoryview) -> bytes | Oversized:
        if not self._dropped:
            self._parts.append(data)
            line = b"".join(self._parts)
            self._reset()
            return self._checked(line)
        whole = Oversized(self._head, self._dropped + len(data) - 1)
        self._reset()
        return whole

    def _checked(self, line: bytes | Oversized) -> bytes | Oversized:
        if isinstance(line, bytes) and len(line) - 1 > self._max:
            return Oversized(line[:HEAD_BYTES], len(line) - 1)
        return line

    def _reset(self) -> None:
        self._parts, self._held = [], 0
        self._head, self._dropped = b"", 0


def _start_of(parts: list[bytes | memoryview]) -> bytes:
    """The first `HEAD_BYTES` of a line in parts, without joining all of it."""
    head = b""
    for part in parts:
        if len(head) < HEAD_BYTES:
            head += part[: HEAD_BYTES - len(head)]
    return head
