"""A clock that tests hold and push."""

import asyncio
import heapq
import itertools
from collections.abc import Callable


class _Timer:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class ManualClock:
    """See `executa_host.clock.Clock`. Time stands still unless somebody pushes it."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start
        self._order = itertools.count()
        self._set = asyncio.Event()
        self._timers: list[tuple[float, int, _Timer, Callable[[], None]]] = []

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def call_later(self, seconds: float, callback: Callable[[], None]) -> _Timer:
        timer = _Timer()
        self._set.set()
        if seconds <= 0:  # it is due already, and nobody need push the clock for it
            asyncio.get_running_loop().call_soon(lambda: timer.cancelled or callback())
            return timer
        heapq.heappush(self._timers, (self._now + seconds, next(self._order), timer, callback))
        return timer

    @property
    def pending(self) -> int:
        """Timers that are set."""
        return sum(not timer.cancelled for _, _, timer, _ in self._timers)

    async def more_than(self, count: int) -> None:
        """Wait until more than `count` timers are set."""
        async with asyncio.timeout(20):
            while self.pending <= count:
                self._set.clear()
                await self._set.wait()

    def advance(self, seconds: float) -> None:
        """Let time pass; what falls due is called, the earliest first."""
        until = self._now + seconds
        while self._timers and self._timers[0][0] <= until:
            when, _, timer, callback = heapq.heappop(self._timers)
            self._now = max(self._now, when)
            if not timer.cancelled:
                callback()
        self._now = until
