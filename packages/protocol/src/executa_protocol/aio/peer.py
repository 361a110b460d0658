"""One end of a connection: calls out, requests in, over any transport.

Both sides of the wire use this class. It correlates answers, keeps deadlines,
answers what cannot be read, and never waits for a handler: `on_request` returns at once and
answers through `reply` or `fail` whenever it is ready. What methods mean is its business.
"""

import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from executa_protocol import envelope
from executa_protocol.aio.answers import Answers, error_of
from executa_protocol.aio.calls import Call, Calls
from executa_protocol.aio.flag import Flag
from executa_protocol.aio.handler import Handler, Tap
from executa_protocol.aio.pointers import LoadPointer
from executa_protocol.aio.reports import Reports
from executa_protocol.codes import ErrorObject, wire_error
from executa_protocol.envelope import Id, Malformed, Message
from executa_protocol.errors import ConnectionLost, FrameTooLarge, StrictRefusal
from executa_protocol.framing import LineSplitter, Oversized
from executa_protocol.limits import MAX_LINE, SAMPLE_BYTES
from executa_protocol.readings import Reader

if TYPE_CHECKING:
    from executa_protocol.aio.transport import Transport


class Peer:
    """One end of a connection.

    `prefix` makes our ids strings and `first_id` is the first of them (see `InFlight`).
    `answer_unreadable` answers lines that are no JSON with a null id, as a JSON-RPC server
    does. `yield_to_writes` stops reading while the other side does not take our answers:
    only one side of a connection may do so, or both can end up waiting for each other.
    `load_pointer` reads the response behind a file pointer (R-12); without it a pointer
    fails its call. `tap` sees every line.

    With `on_eof` the end of the other side's output does not end the connection: the owner
    is told, and may answer what is open before it calls `close`. Calls in flight wait until
    then, or until `fail_calls`.
    """

    def __init__(
        self,
        transport: "Transport",
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
        self.outgoing = transport.outgoing
        """The half that writes; whoever answers looks at it for each answer."""
        self._handler = handler
        self.loop = transport.loop
        self._reports = reports = Reports(handler, transport.loop)
        self._reader = Reader(strict=strict, report=reports.tolerated)
        self._max_line = max_line
        self._splitter = LineSplitter(max_line)
        self._calls = Calls(
            transport, self._reader, reports.report, load_pointer, prefix=prefix, first=first_id
        )
        self._answers = Answers(self._send, self.close)
        self._answer_unreadable = answer_unreadable
        self._yield_to_writes = yield_to_writes
        self._on_eof = on_eof
        self._tap = tap
        self.quick: Callable[[bytes], bool] | None = None
        """Asked first about each line: True if it was one that it knows, and has dealt with as
        exactly as the peer would have. It uses the three that follow."""
        self.admit = self._answers.open
        """Note a request; False if one with the same id is open already."""
        self.reply_frame = self._answers.reply_frame
        """Answer a request with a whole response line, which is right and fits."""
        self.settle = self._calls.answered_plainly
        """Give a prepared call its answer; False if there is more to it."""
        self._deaf = False  # no more lines will come
        self._closed = False
        self._paused = False  # we do not read, because the other side does not
        self._drained = Flag(transport.loop)
        self.lost_calls = 0
        """How many calls were in flight when the connection ended."""
        self.counts: Counter[str] = reports.counts
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
        """Whether the connection has ended."""
        return self._closed

    @property
    def queued(self) -> int:
        """Outgoing bytes that the other side has not taken."""
        return self.outgoing.queued

    def start(self) -> None:
        """Begin to read."""
        self._transport.start(self)

    def call(self, method: str, params: bytes | None = None, timeout: float | None = None) -> Call:
        """Send a request and return its call, whose `future` gives the raw result.

        `params` is encoded JSON, `timeout` in seconds; None waits for ever. The future
        raises `RpcError`, `CallTimeout`, `ConnectionLost` or `PeerViolation`. Raises at
        once, having sent nothing: `ConnectionLost`, `FrameTooLarge`, `WriteQueueFull`
        and `NotEncodable`.
        """
        calls = self._calls
        call = calls.begin(plain=False)
        try:
            self._send(envelope.request_frame(calls.wire_id(call.number), method, params))
        except BaseException:
            calls.discard(call.number)
            raise
        if timeout is not None:
            calls.deadlines.watch(call, time.monotonic() + timeout)
        return call

    def call_prepared(self, template: bytes, parts: tuple[Any, ...], timeout: float) -> Call:
        """As `call`, with a request line of which only its number and `parts` are still to come.

        They are right and hold no LF. The future gives the raw result, or what was given to
        `settle`. Only for ids without a prefix.
        """
        calls = self._calls
        call = calls.begin(plain=True)
        try:
            self._send(template % (call.number, *parts))
        except BaseException:
            calls.discard(call.number)
            raise
        calls.deadlines.watch(call, time.monotonic() + timeout)
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
        self._calls.forget(call)

    def wait_at_most(self, call: Call, timeout: float) -> None:
        """Give a call that still waits another deadline, `timeout` seconds from now."""
        self._calls.deadlines.watch(call, time.monotonic() + timeout)

    def withdraw(self, call: Call) -> bool:
        """Take back a request, whose call is to be failed or forgotten; False if it has left."""
        return not self.was_written(call) and self.outgoing.withdraw(call.position)

    def was_written(self, call: Call) -> bool:
        """Whether any byte of the call's request has reached the other side's pipe."""
        return self._calls.was_written(call)

    def notify(self, method: str, params: bytes | None = None) -> None:
        """Send a notification. Raises as `call` does."""
        self._send(envelope.notification_frame(method, params))

    async def writable(self) -> None:
        """Wait until the other side has taken most of what waits for it, or cannot any more."""
        while self.outgoing.congested and not self._closed:
            self._drained.clear()
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
        self.outgoing.write(frame)
        if self._tap is not None:
            self._tap = self._reports.show(self._tap, "out", frame)
        if self._yield_to_writes and not self._paused and self.outgoing.congested:
            self._paused = True
            self._transport.pause_reading()

    # --- Lines in ----------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        for line in self._splitter.feed(data):
            if self._closed:  # by what an earlier line of these bytes made us do
                return
            self._take(line)

    def _take(self, line: bytes | Oversized) -> None:
        if isinstance(line, Oversized):
            self._malformed(envelope.parse_oversized(line, self._max_line))
            return
        if self._tap is not None:
            self._tap = self._reports.show(self._tap, "in", line)
        if self.quick is not None and self.quick(line):
            return
        message = envelope.parse(line, self._reader)
        if isinstance(message, Malformed):
            self._malformed(message)
        elif message is None:
            return
        elif message.id is UNSET:  # a response always has one
            self._notified(message)
        elif message.method is UNSET:
            self._calls.answered(message.id, message)
        else:
            self._requested(message.id, message)

    def _notified(self, message: Message) -> None:
        try:
            self._handler.on_notification(message)
        except Exception as fault:  # noqa: BLE001 - it harms this notification only
            self._reports.failed(message.method, fault)

    def _requested(self, identity: Id, message: Message) -> None:
        if not self._answers.open(identity):
            error = wire_error("DUPLICATE_REQUEST_ID", f"id {identity!r:.60} is still open")
            self._answers.refuse(identity, error)
        else:
            try:
                self._handler.on_request(message)
            except Exception as fault:  # noqa: BLE001 - it harms this request only
                self.failed(identity, message.method, fault)

    def failed(self, identity: Id, method: object, fault: Exception) -> None:
        """Answer a request whose handler has failed, which harms that request only."""
        self._reports.failed(method, fault)
        self.fail(identity, wire_error("INTERNAL_ERROR", "the handler failed"))

    def _malformed(self, line: Malformed) -> None:
        self._reports.report("oversized" if line.symbol else "unreadable", line.reason, line.sample)
        if line.role != "request" and line.id is not UNSET:
            self._calls.unreadable(line.id, line.reason)
        elif line.role == "request" and line.id is not UNSET:
            self._answers.refuse(line.id, error_of(line, self._max_line))
        elif line.role != "response" and self._answer_unreadable:
            self._answers.refuse(None, error_of(line, self._max_line))

    # --- The end ------------------------------------------------------------------

    def connection_lost(self, reason: Exception | None) -> None:
        if self._deaf or self._closed:
            return
        rest = self._splitter.eof()
        if isinstance(rest, Oversized):
            self._take(rest)
        elif rest and rest.strip(envelope.BLANK):
            self._last_line(rest)
        self._deaf = self._calls.over = True
        if self._on_eof is None:
            self._end(reason)
        else:
            self._on_eof()

    def _last_line(self, line: bytes) -> None:
        """The stream ended without an LF: a whole object still counts, unless strict."""
        try:
            self._reader.tolerate("WIRE-008", "the last line does not end with a newline")
        except StrictRefusal as refusal:
            self._reports.report("unfinished", str(refusal), line[:SAMPLE_BYTES])
            return
        self._take(line)

    def writing_broken(self, reason: Exception) -> None:
        """Calls of which nothing was taken will not be answered; the others still may be."""
        self._calls.fail_unwritten(reason)
        self.writing_drained()  # there is nothing left to wait for, but an end to be read

    def writing_drained(self) -> None:
        self._drained.set()
        if self._paused:
            self._paused = False
            self._transport.resume_reading()

    def close_writing(self) -> None:
        """Say that no more will come: the other side sees the end of its input."""
        self._transport.close_writing()

    def close(self, reason: Exception | None = None) -> None:
        """End the connection at once. Idempotent."""
        self.fail_calls(reason or ConnectionLost("this side closed it"))
        self._end(reason)
        self._transport.close()

    def fail_calls(self, reason: Exception | None = None) -> None:
        """Fail the calls in flight: for owners with `on_eof`, who still answer what is open."""
        why = str(reason) if reason else "the other side closed it"
        self.lost_calls += self._calls.fail_all(why)

    def _end(self, reason: Exception | None) -> None:
        if self._closed:
            return
        self._closed = self._calls.over = True
        self.fail_calls(reason)
        self._answers.clear()
        self._drained.set()
        self._reports.closed(reason)
