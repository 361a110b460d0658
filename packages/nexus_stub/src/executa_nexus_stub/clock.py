"""Time as the stub sees it: injected, so that a test moves it and nobody waits 600 s.

Owns the clock's interface, the real one and the one that tests move. Nothing else in
this package asks the system for the time or for a delay.
"""

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Timer(Protocol):
    """A call that is due later."""

    def cancel(self) -> None:
        """Forget it. Harmless once it has run."""
        ...


class Clock(Protocol):
    """What the stub needs of time."""

    def now(self) -> float:
        """Epoch seconds."""
        ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` on the running loop once `seconds` have passed."""
        ...


class SystemClock:
    """The machine's own time."""

    def now(self) -> float:
        """Epoch seconds."""
        return time.time()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` once `seconds` have passed."""
        return asyncio.get_running_loop().call_later(max(0.0, seconds), callback)


class _ManualTimer:
    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start
        self._order = itertools.count()
        self._due: list[tuple[float, int, _ManualTimer]] = []

    def now(self) -> float:
        """Epoch seconds, as set."""
        return self._now

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` when `advance` passes its time, at once in that call."""
        timer = _ManualTimer(callback)
        heapq.heappush(self._due, (self._now + max(0.0, seconds), next(self._order), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Move on and run what came due, in the order of its time."""
        target = self._now + seconds
        while self._due and self._due[0][0] <= target:
            when, _, timer = heapq.heappop(self._due)
            self._now = max(self._now, when)
            if timer.callback is not None:
                timer.callback()
        self._now = target

    @property
    def pending_count(self) -> int:
        """Timers that are neither due nor cancelled."""
        return sum(timer.callback is not None for _, _, timer in self._due)


async def sleep(clock: Clock, seconds: float) -> None:
    """Wait `seconds` of the clock's time; at least let others run once."""
    if seconds <= 0:
        await asyncio.sleep(0)
        return
    woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not woken.done():
            woken.set_result(None)

    timer = clock.call_later(seconds, wake)
    try:
        await woken
    finally:
        timer.cancel()


async def wait_for(clock: Clock, future: "asyncio.Future[T]", seconds: float) -> T:
    """The future's result. Raises `TimeoutError` once `seconds` of the clock's time are over.

    The future is the caller's own: a time-out ends it, so that a late result is seen as late.
    """

    def give_up() -> None:
        if not future.done():
            future.set_exception(TimeoutError("nothing came in time"))

    timer = clock.call_later(seconds, give_up)
    try:
        return await future
    finally:
        timer.cancel()
