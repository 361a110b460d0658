"""Frames out through a file descriptor: few writes a loop tick, bounded, never blocking.

The frames that one tick produces leave together, which costs a third less than a system
call for each; of many, those that are there leave at once, so that the other side works
meanwhile. When the pipe is full the rest waits for the loop to say that it is writable; how
much may wait is the caller's `limit`.
"""

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from executa_protocol.aio.fds import has_cores, is_pollable
from executa_protocol.errors import ConnectionLost, WriteQueueFull
from executa_protocol.limits import READ_CHUNK, WRITE_HIGH_WATER, WRITE_LOW_WATER, WRITE_QUEUE

if TYPE_CHECKING:
    import asyncio

_BATCH = 4 * READ_CHUNK
"""Bytes that are joined for one write: a pipe seldom takes more, and the rest is put back."""

_FEW = 32
"""Frames of one tick that wait for each other; with more, the other side could already work,
if there is a core for it."""

_GONE = (errno.EPIPE, errno.ECONNRESET, errno.EBADF)


class FdWriter:
    """Owns `fd` and closes it. `on_drained` and `on_broken` are called from the loop.

    `soon` has a callback called at the end of the tick, which is what the loop's `call_soon`
    does. While `others_wait` the other sides have enough to do, and twice as many frames wait
    for each other.
    """

    __slots__ = (
        "_batch",
        "_closing",
        "_fd",
        "_few",
        "_frames",
        "_limit",
        "_loop",
        "_on_broken",
        "_on_drained",
        "_others_wait",
        "_pollable",
        "_rest",
        "_scheduled",
        "_soon",
        "_waiting",
        "_withdrawn",
        "congested",
        "corked",
        "queued",
        "taken",
    )

    def __init__(
        self,
        loop: "asyncio.AbstractEventLoop",
        fd: int,
        *,
        on_drained: Callable[[], None],
        on_broken: Callable[[Exception], None],
        limit: int = WRITE_QUEUE,
        soon: Callable[[Callable[[], None]], object] | None = None,
        others_wait: Callable[[], bool] = bool,
    ) -> None:
        self._others_wait = others_wait
        self._loop = loop
        self._soon = soon or loop.call_soon
        self._fd = fd
        self._few = _FEW if has_cores() else sys.maxsize
        self._limit = limit
        self._on_drained = on_drained
        self._on_broken = on_broken
        self._frames: list[bytes | int] = []  # an int is the size of one that was withdrawn
        self._batch: list[bytes] = []  # the frames that are being written
        self._rest = memoryview(b"")  # what is left of them
        self._withdrawn = 0  # bytes of them that were
        self._scheduled = False
        self._waiting = False  # for the loop to say that fd is writable
        self.congested = False
        self._closing = False
        self.corked = False  # the owner flushes; do not schedule
        self.queued = 0
        self.taken = 0
        self._pollable = is_pollable(fd)
        if self._pollable:
            os.set_blocking(fd, False)

    def write(self, frame: bytes) -> None:
        """Queue one frame. Raises `WriteQueueFull` or `ConnectionLost`, having queued nothing."""
        if self._fd < 0 or self._closing:
            msg = "the outgoing stream is closed"
            raise ConnectionLost(msg, written=False)
        queued = self.queued + len(frame)
        if queued - self._withdrawn > self._limit and self.queued > self._withdrawn:
            raise WriteQueueFull(self.queued - self._withdrawn, self._limit)
        self.queued = queued
        if queued > WRITE_HIGH_WATER:
            self.congested = True
        frames = self._frames
        frames.append(frame)
        if self._waiting:
            return
        if not (self.corked or self._scheduled):
            self._scheduled = True
            self._soon(self.flush)
        if len(frames) >= self._few and (not self._others_wait() or len(frames) >= 2 * self._few):
            with suppress(OSError):  # which `flush` meets again, and is the one to tell
                self._hand_over()

    def flush(self) -> None:
        """Hand over as much as the descriptor takes now."""
        self._scheduled = False
        if self._waiting or self._fd < 0:
            return
        try:
            self._hand_over()
        except OSError as fault:
            self._break(fault)
            return
        if self.congested and self.queued <= WRITE_LOW_WATER:
            self.congested = False
            self._on_drained()
        if self._closing and not self.queued:
            self.close()

    def _hand_over(self) -> None:
        try:
            while self._rest or self._frames:
                if not self._rest:
                    self._rest = self._joined()
                    if not self._rest:  # nothing but frames that were withdrawn
                        continue
                count = os.write(self._fd, self._rest)
                self._rest = self._rest[count:]
                self.queued -= count
                self.taken += count
        except BlockingIOError:
            self._put_back()
            self._waiting = True
            self._loop.add_writer(self._fd, self._writable)

    def _joined(self) -> memoryview:
        """The next frames in one piece, all of them as long as they are few."""
        if self.queued > _BATCH or self._withdrawn:
            self._batch = self._next_batch()
        else:
            self._batch = cast("list[bytes]", self._frames)
            self._frames = []
        return memoryview(b"".join(self._batch))

    def _next_batch(self) -> list[bytes]:
        """As many frames as a pipe takes; the withdrawn ones before them are passed."""
        batch: list[bytes] = []
        size = passed = 0
        for frame in self._frames:
            if isinstance(frame, int):
                if batch:
                    break  # its bytes count as taken when those before it are
                self.queued -= frame
                self.taken += frame
                self._withdrawn -= frame
            elif size >= _BATCH:
                break
            else:
                batch.append(frame)
                size += len(frame)
            passed += 1
        del self._frames[:passed]
        return batch

    def _put_back(self) -> None:
        """The pipe is full: frames of which nothing has left can still be withdrawn."""
        batch, left, begun = self._batch, len(self._rest), len(self._batch)
        while begun and len(batch[begun - 1]) <= left:
            begun -= 1
            left -= len(batch[begun])
        self._rest = self._rest[:left]
        self._frames[:0] = batch[begun:]
        self._batch = batch[max(0, begun - 1) : begun]

    def withdraw(self, position: int) -> bool:
        """Take back the frame that begins at `position`; False if it has begun to leave.

        Its bytes count as queued until the stream has come past them, so that the positions
        of other frames stay true.
        """
        frames = self._frames
        start = self.taken + len(self._rest)
        for index, frame in enumerate(frames):
            if start == position and not isinstance(frame, int):
                frames[index] = len(frame)
                self._withdrawn += len(frame)
                if index and isinstance(before := frames[index - 1], int):
                    # Neighbours become one: those withdrawn in order are found at once.
                    frames[index - 1 : index + 1] = [before + len(frame)]
                return True
            start += frame if isinstance(frame, int) else len(frame)
        return False

    def _writable(self) -> None:
        self._loop.remove_writer(self._fd)
        self._waiting = False
        self.flush()

    def _break(self, fault: OSError) -> None:
        self.close()
        reason = "the other side has closed its end" if fault.errno in _GONE else str(fault)
        self._on_broken(ConnectionLost(f"writing failed: {reason}"))

    def close_after_flush(self) -> None:
        """Close once everything queued has left."""
        self._closing = True
        self.flush()

    def close(self) -> None:
        """Close now; what is queued is lost. Idempotent."""
        if self._fd < 0:
            return
        if self._waiting:
            self._loop.remove_writer(self._fd)
            self._waiting = False
        fd, self._fd = self._fd, -1
        self.congested = False
        self._frames.clear()
        self._batch = []
        self._withdrawn = 0
        self._rest = memoryview(b"")
        self.queued = 0
        os.close(fd)
