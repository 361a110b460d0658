"""Time-outs of many tasks, kept by one timer: never early, and at most a sweep late.

`asyncio.timeout` sets and cancels a timer each time, which costs more than most of what it
bounds when nexus is in the same process.
"""

import asyncio
import math
import time
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, TypeVar

from executa_host.steps import ENDED, Runner, going_on, new_runner
from executa_protocol.limits import SWEEP_INTERVAL

T = TypeVar("T")


class Bounds:
    """The bounds of one host. `within` gives one to enter."""

    def __init__(self) -> None:
        self._live: set[Bound] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._wakes = math.inf
        self._idle: Runner | None = None

    def within(self, seconds: float) -> "Bound":
        """Bound what the current task does in a ``with`` block. It raises `TimeoutError`."""
        return Bound(self, time.monotonic() + seconds)

    async def run(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """Await `work` for `seconds` at most. Raises `TimeoutError`.

        What ends without waiting needs no bound, and costs none.
        """
        runner, self._idle = self._idle or new_runner(), None
        awaited = runner.send(work)
        if type(awaited) is ENDED:
            self._idle = runner
            return awaited[0]
        with self.within(seconds):
            return await going_on(runner.send, runner.throw, awaited)

    def enter(self, bound: "Bound") -> None:
        """Watch a bound."""
        self._live.add(bound)
        if bound.deadline < self._wakes:
            self._arm(bound.deadline)

    def leave(self, bound: "Bound") -> None:
        """Watch it no longer. The timer stays: another bound will need it."""
        self._live.discard(bound)

    def stop(self) -> None:
        """Wake no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._wakes = math.inf

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._wakes = when
        delay = max(0.001, when - time.monotonic())
        self._timer = asyncio.get_running_loop().call_later(delay, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        self._wakes = math.inf
        now = time.monotonic()
        for bound in [bound for bound in self._live if bound.deadline <= now]:
            self._live.discard(bound)
            bound.expire()
        earliest = min((bound.deadline for bound in self._live), default=math.inf)
        if earliest < math.inf:
            self._arm(max(earliest, now + SWEEP_INTERVAL))


class Bound:
    """One block of code and the `time.monotonic` instant by which it has to end."""

    __slots__ = ("_bounds", "_cancelling", "_expired", "_task", "deadline")

    def __init__(self, bounds: Bounds, deadline: float) -> None:
        self.deadline = deadline
        self._bounds = bounds
        self._expired = False
        self._cancelling = 0
        self._task: asyncio.Task[object] | None = None

    def expire(self) -> None:
        """Its time is over."""
        self._expired = True
        if self._task is not None:
            self._task.cancel()

    def __enter__(self) -> None:
        self._task = task = asyncio.current_task()
        if task is not None:
            self._cancelling = task.cancelling()
        self._bounds.enter(self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bounds.leave(self)
        task = self._task
        if not self._expired or task is None:
            return
        # Somebody else may have cancelled the task as well, and that goes on.
        ours = task.uncancel() <= self._cancelling
        if ours and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise TimeoutError from fault
