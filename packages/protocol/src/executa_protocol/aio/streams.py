"""A transport over two file descriptors.

Reads whatever the descriptors are: pipes and sockets through the loop, files,
terminals and the null device through a thread. Knows bytes, not lines.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from executa_protocol.aio.fds import is_pollable
from executa_protocol.aio.writer import FdWriter
from executa_protocol.errors import ConnectionLost
from executa_protocol.limits import POLL_READS, READ_CHUNK, WRITE_QUEUE

if TYPE_CHECKING:
    import asyncio

    from executa_protocol.aio.pump import Pump
    from executa_protocol.aio.transport import Receiver
    from executa_protocol.aio.turns import Turns


class FdTransport:
    """A `Transport` that owns `read_fd` and `write_fd`, two descriptors, and closes both.

    With `turns` it shares each turn of the loop with others that have the same.
    """

    def __init__(
        self,
        read_fd: int,
        write_fd: int,
        *,
        loop: "asyncio.AbstractEventLoop | None" = None,
        write_limit: int = WRITE_QUEUE,
        turns: "Turns | None" = None,
    ) -> None:
        self.loop = loop or _running_loop()
        self._fd = read_fd
        self._pollable = is_pollable(read_fd)
        if self._pollable:
            os.set_blocking(read_fd, False)
        self._on_readable: Callable[[], object] = self._readable
        if turns is not None:
            self._on_readable = partial(turns.take, self.loop, self._read_in_turn)
        self._pump: Pump | None = None
        self._receiver: Receiver | None = None
        self._paused = False
        self._lost = False
        self.outgoing = FdWriter(
            self.loop,
            write_fd,
            on_drained=self._drained,
            on_broken=self._write_broken,
            limit=write_limit,
            soon=None if turns is None else partial(turns.soon, self.loop),
            others_wait=bool if turns is None else turns.others_wait,
        )

    @property
    def queued(self) -> int:
        return self.outgoing.queued

    @property
    def taken(self) -> int:
        return self.outgoing.taken

    @property
    def congested(self) -> bool:
        return self.outgoing.congested

    def write(self, frame: bytes) -> None:
        self.outgoing.write(frame)

    def withdraw(self, position: int) -> bool:
        return self.outgoing.withdraw(position)

    def start(self, receiver: "Receiver") -> None:
        if self._fd < 0:
            return
        self._receiver = receiver
        if not self._pollable:
            from executa_protocol.aio.pump import Pump  # noqa: PLC0415 - pipes and sockets are usual

            self._pump = Pump(self.loop, self._fd, self._arrived)
            if self._paused:
                self._pump.pause()
        elif not self._paused:
            self.loop.add_reader(self._fd, self._on_readable)

    def poll(self) -> None:
        # A full read may have left some; a short one has not.
        for _ in range(POLL_READS):
            if not self._is_reading() or not self._pollable or self._readable() < READ_CHUNK:
                return

    def pause_reading(self) -> None:
        if self._paused or self._fd < 0:
            return
        self._paused = True
        if self._pump is not None:
            self._pump.pause()
        elif self._receiver is not None:
            self.loop.remove_reader(self._fd)

    def resume_reading(self) -> None:
        if not self._paused or self._fd < 0:
            return
        self._paused = False
        if self._pump is not None:
            self._pump.resume()
        elif self._receiver is not None:
            self.loop.add_reader(self._fd, self._on_readable)

    def close_writing(self) -> None:
        self.outgoing.close_after_flush()

    def close(self) -> None:
        self._stop_reading()
        self.outgoing.close()
        self._lose(None)

    def _is_reading(self) -> bool:
        return self._fd >= 0 and not self._paused and self._receiver is not None

    def _read_in_turn(self) -> int:
        return self._readable() if self._is_reading() else 0

    def _readable(self) -> int:
        """Read once and deliver; how many bytes there were."""
        try:
            data = os.read(self._fd, READ_CHUNK)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as fault:
            self._stop_reading()
            self._lose(ConnectionLost(f"reading failed: {fault.strerror}"))
            return 0
        self._arrived(data)
        return len(data)

    def _arrived(self, data: bytes) -> None:
        if data:
            self._deliver(data)
        else:
            self._stop_reading()
            self._lose(None)

    def _deliver(self, data: bytes) -> None:
        if self._receiver is None or self._lost:
            return
        # What the receiver answers to these bytes leaves in one write, without
        # another turn of the loop.
        writer = self.outgoing
        writer.corked = True
        try:
            self._receiver.data_received(data)
        finally:
            writer.corked = False
            writer.flush()

    def _stop_reading(self) -> None:
        if self._fd < 0:
            return
        if self._pump is not None:
            self._pump.close()  # which owns the descriptor
        else:
            if self._is_reading() and self._pollable:
                self.loop.remove_reader(self._fd)
            os.close(self._fd)
        self._fd = -1

    def _drained(self) -> None:
        if self._receiver is not None:
            self._receiver.writing_drained()

    def _write_broken(self, reason: Exception) -> None:
        if self._receiver is not None:
            self._receiver.writing_broken(reason)

    def _lose(self, reason: Exception | None) -> None:
        if self._lost or self._receiver is None:
            return
        self._lost = True
        self._receiver.connection_lost(reason)


def _running_loop() -> "asyncio.AbstractEventLoop":
    import asyncio  # noqa: PLC0415 - a plugin that has a loop of its own does not load it

    return asyncio.get_running_loop()
