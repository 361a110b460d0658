"""Answers that came by file: loaded beside the reader, each failing alone (R-12).

How a file is opened and what is checked on it is the loader's business. The call stays
in flight meanwhile, so that its deadline and the end of the connection reach it.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import UNSET, Raw

from executa_protocol.envelope import Message
from executa_protocol.errors import PeerViolation

if TYPE_CHECKING:
    import asyncio

LoadPointer = Callable[[Message], Awaitable[Message]]
"""Gives the response that a pointer frame stands for, read from its file. May raise anything."""


class Waiting(Protocol):
    """A call, as far as its answer's file is concerned."""

    future: "asyncio.Future[Raw]"
    by_file: bool


class Pointers:
    """The loads under way on one connection. Without a `load` every pointer fails its call."""

    __slots__ = ("_load", "_tasks")

    def __init__(self, load: LoadPointer | None) -> None:
        self._load = load
        self._tasks: set[asyncio.Task[None]] = set()

    def follow(
        self, call: Waiting, pointer: Message, settle: Callable[[Message | Exception], None]
    ) -> None:
        """Load the file that the frame names and `settle` the call with what it says.

        A call that ends before its file is read takes the load with it.
        """
        if self._load is None:
            settle(PeerViolation("the answer came by file, which was not offered"))
            return
        import asyncio  # noqa: PLC0415 - plugins load no pointers, and may do without it

        call.by_file = True
        finishing = self._finish(self._load, pointer, settle)
        task = asyncio.get_running_loop().create_task(finishing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        call.future.add_done_callback(lambda _: task.cancel())

    async def _finish(
        self, load: LoadPointer, pointer: Message, settle: Callable[[Message | Exception], None]
    ) -> None:
        import asyncio  # noqa: PLC0415 - as above

        try:
            message = await load(pointer)
        except asyncio.CancelledError:
            settle(PeerViolation("reading the answer's file was cancelled"))
            raise
        except Exception as fault:  # noqa: BLE001 - every failure is an error of this call alone
            settle(PeerViolation(f"the answer's file cannot be used: {fault}"))
            return
        if message.error is UNSET and message.result is UNSET:
            settle(PeerViolation("the answer's file holds no response"))
            return
        if message.result is not UNSET:
            message.result = _one_line(message.result)
        settle(message)


def _one_line(result: Raw) -> Raw:
    """A file may be laid out over several lines; who sends its content on may not."""
    text = bytes(result)
    return Raw(msgspec.json.format(text, indent=-1)) if b"\n" in text else result
