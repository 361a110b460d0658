"""Calls in flight and their deadlines, all kept by one timer.

A timer for each call costs about a third of the throughput. Here one timer wakes
at the earliest deadline and looks through the calls: never early, at most
`SWEEP_INTERVAL` late, and not set at all when nothing was called.
"""

import asyncio
import math
import time
from collections.abc import Callable

import msgspec
from msgspec import UNSET, Raw

from executa_protocol.codes import ErrorObject, rpc_error
from executa_protocol.correlation import InFlight
from executa_protocol.errors import CallTimeout, DecodeFailure
from executa_protocol.limits import SWEEP_INTERVAL

_ERROR = msgspec.json.Decoder(ErrorObject)


class Call:
    """A request that waits for its answer.

    `future` gives the raw result. `position` is where in the outgoing stream the
    request begins, `deadline` a `time.monotonic` instant. `by_file` says that the answer
    came by file transport.
    """

    __slots__ = ("by_file", "deadline", "future", "number", "position")

    def __init__(self, future: "asyncio.Future[Raw]", position: int) -> None:
        self.future = future
        self.position = position
        self.number = 0
        self.by_file = False
        self.deadline = math.inf

    def succeed(self, result: Raw) -> None:
        if not self.future.done():
            self.future.set_result(result)

    def fail(self, reason: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(reason)


class Deadlines:
    """Watches the calls of one peer. `poll` delivers what has arrived already."""

    __slots__ = ("_calls", "_handle", "_loop", "_poll", "_wakes")

    def __init__(self, calls: InFlight[Call], poll: Callable[[], None]) -> None:
        self._calls = calls
        self._poll = poll
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None
        self._wakes = math.inf

    def watch(self, call: Call, deadline: float) -> None:
        """Fail `call` when `deadline` passes without an answer."""
        call.deadline = deadline
        if deadline < self._wakes:
            self._arm(deadline)

    def stop(self) -> None:
        """Wake no more."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._wakes = math.inf

    def _arm(self, when: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._wakes = when
        # A loop's own clock may stand still for a while; only monotonic time decides
        # in the sweep, and a wake-up that comes too soon just arms again.
        self._handle = self._loop.call_later(max(0.001, when - time.monotonic()), self._sweep)

    def _sweep(self) -> None:
        self._handle = None
        self._wakes = math.inf
        now = time.monotonic()
        calls = self._calls.entries
        if any(call.deadline <= now for call in calls.values()):
            # If the answer and the deadline fall into one tick, the answer wins.
            self._poll()
        late = [number for number, call in calls.items() if call.deadline <= now]
        for number in late:
            call = self._calls.discard(number)
            if call is not None:
                call.fail(CallTimeout("no answer within the time-out"))
        earliest = min((call.deadline for call in calls.values()), default=math.inf)
        if earliest < math.inf:
            self._arm(max(earliest, now + SWEEP_INTERVAL))


def error_of(raw: Raw) -> Exception:
    """The exception that an error member means."""
    try:
        error = _ERROR.decode(raw)
    except msgspec.DecodeError as fault:
        return DecodeFailure(f"the error answer is not an error object: {fault}")
    return rpc_error(error.code, error.message, None if error.data is UNSET else error.data)
