"""What a plugin writes to stderr: lines in a ring, passed on at a bounded rate.

Owns the bytes between two lines and the last lines there were. Whatever a plugin
writes, in whatever encoding and however fast, costs bounded memory here and bounded work
for whoever follows.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from executa_host.rate import RateLimit
from executa_protocol.limits import STDERR_LINE_CHARS, STDERR_LINES

_REST: Final = 4 * STDERR_LINE_CHARS
"""Bytes of a line that has not ended: its characters have at most four each."""


class StderrLog:
    """The lines of one process. `on_line` gets those that `limit` lets through.

    `on_dropped` is told, before the next line that passes, how many did not.
    """

    def __init__(
        self,
        limit: RateLimit,
        on_line: Callable[[str], None],
        on_dropped: Callable[[int], None],
    ) -> None:
        self.lines: deque[str] = deque(maxlen=STDERR_LINES)
        """The last lines, also those that were not passed on."""
        self.count = 0
        """How many lines there were."""
        self._limit = limit
        self._on_line = on_line
        self._on_dropped = on_dropped
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        lines = (self._rest + data).split(b"\n")
        # A line without an end is cut rather than kept whole.
        self._rest = lines.pop()[:_REST]
        self.count += len(lines)
        excess = len(lines) - STDERR_LINES
        if excess > 0:  # the ring would forget them at once
            self._limit.dropped += excess
            lines = lines[excess:]
        for line in lines:
            self._take(line)

    def close(self) -> None:
        """No more bytes will come."""
        rest, self._rest = self._rest, b""
        if rest:
            self.count += 1
            self._take(rest)
        self._tell_dropped()

    def _take(self, line: bytes) -> None:
        text = line[:_REST].decode(errors="replace").rstrip("\r")[:STDERR_LINE_CHARS]
        self.lines.append(text)
        if self._limit.allow():
            self._tell_dropped()
            self._on_line(text)

    def _tell_dropped(self) -> None:
        count = self._limit.take_dropped()
        if count:
            self._on_dropped(count)
