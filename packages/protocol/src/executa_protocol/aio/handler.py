"""What a peer tells its owner, and the words for it."""

from collections.abc import Callable
from typing import Any, Literal, Protocol

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


class Plain(Protocol):
    """A request that a `Shortcut` has read."""

    @property
    def id(self) -> int | float | str:
        """As in a `Message`."""
        ...

    @property
    def method(self) -> str:
        """As in a `Message`."""
        ...


class Shortcut(Protocol):
    """A quicker way for lines that an owner expects often, and can read better than anybody."""

    def quick_request(self, line: bytes) -> Plain | None:
        """The request on a line, read as exactly as `envelope.parse` would with all it leads to.

        None leaves the line to it, whatever is the matter.
        """
        ...

    def on_quick_request(self, request: Any) -> None:
        """What `on_request` is for others. The request is open, and is answered once."""
        ...


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
