"""Our requests that wait for an answer: what an answer does to them, and what else ends them.

Owns futures; who sends and what methods mean is not known here.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from msgspec import UNSET, Raw, Struct

from executa_protocol.aio.deadlines import Deadlines
from executa_protocol.aio.pointers import LoadPointer, Pointers
from executa_protocol.codes import ErrorObject, rpc_error
from executa_protocol.correlation import InFlight, Stray
from executa_protocol.envelope import Id, Message
from executa_protocol.errors import ConnectionLost, DecodeFailure, PeerViolation, StrictRefusal
from executa_protocol.limits import SAMPLE_BYTES
from executa_protocol.readings import Reader

if TYPE_CHECKING:
    import asyncio

    from executa_protocol.aio.transport import Transport

_ERROR = msgspec.json.Decoder(ErrorObject)

Report = Callable[[str, str, bytes], None]
"""Takes the kind of a diagnostic, what happened, and the first bytes of what came."""

STRAY: Final = "stray"


class PlainAnswer(Protocol):
    """An answer that has been read as far as its caller wants."""

    @property
    def id(self) -> int: ...


class Call(Struct, eq=False):
    """A request that waits for its answer.

    `future` gives the raw result. `position` is where in the outgoing stream the
    request begins, `deadline` a `time.monotonic` instant. `by_file` says that the answer
    came by file transport; until the future is done, that the file is being read.
    `late` is the answer that came after the future had been cancelled. `plain` says that
    the future may also give a `PlainAnswer`.
    """

    future: "asyncio.Future[Any]"
    position: int
    plain: bool = False
    number: int = 0
    by_file: bool = False
    deadline: float = math.inf
    late: Raw | Exception | None = None

    def succeed(self, result: Raw) -> None:
        """Give the result, unless the call has ended."""
        if not self.future.done():
            self.future.set_result(result)
        elif self.future.cancelled():
            self.late = result

    def fail(self, reason: Exception) -> None:
        """Raise from the future, unless the call has ended."""
        if not self.future.done():
            self.future.set_exception(reason)
        elif self.future.cancelled():
            self.late = reason


class Calls(InFlight[Call]):
    """The calls in flight of one connection."""

    __slots__ = (
        "_create_future",
        "_outgoing",
        "_pointers",
        "_reader",
        "_report",
        "deadlines",
        "over",
    )

    def __init__(
        self,
        transport: "Transport",
        reader: Reader,
        report: Report,
        load_pointer: LoadPointer | None,
        *,
        prefix: str,
        first: int,
    ) -> None:
        super().__init__(prefix, first)
        self.over = False
        """Whether no more can be made."""
        self._create_future = transport.loop.create_future
        self._outgoing = transport.outgoing
        self._reader = reader
        self._report = report
        self._pointers = Pointers(load_pointer)
        self.deadlines = Deadlines(self.entries, transport.poll, transport.loop)

    def begin(self, *, plain: bool) -> Call:
        """A call whose request is written next. Raises `ConnectionLost`."""
        if self.over:
            msg = "the connection has ended"
            raise ConnectionLost(msg, written=False)
        outgoing = self._outgoing
        self._last = number = self._last + 1
        call = Call(self._create_future(), outgoing.taken + outgoing.queued, plain, number)
        self._entries[number] = call
        return call

    def was_written(self, call: Call) -> bool:
        """Whether any byte of the call's request has been handed over."""
        return self._outgoing.taken > call.position

    # --- Answers ------------------------------------------------------------------

    def answered(self, identity: Id, answer: Message) -> None:
        """An answer has come: to one of ours, or to nobody."""
        call = self._claim(identity, answer)
        if call is None:
            return
        if answer.result is not UNSET:
            call.succeed(answer.result)
        elif answer.pointer is UNSET:
            _settle(call, answer)
        else:
            self.put_back(call.number, call)
            self._pointers.follow(call, answer, partial(self._loaded, call))

    def answered_plainly(self, answer: PlainAnswer) -> bool:
        """Give a call its answer as it has been read; False if that is not all there is to it."""
        call = self._entries.get(answer.id)
        if call is None or not call.plain or call.by_file or call.future.done():
            return False
        del self._entries[answer.id]
        call.future.set_result(answer)
        return True

    def unreadable(self, identity: Id, reason: str) -> None:
        """Something has come under `identity` that nobody can read (R-10, R-11)."""
        call = self._claim(identity, None)
        if call is not None:
            call.fail(PeerViolation(f"the answer cannot be read: {reason}"))

    def _claim(self, identity: Id, answer: Message | None) -> Call | None:
        """The call that waits under `identity`; None, having told, if there is none (R-13)."""
        try:
            call = self.take(identity, self._reader)
        except StrictRefusal as refusal:
            self._report(STRAY, str(refusal), _sample(answer))
            return None
        if type(call) is Call and not call.by_file:
            return call
        why = call.value if isinstance(call, Stray) else Stray.FINISHED.value
        if isinstance(call, Call):  # its answer is here, and its file is being read
            self.put_back(call.number, call)
        if answer is not None:
            self._report(STRAY, f"an answer to {why} id {identity!r:.60}", _sample(answer))
        return None

    def _loaded(self, call: Call, answer: Message | Exception) -> None:
        self.discard(call.number)
        if isinstance(answer, Exception):
            call.fail(answer)
        else:
            _settle(call, answer)

    # --- No answers ------------------------------------------------------------------

    def forget(self, call: Call) -> None:
        """Wait no longer; an answer that still comes is late."""
        self.discard(call.number)
        call.future.cancel()

    def fail_unwritten(self, reason: Exception) -> None:
        """Nothing more can be sent: calls that the other side never saw have failed."""
        for number, call in list(self.entries.items()):
            if not self.was_written(call):
                self.discard(number)
                call.fail(ConnectionLost(str(reason), written=False))

    def fail_all(self, why: str) -> int:
        """No more answers will come. Returns how many calls waited for one."""
        self.deadlines.stop()
        calls = self.clear()
        for call in calls:
            written = self.was_written(call)
            said = "after" if written else "before"
            text = f"the connection ended {said} the request was written: {why}"
            call.fail(ConnectionLost(text, written=written))
        return len(calls)


def _settle(call: Call, answer: Message) -> None:
    if answer.error is not UNSET:
        call.fail(error_of(answer.error))
    elif answer.result is not UNSET:
        call.succeed(answer.result)


def _sample(answer: Message | None) -> bytes:
    """The beginning of what an answer says: of an error that nobody asked for, all there is."""
    if answer is None:
        return b""
    content = answer.result if answer.error is UNSET else answer.error
    return b"" if content is UNSET else bytes(memoryview(content)[:SAMPLE_BYTES])


def error_of(raw: Raw) -> Exception:
    """The exception that an error member means."""
    try:
        error = _ERROR.decode(raw)
    except msgspec.DecodeError as fault:
        sample = bytes(memoryview(raw)[:SAMPLE_BYTES]).decode(errors="replace")
        return DecodeFailure(f"the error answer is not an error object ({fault}): {sample}")
    return rpc_error(error.code, error.message, None if error.data is UNSET else error.data)
