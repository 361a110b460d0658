"""Turns for read-change-write on one key, for all calls of this process.

Etags alone make writers of one process race each other for nothing, and cannot guard a
key that does not exist yet. Everything here happens on the loop.
"""

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

Key = tuple[str, str]
"""A scope and a key in it."""


class KeyLocks:
    """Who may change which key now, first come, first served."""

    __slots__ = ("_loop", "_queues")

    def __init__(self, loop: "asyncio.AbstractEventLoop") -> None:
        self._loop = loop
        self._queues: dict[Key, deque[Ticket]] = {}

    def ticket(self, key: Key) -> "Ticket":
        """A place in the queue for `key`; it counts once `Ticket.take` is called."""
        return Ticket(self._queues, key, self._loop)


class Ticket:
    """One turn. Whatever happens after `take`, `leave` must be called."""

    __slots__ = ("_future", "_key", "_loop", "_queues")

    def __init__(
        self, queues: "dict[Key, deque[Ticket]]", key: Key, loop: "asyncio.AbstractEventLoop"
    ) -> None:
        self._loop = loop
        self._queues = queues
        self._key = key
        self._future: asyncio.Future[None] | None = None

    def take(self) -> "asyncio.Future[None]":
        """Queue; the future is done when it is our turn."""
        self._future = future = self._loop.create_future()
        queue = self._queues.setdefault(self._key, deque())
        queue.append(self)
        if queue[0] is self:
            future.set_result(None)
        return future

    def leave(self) -> None:
        """End the turn, or stop waiting for it."""
        queue = self._queues.get(self._key)
        if queue is None or self not in queue:
            return
        was_first = queue[0] is self
        queue.remove(self)
        if not queue:
            del self._queues[self._key]
        elif was_first:
            queue[0].grant()

    def grant(self) -> None:
        """It is our turn."""
        if self._future is not None and not self._future.done():
            self._future.set_result(None)
