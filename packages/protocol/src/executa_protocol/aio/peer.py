"""One end of a connection: calls out, requests in, over any transport.

Both sides of the wire use this class. It correlates answers, keeps deadlines,
answers what cannot be read, and never waits for a handler: `on_request` returns at
once and answers through `reply` or `fail` whenever it is ready. What methods mean
is the handler's business.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable

from msgspec import UNSET, Raw

from executa_protocol import envelope
from executa_protocol.aio.answers import Answers
from executa_protocol.aio.calls import Call, Deadlines, error_of
from executa_protocol.aio.handler import Diagnostic, Handler, Tap
from executa_protocol.aio.pointers import LoadPointer, Pointers
from executa_protocol.aio.transport import Transport
from executa_protocol.codes import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorObject,
    wire_error,
)
from executa_protocol.correlation import InFlight, Stray
from executa_protocol.envelope import Id, Malformed, Message
from executa_protocol.errors import (
    ConnectionLost,
    FrameTooLarge,
    PeerViolation,
    StrictRefusal,
)
from executa_protocol.framing import LineSplitter, Oversized
from executa_protocol.limits import MAX_LINE, SAMPLE_BYTES
from executa_protocol.readings import Finding, Reader

_SYMBOLS = {PARSE_ERROR: "PARSE_ERROR", INVALID_REQUEST: "JSONRPC_INVALID_REQUEST"}


class Peer:
    """One end of a connection.

    `prefix` makes our ids strings and `first_id` is the first of them (see `InFlight`).
    `answer_unreadable` answers lines that are no JSON with a null id, as a JSON-RPC
    server does. `yield_to_writes` stops reading while the other side does not take our
    answers: only one side of a connection may do so, or both can end up waiting for
    each other. `load_pointer` reads the response behind a file pointer (R-12); without it a pointer
    fails its call.
    With `on_eof` the end of the other side's output does not fail the calls in flight:
    the owner is told, and calls `close` as soon as it can say why.
    """

    def __init__(
        self,
        transport: Transport,
        handler: Handler,
        *,
        strict: bool = False,
        max_line: int = MAX_LINE,
        prefix: str = "",
        first_id: int = 1,
        answer_unreadable: bool = False,
        yield_to_writes: bool = False,
        load_pointer: LoadPointer | None = None,
        on_eof: Callable[[], None] | None = None,
        tap: Tap | None = None,
    ) -> None:
        self._transport = transport
        self._handler = handler
        self._reader = Reader(strict=strict, report=self._tolerated)
        self._max_line = max_line
        self._splitter = LineSplitter(max_line)
        self._calls: InFlight[Call] = InFlight(prefix, first_id)
        self._deadlines = Deadlines(self._calls, transport.poll)
        self._answers = Answers(self._send, self.close)
        self._answer_unreadable = answer_unreadable
        self._yield_to_writes = yield_to_writes
        self._pointers = Pointers(load_pointer)
        self._tap = tap
        self._loop = asyncio.get_running_loop()
        self._on_eof = on_eof
        self._closed = False
        self._drained = asyncio.Event()
        self._drained.set()
        self.lost_calls = 0
        """How many calls were in flight when the connection was closed."""
        self.counts: Counter[str] = Counter()
        """How many diagnostics of each kind there were."""

    # --- Calls ------------------------------------------------------------------

    @property
    def pending_count(self) -> int:
        """Calls that wait for an answer."""
        return len(self._calls)

    @property
    def open_requests(self) -> int:
        """Requests of the other side that are not answered yet."""
        return len(self._answers)

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def queued(self) -> int:
        """Outgoing bytes that the other side has not taken."""
        return self._transport.queued

    def start(self) -> None:
        """Begin to read."""
        self._transport.start(self)

    def call(self, method: str, params: bytes | None = None, timeout: float | None = None) -> Call:
        """Send a request and return its call, whose `future` gives the raw result.

        `params` is encoded JSON, `timeout` in seconds; None waits for ever. The future
        raises `RpcError`, `CallTimeout`, `ConnectionLost` or `PeerViolation`. Raises at
        once, having sent nothing: `ConnectionLost`, `FrameTooLarge`, `WriteQueueFull`.
        """
        if self._closed:
            msg = "the connection has ended"
            raise ConnectionLost(msg, written=False)
        transport = self._transport
        call = Call(self._loop.create_future(), transport.taken + transport.queued)
        call.number = number = self._calls.add(call)
        try:
            self._send(envelope.request_frame(self._calls.wire_id(number), method, params))
        except BaseException:
            self._calls.discard(number)
            raise
        if timeout is not None:
            self._deadlines.watch(call, time.monotonic() + timeout)
        return call

    async def request(
        self, method: str, params: bytes | None = None, timeout: float | None = None
    ) -> Raw:
        """Send a request and wait for its raw result. Raises as `call` and its future do."""
        call = self.call(method, params, timeout)
        try:
            return await call.future
        finally:
            if call.future.cancelled():
                self.forget(call)

    def forget(self, call: Call) -> None:
        """Wait no longer for `call`; its answer, if one comes, is late."""
        self._calls.discard(call.number)
        call.future.cancel()

    def was_written(self, call: Call) -> bool:
        """Whether any byte of the call's request has reached the other side's pipe."""
        return self._transport.taken > call.position

    def notify(self, method: str, params: bytes | None = None) -> None:
        """Send a notification. Raises as `call` does."""
        self._send(envelope.notification_frame(method, params))

    async def writable(self) -> None:
        """Wait until the other side has taken most of what waits for it."""
        await self._drained.wait()

    # --- Answers -----------------------------------------------------------------

    def reply(self, identity: Id, result: bytes) -> None:
        """Answer a request with an encoded result. A second answer is dropped."""
        self._answers.reply(identity, result)

    def reply_pointer(self, identity: Id, path: str) -> None:
        """Answer a request with the file at `path` (R-12)."""
        self._answers.pointer(identity, path)

    def fail(self, identity: Id, error: ErrorObject) -> None:
        """Answer a request with an error."""
        self._answers.fail(identity, error)

    def _send(self, frame: bytes) -> None:
        if len(frame) - 1 > self._max_line:
            raise FrameTooLarge(len(frame) - 1, self._max_line)
        self._transport.write(frame)
        if self._tap is not None:
            self._tap("out", frame)
        if self._yield_to_writes and self._drained.is_set() and self._transport.congested:
            self._drained.clear()
            self._transport.pause_reading()

    # --- Lines in ----------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        for line in self._splitter.feed(data):
            self._take(line)

    def _take(self, line: bytes | Oversized) -> None:
        if isinstance(line, Oversized):
            self._malformed(envelope.parse_oversized(line, self._max_line))
            return
        if self._tap is not None:
            self._tap("in", line)
        message = envelope.parse(line, self._reader)
        if isinstance(message, Malformed):
            self._malformed(message)
        elif message is None:
            return
        elif message.id is UNSET:  # a response always has one
            self._guard(self._handler.on_notification, message)
        elif message.method is UNSET:
            self._answered(message.id, message)
        else:
            self._requested(message.id, message)

    def _requested(self, identity: Id, message: Message) -> None:
        if self._answers.open(identity):
            self._guard(self._handler.on_request, message)
            return
        text = f"a request with id {identity!r} is still open"
        self._answers.refuse(identity, wire_error("DUPLICATE_REQUEST_ID", text))

    def _guard(self, handle: Callable[[Message], None], message: Message) -> None:
        """Run a handler so that its faults harm its own message only."""
        try:
            handle(message)
        except Exception as fault:  # noqa: BLE001 - whatever it is, the reader goes on
            self._report("handler", f"{message.method}: {type(fault).__name__}: {fault}")
            if message.id is not UNSET:
                self.fail(message.id, wire_error("INTERNAL_ERROR", "the handler failed"))

    def _answered(self, identity: Id, message: Message) -> None:
        try:
            call = self._calls.take(identity, self._reader)
        except StrictRefusal as refusal:
            self._report("stray", str(refusal))
            return
        if isinstance(call, Stray):
            self._report("stray", f"an answer to {call.value} id {identity!r}")
        elif message.error is not UNSET:
            call.fail(error_of(message.error))
        elif message.pointer is not UNSET:
            self._pointers.follow(call, message)
        elif message.result is not UNSET:
            call.succeed(message.result)

    def _malformed(self, line: Malformed) -> None:
        kind = "oversized" if line.symbol else "unreadable"
        self._report(kind, line.reason, line.sample)
        if line.is_request and line.id is not UNSET:
            sizes = (line.size, self._max_line) if line.symbol else (None, None)
            error = wire_error(
                line.symbol or _SYMBOLS[line.code],
                line.reason,
                frame_bytes=sizes[0],
                max_frame_bytes=sizes[1],
            )
            self._answers.refuse(line.id, error)
        elif line.id is not UNSET:
            call = self._calls.take(line.id)
            if isinstance(call, Call):
                call.fail(PeerViolation(f"the answer cannot be read: {line.reason}"))
        elif self._answer_unreadable:
            self._answers.refuse(None, wire_error(_SYMBOLS[line.code], line.reason))

    # --- The end ------------------------------------------------------------------

    def connection_lost(self, reason: Exception | None) -> None:
        rest = self._splitter.eof()
        if rest:
            if isinstance(rest, Oversized):
                self._take(rest)
            else:
                self._last_line(rest)
        if self._on_eof is None:
            self._end(reason)
        else:
            self._on_eof()

    def _last_line(self, line: bytes) -> None:
        """The stream ended without an LF: a whole object still counts, unless strict."""
        try:
            self._reader.tolerate("WIRE-008", "the last line does not end with a newline")
        except StrictRefusal as refusal:
            self._report("unfinished", str(refusal), line[:SAMPLE_BYTES])
            return
        self._take(line)

    def writing_broken(self, reason: Exception) -> None:
        """Calls of which nothing was taken will not be answered; the others still may be."""
        for number, call in list(self._calls.entries.items()):
            if not self.was_written(call):
                self._calls.discard(number)
                call.fail(ConnectionLost(str(reason), written=False))

    def writing_drained(self) -> None:
        if not self._drained.is_set():
            self._drained.set()
            self._transport.resume_reading()

    def close_writing(self) -> None:
        """Say that no more will come: the other side sees the end of its input."""
        self._transport.close_writing()

    def close(self, reason: Exception | None = None) -> None:
        """End the connection at once. Idempotent."""
        self._end(reason)
        self._transport.close()

    def _end(self, reason: Exception | None) -> None:
        if self._closed:
            return
        self._closed = True
        self.fail_calls(reason)
        self._answers.clear()
        self._drained.set()
        self._handler.on_closed(reason)

    def fail_calls(self, reason: Exception | None = None) -> None:
        """Fail the calls in flight, because the other side will answer no more.

        For owners with `on_eof`: requests of the other side can still be answered.
        """
        self._deadlines.stop()
        self._pointers.cancel()
        why = str(reason) if reason else "the other side closed the connection"
        calls = self._calls.clear()
        self.lost_calls += len(calls)
        for call in calls:
            written = self.was_written(call)
            said = "after" if written else "before"
            text = f"the connection ended {said} the request was written: {why}"
            call.fail(ConnectionLost(text, written=written))

    def _tolerated(self, finding: Finding) -> None:
        self._report("tolerated", f"{finding.requirement}: {finding.message}")

    def _report(self, kind: str, message: str, sample: bytes = b"") -> None:
        self.counts[kind] += 1
        self._handler.on_diagnostic(Diagnostic(kind, message, sample))
