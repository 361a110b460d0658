"""An event loop for plugins of plain functions, which need nothing else of `asyncio`.

Loading asyncio and uvloop takes longer than everything else that such a plugin does until
its first answer, and a fifth of its memory. This is the part of a loop's interface that the
wire, the threads and the end of a process need, on `poll`.
"""

import heapq
import itertools
import os
import select
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from executa_sdk.log import tell
from executa_sdk.plainfuture import PlainFuture, PlainTask

T = TypeVar("T")

_READ: Final = select.POLLIN | select.POLLPRI
_WRITE: Final = select.POLLOUT
_BROKEN: Final = select.POLLERR | select.POLLHUP | select.POLLNVAL
_WAKES: Final = 4096
"""Bytes of wake-ups that one read takes away: many threads may have written one each."""

_LONGEST_WAIT: Final = 3_600_000
"""Milliseconds of one poll; the system takes no more than 32 bits of them."""

_MANY_TIMERS: Final = 64
"""More than are ever live: then those that were cancelled are thrown out."""


class Timer:
    """A call that is due at a `time.monotonic` instant."""

    __slots__ = ("args", "cancelled", "fn")

    def __init__(self, fn: Callable[..., object], args: tuple[object, ...]) -> None:
        self.fn = fn
        self.args = args
        self.cancelled = False

    def cancel(self) -> None:
        """Forget it."""
        self.cancelled = True


class PlainLoop:
    """Runs callbacks, timers and tasks of one thread, and waits for descriptors.

    A callback that raises harms nobody else: its story goes to stderr.
    """

    def __init__(self) -> None:
        self._soon: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._readers: dict[int, Callable[[], object]] = {}
        self._writers: dict[int, Callable[[], object]] = {}
        self._poll = select.poll()
        self._woken, wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(wake, False)
        # As a file, which knows that it is closed: its number may be another's by then.
        self._wake = open(wake, "wb", buffering=0)  # noqa: SIM115, PTH123 - lives as long as this
        self.add_reader(self._woken, self._wake_up)

    # --- Callbacks ------------------------------------------------------------------------

    def call_soon(self, fn: Callable[..., object], *args: object) -> None:
        """Call ``fn(*args)`` in the next turn."""
        self._soon.append((fn, args))

    def call_soon_threadsafe(self, fn: Callable[..., object], *args: object) -> None:
        """As `call_soon`, from any thread or signal handler. Raises RuntimeError once closed."""
        self._soon.append((fn, args))
        try:
            self._wake.write(b"\0")  # of a full pipe it takes nothing, and none is needed
        except ValueError:
            msg = "the loop has closed"
            raise RuntimeError(msg) from None

    def call_later(self, delay: float, fn: Callable[..., object], *args: object) -> Timer:
        """Call ``fn(*args)`` after `delay` seconds."""
        if len(self._timers) > _MANY_TIMERS:
            self._timers = [each for each in self._timers if not each[2].cancelled]
            heapq.heapify(self._timers)
        timer = Timer(fn, args)
        heapq.heappush(self._timers, (time.monotonic() + delay, next(self._order), timer))
        return timer

    def create_future(self) -> PlainFuture[Any]:
        """A future of this loop."""
        return PlainFuture(self)

    def create_task(self, coroutine: Coroutine[Any, None, T]) -> PlainTask[T]:
        """Run a coroutine from the next turn on."""
        return PlainTask(coroutine, self)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Tell of a fault that nobody else hears of; the keys are asyncio's."""
        import traceback  # noqa: PLC0415 - faults are rare

        story = "".join(traceback.format_exception(context.get("exception"))).rstrip()
        tell(f"{context.get('message')}\n{story}")

    # --- Descriptors ------------------------------------------------------------------------

    def add_reader(self, fd: int, fn: Callable[[], object]) -> None:
        """Call `fn` whenever `fd` has bytes or has ended."""
        self._readers[fd] = fn
        self._watch(fd)

    def remove_reader(self, fd: int) -> None:
        """Watch `fd` for reading no more."""
        if self._readers.pop(fd, None) is not None:
            self._watch(fd)

    def add_writer(self, fd: int, fn: Callable[[], object]) -> None:
        """Call `fn` whenever `fd` takes bytes or is broken."""
        self._writers[fd] = fn
        self._watch(fd)

    def remove_writer(self, fd: int) -> None:
        """Watch `fd` for writing no more."""
        if self._writers.pop(fd, None) is not None:
            self._watch(fd)

    def _watch(self, fd: int) -> None:
        wanted = (_READ if fd in self._readers else 0) | (_WRITE if fd in self._writers else 0)
        if wanted:
            self._poll.register(fd, wanted)
        else:
            self._poll.unregister(fd)

    def _wake_up(self) -> None:
        os.read(self._woken, _WAKES)

    # --- Running ----------------------------------------------------------------------------

    def run_until_complete(self, coroutine: Coroutine[Any, None, T]) -> T:
        """Run `coroutine` to its end, and everything else meanwhile."""
        task = self.create_task(coroutine)
        while not task.done():
            self._turn()
        return task.result()

    def close(self) -> None:
        """Let go of the descriptors. Threads that post from now on are told."""
        os.close(self._woken)
        self._wake.close()

    def _turn(self) -> None:
        for fd, ready in self._poll.poll(self._patience()):
            if ready & (_READ | _BROKEN) and (reader := self._readers.get(fd)) is not None:
                self._call(reader)
            if ready & (_WRITE | _BROKEN) and (writer := self._writers.get(fd)) is not None:
                self._call(writer)
        timers = self._timers
        while timers and timers[0][0] <= time.monotonic():
            timer = heapq.heappop(timers)[2]
            if not timer.cancelled:
                self._call(timer.fn, *timer.args)
        soon = self._soon
        for _ in range(len(soon)):
            fn, args = soon.popleft()
            self._call(fn, *args)

    def _patience(self) -> int | None:
        """Milliseconds that there is nothing to do for; None without end."""
        timers = self._timers
        while timers and timers[0][2].cancelled:
            heapq.heappop(timers)
        if self._soon:
            return 0
        if not timers:
            return None
        # A millisecond more than is left, rounded down: never too early, never again for nothing.
        left = int((timers[0][0] - time.monotonic()) * 1000) + 1
        return min(max(0, left), _LONGEST_WAIT)

    def _call(self, fn: Callable[..., object], *args: object) -> None:
        try:
            fn(*args)
        except Exception as fault:  # noqa: BLE001 - see the class
            self.call_exception_handler({"message": f"{fn!r} failed", "exception": fault})
