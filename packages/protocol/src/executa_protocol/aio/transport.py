"""The seam between a peer and the bytes below it, as two promises.

Above stands a `Receiver` (the peer), below a `Transport` (file descriptors or
memory). Everything happens on one event loop; nothing here blocks.
"""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio


class Receiver(Protocol):
    """What a transport calls. The directions end apart: writing may go on after the last byte."""

    def data_received(self, data: bytes) -> None:
        """The next bytes, at most `READ_CHUNK` of them. Never called after `connection_lost`."""
        ...

    def connection_lost(self, reason: Exception | None) -> None:
        """No more bytes will come: the other side closed (None) or the stream broke. Once."""
        ...

    def writing_broken(self, reason: Exception) -> None:
        """The other side takes no more bytes. What it wrote before is still to come. Once."""
        ...

    def writing_drained(self) -> None:
        """Waiting bytes fell below the low-water mark after they had been above the high one."""
        ...


class Outgoing(Protocol):
    """The outgoing half of a transport."""

    @property
    def queued(self) -> int:
        """Bytes accepted by `write` that nobody has taken yet."""
        ...

    @property
    def taken(self) -> int:
        """Bytes handed over since the start."""
        ...

    @property
    def congested(self) -> bool:
        """Whether waiting bytes rose above the high-water mark and not yet below the low one."""
        ...

    def write(self, frame: bytes) -> None:
        """Queue one whole frame. Frames of one loop tick leave together, unless they are many.

        Raises `WriteQueueFull`, having queued nothing, and `ConnectionLost`. An empty queue
        takes any frame, because how long one may be is decided elsewhere.
        """
        ...

    def withdraw(self, position: int) -> bool:
        """Take back the frame at `position` (of `taken` and `queued`); False if it is too late."""
        ...


class Transport(Outgoing, Protocol):
    """What a peer needs of the bytes below it."""

    @property
    def loop(self) -> "asyncio.AbstractEventLoop":
        """The loop that everything here happens on."""
        ...

    @property
    def outgoing(self) -> Outgoing:
        """The outgoing half by itself: its members cost no step through this object."""
        ...

    def start(self, receiver: Receiver) -> None:
        """Begin to read. Does nothing once closed."""
        ...

    def poll(self) -> None:
        """Deliver now what has arrived already, without waiting. It may be left for later."""
        ...

    def pause_reading(self) -> None:
        """Deliver nothing until `resume_reading`."""
        ...

    def resume_reading(self) -> None:
        """Deliver again."""
        ...

    def close_writing(self) -> None:
        """End the outgoing stream once everything queued has left."""
        ...

    def close(self) -> None:
        """Let go of both directions at once; what is queued is lost. Idempotent.

        Tells the receiver, if it has not been told, that no more bytes will come.
        """
        ...
