"""What a handler is given: the request, who asks, and what it needs to answer.

Owns the small things that all handlers do with a request, and what happens to them when the
server goes away. It knows no endpoint.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from aiohttp import web
from msgspec import Struct

from executa_host.actions.requests import Caller
from executa_host.api.limits import BODY_SECONDS, HEARTBEAT, STALL_SECONDS
from executa_protocol.limits import WAIT_MAX

T = TypeVar("T")


class Pace(Struct, frozen=True, kw_only=True):
    """How long things take, in seconds; tests are less patient."""

    heartbeat: float = HEARTBEAT
    stall: float = STALL_SECONDS
    body: float = BODY_SECONDS
    sync: float = WAIT_MAX


DEFAULT_PACE: Final = Pace()


class Closing(Exception):
    """The server goes away: whoever waits is answered with what there is."""


class Lifeline:
    """Whether the server goes away, and what must be finished before it has gone.

    Waits and streams end when it closes. A change that was begun is finished, whether or not
    the client that asked for it is still there (R-51).
    """

    def __init__(self) -> None:
        self.draining = False
        """New work is refused; set before `close`."""
        self._closed = asyncio.Event()
        self._changes: set[asyncio.Task[Any]] = set()

    @property
    def in_flight(self) -> int:
        """Changes that are under way."""
        return len(self._changes)

    def close(self) -> None:
        """Wake whoever waits."""
        self.draining = True
        self._closed.set()

    async def wait(self, work: Awaitable[T]) -> T:
        """The outcome of `work`, which is given up when the server goes away.

        Raises `Closing`, and what `work` raises.
        """
        task = asyncio.ensure_future(work)
        closed = asyncio.ensure_future(self._closed.wait())
        try:
            await asyncio.wait((task, closed), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
        finally:
            left = [each for each in (task, closed) if not each.done()]
            for each in left:
                each.cancel()
            if left:
                await asyncio.wait(left)
        raise Closing

    async def change(self, work: Coroutine[Any, Any, T]) -> T:
        """Do `work` to its end, also when the client goes away meanwhile."""
        task = asyncio.ensure_future(work)
        self._changes.add(task)
        task.add_done_callback(self._changed)
        return await asyncio.shield(task)

    async def finish(self, within: float) -> None:
        """Wait for every change that was begun, and give up those that take longer."""
        if self._changes:
            await asyncio.wait(self._changes, timeout=within)
        for task in self._changes:
            task.cancel()
        if self._changes:
            await asyncio.wait(self._changes)

    def _changed(self, task: "asyncio.Task[Any]") -> None:
        self._changes.discard(task)
        if not task.cancelled():
            task.exception()  # told to the client, if there is one left


class Visit(Struct, frozen=True, kw_only=True):
    """One request of one caller. `body` and `query` have been read and fit their shapes."""

    request: web.Request
    caller: Caller
    body: Any
    query: Any
    still: Callable[[], bool]
    """Whether the caller's key still is valid, for what takes long. Raises `KeysUnreadable`."""

    def part(self, name: str) -> str:
        """A variable part of the path."""
        return self.request.match_info[name]


NOBODY: Final = Caller(principal="", scopes=frozenset())
"""Who asks where nobody has to say."""
