"""Both ends of a wire for tests: transports of every kind, and owners that remember.

Nothing here sleeps: `until` waits for what is told, and gives up after a while.
"""

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from executa_protocol.aio.handler import Diagnostic
from executa_protocol.aio.memory import memory_pair
from executa_protocol.aio.peer import Peer
from executa_protocol.aio.streams import FdTransport
from executa_protocol.aio.transport import Transport
from executa_protocol.codec import encode
from executa_protocol.envelope import Id, Message

Kind = Literal["memory", "pipes", "sockets"]
KINDS: tuple[Kind, ...] = ("memory", "pipes", "sockets")

PATIENCE = 20.0
"""Seconds after which a test that waits has failed."""


class Changing:
    """Something that changes, and that one can wait for."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """Let those who wait look again."""
        self._changed.set()

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait, within bounds, until `holds` is true."""
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self._changed.clear()
                await self._changed.wait()


async def turns(count: int = 10) -> None:
    """Let the loop run for a few turns, which takes no time."""
    for _ in range(count):
        await asyncio.sleep(0)


class Recorder(Changing):
    """A receiver that remembers what its transport told, and in which order."""

    def __init__(self) -> None:
        super().__init__()
        self.data = bytearray()
        self.sizes: list[int] = []
        self.events: list[str] = []
        self.reasons: list[Exception | None] = []

    def data_received(self, data: bytes) -> None:
        assert not self.has("lost"), "bytes after the end"
        assert data, "no bytes"
        self.data += data
        self.sizes.append(len(data))
        self._tell("data")

    def connection_lost(self, reason: Exception | None) -> None:
        assert not self.has("lost"), "the end twice"
        self.reasons.append(reason)
        self._tell("lost")

    def writing_broken(self, reason: Exception) -> None:
        assert not self.has("broken"), "broken twice"
        self.reasons.append(reason)
        self._tell("broken")

    def writing_drained(self) -> None:
        self._tell("drained")

    def has(self, event: str) -> bool:
        """Whether this was told."""
        return event in self.events

    def _tell(self, event: str) -> None:
        self.events.append(event)
        self.changed()


class Stranger(Recorder):
    """The other side of a peer, byte by byte: sends what it likes and keeps what comes."""

    def __init__(self, transport: Transport) -> None:
        super().__init__()
        self.transport = transport

    def send(self, *messages: Any) -> None:
        """Send bytes as they are, and anything else as a line of JSON."""
        for message in messages:
            line = message if isinstance(message, bytes) else encode(message) + b"\n"
            self.transport.write(line)

    @property
    def lines(self) -> list[Any]:
        """Every whole line that came, decoded."""
        return [msgspec.json.decode(line) for line in bytes(self.data).split(b"\n")[:-1]]

    async def receive(self, count: int) -> list[Any]:
        """Wait for this many lines in all."""
        await self.until(lambda: self.data.count(b"\n") >= count)
        return self.lines


class Owner(Changing):
    """A handler that remembers, and that answers requests with `answer`, if there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Message] = []
        self.notifications: list[Message] = []
        self.diagnostics: list[Diagnostic] = []
        self.closings: list[Exception | None] = []
        self.answer: Callable[[Message], None] | None = None

    def on_request(self, request: Message) -> None:
        self.requests.append(request)
        self.changed()
        if self.answer is not None:
            self.answer(request)

    def on_notification(self, notification: Message) -> None:
        self.notifications.append(notification)
        self.changed()

    def on_diagnostic(self, diagnostic: Diagnostic) -> None:
        self.diagnostics.append(diagnostic)
        self.changed()

    def on_closed(self, reason: Exception | None) -> None:
        self.closings.append(reason)
        self.changed()

    @property
    def kinds(self) -> list[str]:
        """The kinds of the diagnostics, in order."""
        return [diagnostic.kind for diagnostic in self.diagnostics]


class End:
    """A peer with its owner."""

    def __init__(self, transport: Transport, **options: Any) -> None:
        self.owner = Owner()
        self.transport = transport
        self.peer = Peer(transport, self.owner, **options)

    def echo(self) -> None:
        """Answer every request from now on with its own params."""
        self.owner.answer = lambda request: self.peer.reply(
            id_of(request), b"null" if request.params is UNSET else bytes(request.params)
        )


def id_of(message: Message) -> Id:
    """The id, which there is."""
    assert message.id is not UNSET
    return message.id


def transport_pair(kind: Kind, **options: Any) -> tuple[Transport, Transport]:
    """Two transports: what one writes, the other receives."""
    if kind == "memory":
        return memory_pair(**options)
    there, back = (_pipe(), _pipe()) if kind == "pipes" else (_socketpair(), _socketpair())
    return FdTransport(back[0], there[1], **options), FdTransport(there[0], back[1], **options)


def _pipe() -> tuple[int, int]:
    return os.pipe()


def _socketpair() -> tuple[int, int]:
    reading, writing = socket.socketpair()
    return reading.detach(), writing.detach()
