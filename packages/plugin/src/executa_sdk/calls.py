"""Calls in flight: tools run, answered once, cancelled, and drained at the end.

Coroutine functions run as tasks, plain ones in threads without a task each, inline ones
on the spot. Nothing here waits for a tool, so the loop stays free.
"""

import inspect
import threading
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from executa_protocol.aio.flag import Flag
from executa_protocol.codec import encode
from executa_protocol.codes import ErrorObject
from executa_protocol.errors import CallCancelled, NotEncodable
from executa_protocol.limits import KIB, SPILL_THRESHOLD, WRITE_HIGH_WATER
from executa_sdk.binding import CURRENT
from executa_sdk.bridge import InThread
from executa_sdk.connection import Connection
from executa_sdk.invocation import Invocation
from executa_sdk.log import tell
from executa_sdk.timing import within

if TYPE_CHECKING:
    import asyncio

CANCEL_REST: Final = 0.5
"""Seconds that a call may take to end once it was told to, when the plugin stops."""

_RESULT: Final = b'{"success":true,"data":%b,"duration_ms":%.3f}'
_FRAME: Final = b'{"jsonrpc":"2.0","id":%d,"result":' + _RESULT + b"}\n"
_SMALL: Final = 64 * KIB
"""Bytes of data that no limit of a result or a line forbids."""

_encode_text = msgspec.json.Encoder().encode

Answer = bytes | ErrorObject
"""An encoded result, or an error."""


