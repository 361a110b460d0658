"""What a peer tells its owner, and the words for it."""

from collections.abc import Callable
from typing import Literal, Protocol

from msgspec import Struct

from executa_protocol.envelope import Message

Direction = Literal["in", "out"]
Tap = Callable[[Direction, bytes], None]
"""Sees every line as it crosses, its LF included, but for lines over the cap. One that raises is
taken off."""


class Diagnostic(Struct, frozen=True):
    """Something that the other side should not have done, and that harmed nothing else.

    `kind` is one of ``unreadable``, ``oversized``, ``tolerated``, ``stray``,
    ``unfinished`` and ``handler``; `sample` holds the first bytes of the line concerned.
    """

    kind: str
    message: str
    sample: bytes = b""


class Handler(Protocol):
    """The owner of a peer. Nothing here may block; a fault ends in the loop's exception handler."""

    def on_request(self, request: Message) -> None:
        """A request has come. Answer it once, now or later, by its `id`."""
        ...

    def on_notification(self, notification: Message) -> None:
        """A notification has come."""
        ...

    def on_diagnostic(self, diagnostic: Diagnostic) -> None:
        """The other side did something odd."""
        ...

    def on_closed(self, reason: Exception | None) -> None:
        """The connection has ended; calls in flight have failed already. Once.

        Closing the peer, which lets go of the transport, is still the owner's to do.
        """
        ...
