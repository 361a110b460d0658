"""Time as a host sees it: injected, so that a test moves it and nobody waits.

Restart delays, lives of tokens and agent sessions, rates and idle times are told by it.
Deadlines of calls on the wire are kept by the wire itself.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A call that is due later."""

    def cancel(self) -> None:
        """Forget it. Harmless once it has run."""
        ...


class Clock(Protocol):
    """What a host needs of time."""

    def now(self) -> float:
        """Epoch seconds."""
        ...

    def monotonic(self) -> float:
        """Seconds since some instant, never going back."""
        ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` on the running loop once `seconds` have passed."""
        ...


class SystemClock:
    """The machine's own time."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` once `seconds` have passed."""
        return asyncio.get_running_loop().call_later(max(0.0, seconds), callback)


async def sleep(clock: Clock, seconds: float) -> None:
    """Wait `seconds` of the clock's time."""
    woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not woken.done():
            woken.set_result(None)

    timer = clock.call_later(seconds, wake)
    try:
        await woken
    finally:
        timer.cancel()
