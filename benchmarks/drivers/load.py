"""So many calls in flight for so long, with the times of each and the CPU of all processes.

A closed load: each of so many callers makes its next call when it has its answer. Starting the
callers and letting the last ones end is no part of what is measured: the window opens when
each has had an answer, and closes while all of them still call.
"""

import asyncio
import itertools
import math
import time
from collections.abc import Sequence
from typing import Final, cast

from benchmarks import machine
from benchmarks.drivers.contender import Call
from benchmarks.model import WrongAnswer

Sample = dict[str, float]

LIMIT: Final = 500.0
"""Seconds after which a measurement that does not end is a missing answer."""


async def run(call: Call, in_flight: int, seconds: float, servers: Sequence[int]) -> Sample:
    """Keep `in_flight` calls in flight for `seconds`; give the costs of one.

    It takes longer where `seconds` are over before as many calls have ended as are in flight.
    The number that a call gets is never used twice; those of one caller leave the same
    remainder when they are divided by `in_flight`. Raises `WrongAnswer` for a wrong answer, and
    for one that does not come.
    """
    window = _Window(in_flight, seconds, servers)
    await _bounded(call, window)
    return window.sample()


class _Window:
    """What happens between the opening and the close."""

    def __init__(self, in_flight: int, seconds: float, servers: Sequence[int]) -> None:
        self.in_flight = in_flight
        self.times: list[float] = []
        self.until = math.inf
        self._seconds = seconds
        self._servers = servers
        self._unheard = in_flight
        # Seconds on the wall, of CPU here and of CPU there: at the opening, then of the window.
        self._wall = self._here = self._there = 0.0
        self._closed = False

    def heard(self) -> None:
        """A caller has its first answer; with the last of them the window opens."""
        self._unheard -= 1
        if not self._unheard:
            self.times.clear()
            self._there = self._cpu_there()
            self._wall, self._here = time.perf_counter(), time.process_time()
            self.until = time.perf_counter() + self._seconds

    def close(self) -> None:
        """Nothing that ends from now on counts. Idempotent."""
        if not self._closed:
            self._closed = True
            self._wall = time.perf_counter() - self._wall
            self._here = time.process_time() - self._here
            self._there = self._cpu_there() - self._there
            self.times = sorted(self.times)

    def _cpu_there(self) -> float:
        return sum(map(machine.cpu, self._servers))

    def sample(self) -> Sample:
        """The costs of one call."""
        times, count = self.times, len(self.times)
        return {
            "rate_per_s": count / self._wall,
            "p50_us": times[count // 2] * 1e6,
            "p99_us": times[min(count - 1, int(count * 0.99))] * 1e6,
            "cpu_client_us": self._here / count * 1e6,
            "cpu_server_us": self._there / count * 1e6,
            "peak_client_mib": machine.own_peak(),
            "peak_server_mib": max(map(machine.peak_resident, self._servers), default=0.0),
            "checked": count,
        }


async def _caller(first: int, call: Call, window: _Window) -> None:
    numbers = itertools.count(first, window.in_flight)
    await call(next(numbers))
    window.heard()
    clock, times, least = time.perf_counter, window.times, window.in_flight
    for number in numbers:
        started = clock()
        await call(number)
        ended = clock()
        times.append(ended - started)
        if ended >= window.until and len(times) >= least:
            window.close()
            return


async def _bounded(call: Call, window: _Window) -> None:
    try:
        async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
            for first in range(window.in_flight):
                group.create_task(_caller(first, call, window))
    except TimeoutError:
        msg = f"an answer is missing after {LIMIT:g} s"
        raise WrongAnswer(msg) from None
    except BaseExceptionGroup as faults:
        first = _first(faults)
        if isinstance(first, WrongAnswer) or not isinstance(first, Exception):
            raise first from None
        msg = f"an operation failed: {type(first).__name__}: {first}"
        raise WrongAnswer(msg[:500]) from first


def _first(faults: BaseExceptionGroup[BaseException]) -> BaseException:
    first = faults.exceptions[0]
    if isinstance(first, BaseExceptionGroup):
        return _first(cast("BaseExceptionGroup[BaseException]", first))
    return first
