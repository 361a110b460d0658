"""A connection to a host, as the calls on it see it: the peer, the ways to wait, the offer."""

import threading
import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

from executa_protocol.aio.peer import Peer
from executa_protocol.codec import encode
from executa_protocol.errors import ExecutaError
from executa_protocol.limits import WRITE_HIGH_WATER
from executa_sdk.bridge import InTask, InThread
from executa_sdk.mailbox import Mailbox
from executa_sdk.workers import Workers

if TYPE_CHECKING:
    import asyncio

    from executa_sdk.keylocks import KeyLocks

T = TypeVar("T")

_PROGRESS: Final = "executa/progress"  # methods.progress, which a plain plugin does not load


class Connection:
    """One connection, on the running loop.

    `is_v2` holds after a v2 handshake, without which there are no reverse calls. `offered` are
    the keys of its offer, `credentials` the plugin's declarations. `ended` holds once the host
    has closed our input and so answers no more. `now` gives epoch seconds.
    """

    def __init__(self, peer: Peer, credentials: list[dict[str, Any]]) -> None:
        self.loop = peer.loop
        self.peer = peer
        self.mailbox = Mailbox(self.loop)
        self.workers = Workers()
        self.is_v2 = False
        self.offered: dict[str, Any] = {}
        self.credentials = credentials
        self.ended = False
        self.now: Callable[[], float] = time.time
        self._thread = threading.get_ident()
        self.in_task = InTask(self._thread)

    @cached_property
    def locks(self) -> "KeyLocks":
        """Turns for changes of one storage key. Touched on the loop only."""
        from executa_sdk.keylocks import KeyLocks  # noqa: PLC0415 - if used

        return KeyLocks(self.loop)

    def in_thread(self) -> InThread:
        """The way to wait for a plain function in a thread."""
        return InThread(self.mailbox, self._thread)

    def on_loop(self) -> bool:
        """Whether this is the loop's thread."""
        return threading.get_ident() == self._thread

    def blocking(self, fn: Callable[[], T]) -> "asyncio.Future[T]":
        """Run something that blocks in a thread of its own. On the loop."""
        future: asyncio.Future[T] = self.loop.create_future()

        def work() -> None:
            try:
                value = fn()
            except BaseException as fault:  # noqa: BLE001 - raised where it is awaited
                self.mailbox.post(_fail, future, fault)
            else:
                self.mailbox.post(_settle, future, value)

        self.workers.submit_extra(work)
        return future

    def progress(self, params: dict[str, Any]) -> None:
        """Send a progress notification, from any thread. It is dropped rather than waited for."""
        data = encode(params)
        if self.on_loop():
            self._notify(data)
        else:
            self.mailbox.post(self._notify, data)

    def _notify(self, data: bytes) -> None:
        if self.peer.outgoing.queued <= WRITE_HIGH_WATER:
            try:
                self.peer.notify(_PROGRESS, data)
            except ExecutaError:  # progress is never worth a failure
                return


def _settle(future: "asyncio.Future[T]", value: T) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: "asyncio.Future[Any]", fault: BaseException) -> None:
    if isinstance(fault, StopIteration):  # a future cannot hold one
        fault = RuntimeError(f"StopIteration: {fault}")
    if not future.done():
        future.set_exception(fault)
