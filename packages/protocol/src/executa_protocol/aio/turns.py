"""How much the transports of one loop read before what they have read is worked on.

A loop first reads all that is readable and then runs what was waiting for it. With two
hundred busy plugins thousands of answers would be read before the first caller saw one: by
then nothing of them is in the processor's caches, and the other sides have had nothing to do.

In smaller pieces, though, a plugin that is called now and then would get each call by itself,
and be woken for each. So while some still wait to be read, what is few waits to be written.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from executa_protocol.limits import READ_CHUNK

if TYPE_CHECKING:
    import asyncio

TURN_BYTES: Final = 2 * READ_CHUNK
"""Read by all together before those that come then must wait for what it brought to be worked
on. That much is worked on within the caches."""

_LITTLE: Final = 4 * 1024
"""Reads up to here are not counted: what they bring is quickly done."""

Read = Callable[[], int]
"""Reads once and delivers; gives the number of bytes, 0 also if there is nothing to read."""

Write = Callable[[], None]
"""Hands over what is there. Raises nothing."""


class Turns:
    """What transports of one loop share so that each turn of it reads so much and no more.

    Who comes too late in a turn is served in the next, in order and before all others, so
    that everybody is.
    """

    __slots__ = ("_due", "_held", "_late", "_left", "_waiting")

    def __init__(self) -> None:
        self._left = TURN_BYTES
        self._waiting: deque[Read] = deque()
        self._late: set[Read] = set()  # those in `_waiting`
        self._held: list[Write] = []
        self._due = False  # `_next` is

    def take(self, loop: "asyncio.AbstractEventLoop", read: Read) -> None:
        """`read` now or in its turn; the loop may well ask again meanwhile."""
        if self._left > 0 and not self._waiting:
            count = read()
            if count > _LITTLE:
                self._left -= count
        elif read not in self._late:
            self._late.add(read)
            self._waiting.append(read)
            self._soon_next(loop)

    def soon(self, loop: "asyncio.AbstractEventLoop", write: Write) -> None:
        """`write` at the end of this turn, or when all that wait by now have been read."""
        if not self._waiting:
            loop.call_soon(write)
            return
        if not self._held:
            self._waiting.append(self._release)
        self._held.append(write)

    def others_wait(self) -> bool:
        """Whether somebody waits for a next turn."""
        return bool(self._waiting)

    def _release(self) -> int:
        held, self._held = self._held, []
        for write in held:
            write()
        return 0

    def _soon_next(self, loop: "asyncio.AbstractEventLoop") -> None:
        if not self._due:
            self._due = True
            loop.call_soon(self._next, loop)

    def _next(self, loop: "asyncio.AbstractEventLoop") -> None:
        """What was read before has been worked on: serve those that wait."""
        self._due = False
        self._left = TURN_BYTES
        waiting = self._waiting
        try:
            while waiting and self._left > 0:
                read = waiting.popleft()
                self._late.discard(read)
                self._left -= read()
        finally:
            if waiting:
                self._soon_next(loop)
