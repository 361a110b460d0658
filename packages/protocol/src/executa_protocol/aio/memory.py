"""Two transports joined in memory, with the contract of the ones over descriptors.

For tests and for hosts in the same process: bytes arrive on a later turn of the
loop, in order, in pieces of at most `READ_CHUNK`, and wait while the receiving side
is paused or has not started.
"""

import asyncio

from executa_protocol.aio.transport import Receiver
from executa_protocol.errors import ConnectionLost, WriteQueueFull
from executa_protocol.limits import READ_CHUNK, WRITE_HIGH_WATER, WRITE_LOW_WATER, WRITE_QUEUE


class _Lane:
    """One direction: bytes on their way from `sender` to `receiver`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.buffer = bytearray()
        self.taken = 0
        self.sender: Receiver | None = None
        self.receiver: Receiver | None = None
        self.paused = False
        self.ended = False  # the sender will write no more
        self.closed = False  # the receiver will read no more
        self.congested = False
        self._scheduled = False

    def schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self.loop.call_soon(self.hand_over)

    def hand_over(self) -> None:
        self._scheduled = False
        receiver = self.receiver
        if self.closed:
            self.break_off()
            return
        if receiver is None or self.paused:
            return
        if self.buffer:
            data = bytes(self.buffer[:READ_CHUNK])
            del self.buffer[: len(data)]
            self.taken += len(data)
            receiver.data_received(data)
            if self.congested and len(self.buffer) <= WRITE_LOW_WATER:
                self.congested = False
                if self.sender is not None:
                    self.sender.writing_drained()
        if self.buffer:
            self.schedule()
        elif self.ended:
            self.finish()

    def break_off(self) -> None:
        """Tell the sender, once, that nobody takes what it has written."""
        if not self.buffer:
            return
        self.buffer.clear()
        self.congested = False
        if self.sender is not None and not self.ended:
            self.ended = True
            self.sender.writing_broken(ConnectionLost("writing failed: the other side has closed"))

    def finish(self) -> None:
        """Tell the receiver, once, that nothing more comes."""
        if not self.closed:
            self.closed = True
            self.schedule()
            if self.receiver is not None:
                self.receiver.connection_lost(None)


class MemoryTransport:
    """One end of a pair; see `memory_pair`."""

    def __init__(self, incoming: _Lane, outgoing: _Lane, write_limit: int) -> None:
        self._in = incoming
        self._out = outgoing
        self.loop = outgoing.loop
        self.outgoing = self
        self._limit = write_limit

    @property
    def queued(self) -> int:
        return len(self._out.buffer)

    @property
    def taken(self) -> int:
        return self._out.taken

    @property
    def congested(self) -> bool:
        return self._out.congested

    def start(self, receiver: Receiver) -> None:
        if self._in.closed:
            return
        self._in.receiver = self._out.sender = receiver
        self._in.schedule()

    def write(self, frame: bytes) -> None:
        out = self._out
        if out.ended or out.closed:
            msg = "the outgoing stream is closed"
            raise ConnectionLost(msg, written=False)
        if out.buffer and len(out.buffer) + len(frame) > self._limit:
            raise WriteQueueFull(len(out.buffer), self._limit)
        out.buffer += frame
        if len(out.buffer) > WRITE_HIGH_WATER:
            out.congested = True
        out.schedule()

    def withdraw(self, position: int) -> bool:
        del position  # what was written here is on its way already
        return False

    def poll(self) -> None:
        self._in.hand_over()

    def pause_reading(self) -> None:
        self._in.paused = True

    def resume_reading(self) -> None:
        self._in.paused = False
        self._in.schedule()

    def close_writing(self) -> None:
        self._out.ended = True
        self._out.schedule()

    def close(self) -> None:
        self._out.ended = True
        self._out.congested = False
        self._out.buffer.clear()
        self._out.schedule()
        self._in.finish()


def memory_pair(write_limit: int = WRITE_QUEUE) -> tuple[MemoryTransport, MemoryTransport]:
    """Two ends: what one writes, the other receives. Call it on a running loop."""
    loop = asyncio.get_running_loop()
    there, back = _Lane(loop), _Lane(loop)
    return MemoryTransport(back, there, write_limit), MemoryTransport(there, back, write_limit)
