"""How a tool waits for the loop: by awaiting, by blocking its thread, or not at all.

The clients are written once, as coroutines. In a task their awaits are real. In a thread
the same coroutines never suspend: what they await blocks the thread and is there at once,
so `run_blocking` drives them to their end in a single step.
"""

import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from msgspec import Raw

from executa_protocol.errors import CallCancelled, ConnectionLost, UsageError
from executa_sdk.mailbox import Mailbox

if TYPE_CHECKING:
    import asyncio

    from executa_protocol.aio.peer import Peer

T = TypeVar("T")


class Bridge(Protocol):
    """The way to the loop."""

    async def wait(self, start: "Callable[[], asyncio.Future[T]]") -> T:
        """Call `start` on the loop and wait for the future that it gives."""
        ...

    def request(self, peer: "Peer", method: str, data: bytes, timeout: float) -> Awaitable[Raw]:
        """Make a call over `peer`; await its raw result. Raises as the peer does."""
        ...


def run_blocking(coroutine: "Coroutine[Any, Any, T]") -> T:
    """The result of a coroutine whose every wait blocks instead of suspending."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    coroutine.close()
    msg = "a coroutine of the event loop cannot run in a plain function; declare it async def"
    raise UsageError(msg)


class InTask:
    """For coroutine functions: the loop is where we are."""

    __slots__ = ("_loop_thread",)

    def __init__(self, loop_thread: int) -> None:
        self._loop_thread = loop_thread

    async def wait(self, start: "Callable[[], asyncio.Future[T]]") -> T:
        if threading.get_ident() != self._loop_thread:
            raise self._refusal()
        return await start()

    def request(self, peer: "Peer", method: str, data: bytes, timeout: float) -> Awaitable[Raw]:
        if threading.get_ident() != self._loop_thread:
            raise self._refusal()
        return peer.request(method, data, timeout)

    @staticmethod
    def _refusal() -> UsageError:
        return UsageError("this context belongs to the event loop; threads take ctx.blocking()")


class Inline:
    """For inline tools, which run on the loop and would wait for themselves."""

    __slots__ = ("_tool",)

    def __init__(self, tool: str) -> None:
        self._tool = tool

    async def wait(self, start: "Callable[[], asyncio.Future[T]]") -> T:
        raise self._refusal()

    async def request(self, peer: "Peer", method: str, data: bytes, timeout: float) -> Raw:
        raise self._refusal()

    def _refusal(self) -> UsageError:
        return UsageError(
            f"tool {self._tool!r} runs inline on the event loop and cannot wait for the host; "
            "register it without inline=True, or declare it async def"
        )


class InThread:
    """For plain functions in a thread, and for threads that these start.

    `watched` holds the futures that are waited for, so that a cancel can end them.
    """

    __slots__ = ("_loop_thread", "_mailbox", "watched")

    def __init__(self, mailbox: Mailbox, loop_thread: int) -> None:
        self._mailbox = mailbox
        self._loop_thread = loop_thread
        self.watched: set[asyncio.Future[Any]] = set()

    async def wait(self, start: "Callable[[], asyncio.Future[T]]") -> T:
        if threading.get_ident() == self._loop_thread:
            msg = "a blocking context cannot wait on the event loop; use the tool's own Context"
            raise UsageError(msg)
        outcome: _Outcome[T] = _Outcome(self.watched)
        if not self._mailbox.post(outcome.begin, start):
            msg = "the plugin has stopped"
            raise ConnectionLost(msg, written=False)
        return outcome.result()

    async def request(self, peer: "Peer", method: str, data: bytes, timeout: float) -> Raw:
        def start() -> "asyncio.Future[Raw]":
            call = peer.call(method, data, timeout)
            call.future.add_done_callback(
                lambda end: peer.forget(call) if end.cancelled() else None
            )
            return call.future

        return await self.wait(start)


class _Outcome(Generic[T]):
    """What a future on the loop came to, for the one thread that waits."""

    __slots__ = ("_ended", "_fault", "_future", "_watched")

    def __init__(self, watched: "set[asyncio.Future[Any]]") -> None:
        self._watched = watched
        self._fault: BaseException | None = None
        self._future: asyncio.Future[T] | None = None
        self._ended = threading.Lock()
        self._ended.acquire()

    def begin(self, start: "Callable[[], asyncio.Future[T]]") -> None:
        """On the loop: start, and let go of the thread when it is over."""
        try:
            self._future = future = start()
        except Exception as fault:  # noqa: BLE001 - raised where the thread waits
            self._fault = fault
            self._ended.release()
            return
        self._watched.add(future)
        future.add_done_callback(self._end)

    def _end(self, future: "asyncio.Future[T]") -> None:
        self._watched.discard(future)
        self._ended.release()

    def result(self) -> T:
        """In the thread: wait for the end."""
        self._ended.acquire()
        future = self._future
        if future is None:
            raise cast("BaseException", self._fault)
        if future.cancelled():
            msg = "the invoke was cancelled"
            raise CallCancelled(msg)
        return future.result()
