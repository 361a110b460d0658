"""Lines over two descriptors, one after the other: what both sides of a replay speak through."""

import asyncio

from executa_protocol.aio.streams import FdTransport
from executa_protocol.errors import ConnectionLost
from executa_protocol.framing import LineSplitter, Oversized


class Wire:
    """The lines of another process. Owns both descriptors."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._transport = FdTransport(read_fd, write_fd)
        self._splitter = LineSplitter()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._broken = False
        self._transport.start(self)

    async def line(self, within: float) -> bytes | None:
        """The next line without its LF; None at the end. Raises `TimeoutError`."""
        async with asyncio.timeout(within):
            line = await self._lines.get()
        if line is None:
            self._lines.put_nowait(None)  # an end is one for whoever asks again
        return line

    def send(self, line: bytes) -> None:
        """Write a line with its LF; nothing if the other side reads no more."""
        if not self._broken:
            try:
                self._transport.write(line)
            except ConnectionLost:
                self._broken = True

    def close_writing(self) -> None:
        """Say that no more will come."""
        self._transport.close_writing()

    def close(self) -> None:
        """Let go of both descriptors."""
        self._transport.close()

    # --- What the transport tells ------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        for line in self._splitter.feed(data):
            self._put(line)

    def connection_lost(self, reason: Exception | None) -> None:
        del reason
        rest = self._splitter.eof()
        if rest:
            self._put(rest)
        self._lines.put_nowait(None)

    def writing_broken(self, reason: Exception) -> None:
        del reason
        self._broken = True

    def writing_drained(self) -> None:
        """Nobody waits for it."""

    def _put(self, line: bytes | Oversized) -> None:
        content = line.head if isinstance(line, Oversized) else line.rstrip(b"\r\n")
        if content.strip():
            self._lines.put_nowait(content)
