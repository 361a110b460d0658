"""A transport over two file descriptors.

Reads whatever the descriptors are: pipes and sockets through the loop, files,
terminals and the null device through a thread. Knows bytes, not lines.
"""

import asyncio
import os
import threading

from executa_protocol.aio.fds import is_pollable
from executa_protocol.aio.transport import Receiver
from executa_protocol.aio.writer import FdWriter
from executa_protocol.errors import ConnectionLost
from executa_protocol.limits import READ_CHUNK, WRITE_QUEUE


class FdTransport:
    """A `Transport` that owns `read_fd` and `write_fd` and closes both."""

    def __init__(
        self,
        read_fd: int,
        write_fd: int,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        write_limit: int = WRITE_QUEUE,
    ) -> None:
        self._loop = loop or asyncio.get_running_loop()
        self._fd = read_fd
        self._pollable = is_pollable(read_fd)
        if self._pollable:
            os.set_blocking(read_fd, False)
        self._receiver: Receiver | None = None
        self._paused = False
        self._resumed = threading.Event()
        self._resumed.set()
        self._lost = False
        self._writer = FdWriter(
            self._loop,
            write_fd,
            on_drained=self._drained,
            on_broken=self._write_broken,
            limit=write_limit,
        )

    @property
    def queued(self) -> int:
        return self._writer.queued

    @property
    def taken(self) -> int:
        return self._writer.taken

    @property
    def congested(self) -> bool:
        return self._writer.congested

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        if self._pollable:
            self._loop.add_reader(self._fd, self._readable)
        else:
            # A daemon, because nothing can interrupt a read of a terminal.
            threading.Thread(
                target=self._pump, args=(self._fd,), name="executa-read", daemon=True
            ).start()

    def write(self, frame: bytes) -> None:
        self._writer.write(frame)

    def poll(self) -> None:
        if self._pollable and self._fd >= 0 and not self._paused and self._receiver is not None:
            self._readable()

    def pause_reading(self) -> None:
        if self._paused or self._fd < 0:
            return
        self._paused = True
        self._resumed.clear()
        if self._pollable:
            self._loop.remove_reader(self._fd)

    def resume_reading(self) -> None:
        if not self._paused or self._fd < 0:
            return
        self._paused = False
        self._resumed.set()
        if self._pollable:
            self._loop.add_reader(self._fd, self._readable)

    def close_writing(self) -> None:
        self._writer.close_after_flush()

    def close(self) -> None:
        self._stop_reading()
        self._writer.close()
        self._lose(None)

    def _readable(self) -> None:
        try:
            data = os.read(self._fd, READ_CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as fault:
            self._stop_reading()
            self._lose(ConnectionLost(f"reading failed: {fault.strerror}"))
            return
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
        writer = self._writer
        writer.corked = True
        try:
            self._receiver.data_received(data)
        finally:
            writer.corked = False
            writer.flush()

    def _pump(self, fd: int) -> None:
        """Read in a thread, one chunk ahead of the loop and no more. Closes `fd` at its end."""
        taken = threading.Event()

        def hand_over(data: bytes) -> None:
            if data:
                self._deliver(data)
            else:
                self._stop_reading()
                self._lose(None)
            taken.set()

        data = b"more"
        try:
            while data and self._fd >= 0:
                self._resumed.wait()
                try:
                    data = os.read(fd, READ_CHUNK)
                except OSError:
                    data = b""
                taken.clear()
                self._loop.call_soon_threadsafe(hand_over, data)
                taken.wait()
        except RuntimeError:  # the loop has closed, so nobody reads on
            return
        finally:
            os.close(fd)

    def _stop_reading(self) -> None:
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        self._resumed.set()
        if self._pollable:
            if not self._paused and self._receiver is not None:
                self._loop.remove_reader(fd)
            os.close(fd)
        elif self._receiver is None:
            os.close(fd)

    def _drained(self) -> None:
        if self._receiver is not None and not self._lost:
            self._receiver.writing_drained()

    def _write_broken(self, reason: Exception) -> None:
        if self._receiver is not None and not self._lost:
            self._receiver.writing_broken(reason)

    def _lose(self, reason: Exception | None) -> None:
        if self._lost or self._receiver is None:
            return
        self._lost = True
        self._receiver.connection_lost(reason)
