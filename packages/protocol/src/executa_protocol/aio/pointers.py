"""Answers that came by file: loaded beside the reader, each failing alone (R-12).

How a file is opened and what is checked on it is the loader's business.
"""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import UNSET

from executa_protocol.aio.calls import Call, error_of
from executa_protocol.envelope import Message
from executa_protocol.errors import PeerViolation

LoadPointer = Callable[[Message], Awaitable[Message]]
"""Gives the response that a pointer frame stands for, read from its file. May raise anything."""


class Pointers:
    """The loads under way on one connection. Without a `load` every pointer fails its call."""

    __slots__ = ("_load", "_tasks")

    def __init__(self, load: LoadPointer | None) -> None:
        self._load = load
        self._tasks: set[asyncio.Task[None]] = set()

    def follow(self, call: Call, pointer: Message) -> None:
        """Load the file that the frame names and let `call` have what it says."""
        if self._load is None:
            call.fail(PeerViolation("the answer came by file, which was not offered"))
            return
        loading = self._finish(self._load(pointer), call)
        task = asyncio.get_running_loop().create_task(loading)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel(self) -> None:
        """Stop all loads; their calls have failed already."""
        for task in self._tasks:
            task.cancel()

    async def _finish(self, loading: Awaitable[Message], call: Call) -> None:
        try:
            message = await loading
        except asyncio.CancelledError:
            call.fail(PeerViolation("the connection ended before the answer's file was read"))
            raise
        except Exception as fault:  # noqa: BLE001 - every failure is an error of this call alone
            call.fail(PeerViolation(f"the answer's file cannot be used: {fault}"))
            return
        call.by_file = True
        if message.error is not UNSET:
            call.fail(error_of(message.error))
        elif message.result is not UNSET:
            call.succeed(message.result)
        else:
            call.fail(PeerViolation("the answer's file holds no response"))