class Calls:
    """The calls of one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._outgoing = connection.peer.outgoing
        self._reply_frame = connection.peer.reply_frame
        self._open: dict[object, Invocation] = {}
        self._parked: deque[tuple[Invocation, Answer]] = deque()
        self._held: deque[Callable[[], None]] = deque()
        self._making_room: asyncio.Task[None] | None = None
        self.idle = Flag(connection.loop)
        """Set while no call is in flight."""
        self.idle.set()

    def __len__(self) -> int:
        return len(self._open)

    def start(self, call: Invocation, values: dict[str, Any]) -> None:
        """Run the call's tool with `values`. It is answered when it has ended."""
        way = call.tool.way
        if way == "inline":
            self.run_inline(call, values)
            return
        token = CURRENT.set(call)  # what starts below inherits it
        try:
            self._note(call)
            if way == "task":
                call.task = self._connection.loop.create_task(self._run_task(call, values))
            else:
                self._run_thread(call, values)
        finally:
            CURRENT.reset(token)

    def holding(self) -> bool:
        """Whether the host does not take our answers: then calls are to be held, in order."""
        return bool(self._held or self._parked) or self._outgoing.queued > WRITE_HIGH_WATER

    def _congested(self) -> bool:
        return self._outgoing.queued > WRITE_HIGH_WATER or bool(self._parked)

    def hold(self, start: Callable[[], None]) -> None:
        """Have a call started once the host takes answers again.

        The peer reads on only then too. What waits here is the rest of what it had read,
        and the results of the calls that were in flight: that bounds the memory.
        """
        self._held.append(start)
        self.idle.clear()
        self._make_room()

    def find(self, invoke_id: str) -> Invocation | None:
        """The call in flight with this invoke id."""
        return self._open.get(invoke_id)

    def cancel(self, call: Invocation, reason: str) -> None:
        """Ask a call to end. It is answered when it has: "cancelled" means that nothing goes on.

        A thread cannot be stopped (R-45): its waits for the host end, and the tool may look
        at ``ctx.cancelled``.
        """
        if call.cancelled or call.ended:
            return
        call.cancelled = True
        call.reason = reason
        if call.task is not None:
            call.task.cancel()
        elif call.claimed():  # it waits for a thread, and now never gets one
            self._finish(call, _failure(CallCancelled("cancelled before it began"), call))
        elif isinstance(call.bridge, InThread):
            for future in list(call.bridge.watched):
                future.cancel()

    async def drain(self, grace: float) -> bool:
        """Wait `grace` seconds for the calls in flight, then end them; False if some go on."""
        loop = self._connection.loop
        await within(self.idle.wait(), grace, loop)
        if not self.idle.is_set():
            for call in list(self._open.values()):
                self.cancel(call, "the plugin is stopping")
        await within(self.idle.wait(), CANCEL_REST, loop)
        return self.idle.is_set()

    # --- The three ways to run -----------------------------------------------------------
    # sys.exit in a tool is a failure like any other, hence BaseException.

    def run_inline(self, call: Invocation, values: dict[str, Any]) -> None:
        """As `start`, for the call of an inline tool."""
        token = CURRENT.set(call)
        try:
            value = call.tool.fn(**values)
            # What plain text becomes needs none of the looks that `encode` takes at it.
            plain = type(value) is str and value.isascii()
            data = _encode_text(value) if plain else _encoded(value)
        except BaseException as fault:  # noqa: BLE001 - see above
            self._finish(call, _failure(fault, call))
            return
        finally:
            CURRENT.reset(token)
        self._succeed(call, data)

    def _succeed(self, call: Invocation, data: bytes) -> None:
        call.ended = True
        elapsed = (perf_counter() - call.started) * 1000
        identity = call.id
        congested = self._outgoing.queued > WRITE_HIGH_WATER or self._parked
        if type(identity) is int and len(data) <= _SMALL and not congested:
            # As `_success` and `Peer.reply` would write it, in one piece at once.
            if call.key is not None:
                self._forget(call)
            self._reply_frame(identity, _FRAME % (identity, data, elapsed))
        else:
            self._finish(call, _RESULT % (data, elapsed))

    async def _run_task(self, call: Invocation, values: dict[str, Any]) -> None:
        try:
            value = await call.tool.fn(**values)
            plain = type(value) is str and value.isascii()
            data = _encode_text(value) if plain else _encoded(value)
        except GeneratorExit:  # the loop is closing, so nobody waits
            raise
        except BaseException as fault:  # noqa: BLE001 - see above
            self._finish(call, _failure(fault, call))
            return
        self._succeed(call, data)

    def _run_thread(self, call: Invocation, values: dict[str, Any]) -> None:
        connection = self._connection
        context = copy_context()
        call.claim = threading.Lock()
        nested = call.is_nested
        finish = self._finish if nested else self._finish_pooled

        def work() -> None:
            if not call.claimed():  # it was cancelled, and is answered already
                if not nested:
                    connection.mailbox.post(connection.workers.done)
                return
            try:
                answer: Answer = _success(context.run(call.tool.fn, **values), call)
            except BaseException as fault:  # noqa: BLE001 - see above
                answer = _failure(fault, call)
            connection.mailbox.post(finish, call, answer)

        if nested:
            connection.workers.submit_extra(work)
        else:
            connection.workers.submit(work)

    # --- Answers ---------------------------------------------------------------------------

    def _note(self, call: Invocation) -> None:
        key = call.key
        if key is None:
            key = call.invoke_id
            if key is None or key in self._open:
                key = call
            call.key = key
        self._open[key] = call
        self.idle.clear()

    def _forget(self, call: Invocation) -> None:
        self._open.pop(call.key, None)
        if not self._open and not self._held:
            self.idle.set()

    def _make_room(self) -> None:
        if self._making_room is None:
            self._making_room = self._connection.loop.create_task(self._go_on())

    async def _go_on(self) -> None:
        peer = self._connection.peer
        while self._parked or self._held:
            await peer.writable()
            while self._parked and self._outgoing.queued <= WRITE_HIGH_WATER:
                call, answer = self._parked.popleft()
                self._forget(call)
                self._answer(call, answer)
            while self._held and not self._congested():
                self._held.popleft()()
        self._making_room = None
        if not self._open:  # what was held may have been refused
            self.idle.set()

    def _finish_pooled(self, call: Invocation, answer: Answer) -> None:
        self._connection.workers.done()
        self._finish(call, answer)

    def _finish(self, call: Invocation, answer: Answer) -> None:
        """Answer now, or when the host has taken most of what waits for it already."""
        call.ended = True
        if self._congested():
            self._note(call)
            self._parked.append((call, answer))
            self._make_room()
            return
        self._forget(call)
        self._answer(call, answer)

    def _answer(self, call: Invocation, answer: Answer) -> None:
        peer = self._connection.peer
        if not isinstance(answer, bytes):
            peer.fail(call.id, answer)
        elif len(answer) <= SPILL_THRESHOLD:
            peer.reply(call.id, answer)
        else:
            self._answer_large(call, answer)

    def _answer_large(self, call: Invocation, answer: bytes) -> None:
        """By file where the host takes files, because its line cap may be as low as 512 KiB."""
        from executa_sdk import spill  # noqa: PLC0415 - large results are rare

        peer = self._connection.peer
        by_file = bool(self._connection.offered.get("fileTransport"))
        error = spill.too_large(len(answer), by_file=by_file)
        if error is not None:
            peer.fail(call.id, error)
        elif not by_file:
            peer.reply(call.id, answer)
        else:
            self._note(call)
            writing = self._connection.blocking(lambda: spill.write(call.id, answer))
            writing.add_done_callback(lambda done: self._written(call, answer, done))

    def _written(self, call: Invocation, answer: bytes, file: "asyncio.Future[str]") -> None:
        from executa_sdk import spill  # noqa: PLC0415 - as above

        self._forget(call)
        peer = self._connection.peer
        fault = file.exception()
        if fault is None:
            peer.reply_pointer(call.id, file.result())
            return
        tell(f"the result could not be written to a file: {fault}")
        error = spill.too_large(len(answer), by_file=False)
        if error is None:
            peer.reply(call.id, answer)
        else:
            peer.fail(call.id, error)


def _success(value: object, call: Invocation) -> bytes:
    """The encoded result of a tool that returned. Raises `NotEncodable`."""
    return _RESULT % (_encoded(value), call.elapsed_ms())


def _encoded(value: object) -> bytes:
    """What a tool returned, as JSON. Raises `NotEncodable`."""
    try:
        return encode(value)
    except NotEncodable as fault:
        if inspect.iscoroutine(value):
            value.close()
            msg = "the tool returned a coroutine; declare it with async def"
        else:
            msg = f"the tool's result is {fault}"
        raise NotEncodable(msg) from None


def _failure(fault: BaseException, call: Invocation) -> Answer:
    from executa_sdk.failures import answer_to  # noqa: PLC0415 - faults are rare

    return answer_to(fault, call)
