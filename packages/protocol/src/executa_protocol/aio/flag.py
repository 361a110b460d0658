"""A flag that coroutines wait for, on any loop that makes futures.

What `asyncio.Event` does, without `asyncio`: a plugin that needs none of it does not load it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


class Flag:
    """Up or down. Belongs to one loop, and is touched only there."""

    __slots__ = ("_loop", "_up", "_waiting")

    def __init__(self, loop: "asyncio.AbstractEventLoop") -> None:
        self._loop = loop
        self._up = False
        self._waiting: list[asyncio.Future[None]] = []

    def is_set(self) -> bool:
        """Whether it is up."""
        return self._up

    def set(self) -> None:
        """Raise it, and wake all who wait."""
        self._up = True
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def clear(self) -> None:
        """Lower it."""
        self._up = False

    async def wait(self) -> None:
        """Wait until it is raised, if it is not up."""
        if not self._up:
            future: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(future)
            try:
                await future
            finally:
                if future.cancelled():
                    self._waiting = [each for each in self._waiting if each is not future]
