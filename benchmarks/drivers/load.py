"""So many calls in flight for so long, with the times of each and the CPU of all processes."""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, cast

from benchmarks import machine
from benchmarks.drivers.contender import Call
from benchmarks.model import WrongAnswer

Sample = dict[str, float]

MANY: Final = 1_000
TIMES: Final = 5
"""With so many in flight each is made so often: else their start is much of what is measured."""

LIMIT: Final = 500.0
"""Seconds after which a measurement that does not end is a missing answer."""


async def run(call: Call, in_flight: int, seconds: float, servers: Sequence[int]) -> Sample:
    """Make calls for `seconds`, `in_flight` at a time, at least one each; give the costs of one.

    With `MANY` in flight it goes on until each has been made `TIMES` times. Raises
    `WrongAnswer` for a wrong answer, and for one that does not come.
    """
    times: list[float] = []
    clock = time.perf_counter
    numbers = iter(range(100_000_000))
    here = os.getpid()
    cpu_there, cpu_here = sum(map(machine.cpu, servers)), machine.cpu(here)
    process = time.process_time()
    begun = clock()
    until = begun + seconds

    least = TIMES if in_flight >= MANY else 1

    async def worker() -> None:
        left = least
        while True:
            started = clock()
            await call(next(numbers))
            ended = clock()
            times.append(ended - started)
            left -= 1
            if left <= 0 and ended >= until:
                return

    await _bounded(worker, in_flight)
    wall = clock() - begun
    used_here = machine.cpu(here) - cpu_here or time.process_time() - process
    used_there = sum(map(machine.cpu, servers)) - cpu_there
    times.sort()
    count = len(times)
    return {
        "rate_per_s": count / wall,
        "p50_us": times[count // 2] * 1e6,
        "p99_us": times[min(count - 1, int(count * 0.99))] * 1e6,
        "cpu_client_us": used_here / count * 1e6,
        "cpu_server_us": used_there / count * 1e6,
        "peak_client_mib": machine.own_peak(),
        "peak_server_mib": max(map(machine.peak_resident, servers), default=0.0),
        "checked": count,
    }


async def _bounded(worker: Callable[[], Coroutine[Any, Any, None]], count: int) -> None:
    try:
        async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(worker())
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
