"""The deadlines of all calls of one connection, kept by one timer.

A timer for each call costs about a third of the throughput. Here one timer wakes
at the earliest deadline and looks through the calls: never early and at most
`SWEEP_INTERVAL` late. Once nothing waits it wakes a last time, and is not set again.
"""

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from executa_protocol.errors import CallTimeout
from executa_protocol.limits import SWEEP_INTERVAL

if TYPE_CHECKING:
    import asyncio

_SOONEST = 0.001
"""Seconds: what uvloop's timers resolve. A shorter delay would fire in the same turn."""


class Expiring(Protocol):
    """Something that can be too late: a `time.monotonic` instant, and what happens then."""

    deadline: float

    def fail(self, reason: Exception) -> None: ...


E = TypeVar("E", bound=Expiring)


class Deadlines(Generic[E]):
    """Watches `calls`, which it reads and takes the late ones from.

    `poll` delivers what has arrived already: if an answer and its deadline fall into
    one turn of the loop, the answer wins.
    """

    __slots__ = ("_calls", "_handle", "_loop", "_poll", "_wakes")

    def __init__(
        self, calls: dict[int, E], poll: Callable[[], None], loop: "asyncio.AbstractEventLoop"
    ) -> None:
        self._calls = calls
        self._poll = poll
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None
        self._wakes = math.inf

    def watch(self, call: E, deadline: float) -> None:
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
        delay = max(_SOONEST, when - time.monotonic())
        self._handle = self._loop.call_later(delay, self._sweep)

    def _sweep(self) -> None:
        self._handle = None
        self._wakes = math.inf
        now = time.monotonic()
        calls = self._calls
        if any(call.deadline <= now for call in calls.values()):
            self._poll()
        late = [number for number, call in calls.items() if call.deadline <= now]
        for number in late:
            calls.pop(number).fail(CallTimeout("no answer within the time-out"))
        earliest = min((call.deadline for call in calls.values()), default=math.inf)
        if earliest < self._wakes:  # what was polled may have armed for a later one
            self._arm(max(earliest, now + SWEEP_INTERVAL))
