"""How everything here is measured: rounds in which the contenders take turns.

A shared machine is noisy for seconds at a time, so contenders alternate within a round
and ratios are taken within the same round. Wall time lies there; CPU time of each
process stands beside it. A wrong or missing answer ends the run: no figure is kept.
"""

import asyncio
import os
import platform
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol, Self

from msgspec import Struct

Call = Callable[[int], Awaitable[None]]
"""One operation with its number; raises `WrongAnswer` if the answer is not right."""


class WrongAnswer(Exception):
    """A contender answered wrongly, which voids its figures."""


class Scale(Struct, frozen=True):
    """How much is done: `rounds` in which each contender makes `calls` calls."""

    rounds: int = 9
    calls: int = 6_000

    @classmethod
    def quick(cls) -> Self:
        """Enough to see that it works and about where the figures lie."""
        return cls(rounds=3, calls=1_500)


class Contender(Protocol):
    """Something to measure, open while its context is entered."""

    name: str

    def open(self) -> AbstractAsyncContextManager[Call]:
        """Start it and give its call."""
        ...

    def child_pid(self) -> int:
        """The process on the other side."""
        ...


class Sample(Struct, frozen=True):
    """One contender in one round; microseconds for one call."""

    wall: float
    p50: float
    p99: float
    cpu_here: float
    cpu_there: float


class Spread(Struct, frozen=True):
    """A figure over all rounds: median with the least and the greatest."""

    median: float
    least: float
    greatest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        return cls(
            round(statistics.median(values), 3), round(min(values), 3), round(max(values), 3)
        )


class Row(Struct, frozen=True):
    """One contender under one condition."""

    condition: str
    contender: str
    calls_a_second: Spread
    p50_us: Spread
    p99_us: Spread
    cpu_here_us: Spread
    cpu_there_us: Spread


class Ratio(Struct, frozen=True):
    """A figure of one contender over the same figure of another, round by round."""

    condition: str
    name: str
    value: Spread


class Report(Struct):
    """What a suite found out."""

    suite: str
    rows: list[Row]
    ratios: list[Ratio]
    checked: int
    """Answers that were checked, all of them right."""


async def measure(call: Call, calls: int, in_flight: int, pid: int) -> Sample:
    """Make `calls` calls, `in_flight` at a time, and take their times."""
    times: list[float] = []
    numbers = iter(range(calls))

    async def worker() -> None:
        clock = time.perf_counter
        for number in numbers:
            begun = clock()
            await call(number)
            times.append(clock() - begun)

    cpu_there = child_cpu(pid)
    cpu_here = time.process_time()
    begun = time.perf_counter()
    await gather(worker, in_flight)
    wall = time.perf_counter() - begun
    cpu_here = time.process_time() - cpu_here
    cpu_there = child_cpu(pid) - cpu_there
    if len(times) != calls:
        msg = f"{calls - len(times)} of {calls} answers are missing"
        raise WrongAnswer(msg)
    times.sort()
    micro = 1e6
    return Sample(
        wall=wall / calls * micro,
        p50=times[len(times) // 2] * micro,
        p99=times[int(len(times) * 0.99)] * micro,
        cpu_here=cpu_here / calls * micro,
        cpu_there=cpu_there / calls * micro,
    )


async def gather(worker: Callable[[], Awaitable[None]], count: int) -> None:
    """Run `count` workers at once."""

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(_run(worker))


async def _run(worker: Callable[[], Awaitable[None]]) -> None:
    await worker()


async def compare(
    contenders: Sequence[Contender], scale: Scale, in_flight: int
) -> dict[str, list[Sample]]:
    """All contenders in alternating rounds, after a warm-up of each."""
    samples: dict[str, list[Sample]] = {contender.name: [] for contender in contenders}
    for number in range(scale.rounds + 1):
        turn = number % len(contenders)
        for contender in (*contenders[turn:], *contenders[:turn]):
            async with contender.open() as call:
                pid = contender.child_pid()
                await measure(call, max(in_flight, scale.calls // 10), in_flight, pid)
                sample = await measure(call, scale.calls, in_flight, pid)
            if number:  # the first round warms the machine's caches
                samples[contender.name].append(sample)
    return samples


def rows(condition: str, samples: dict[str, list[Sample]]) -> list[Row]:
    """The table of one condition."""
    return [
        Row(
            condition=condition,
            contender=name,
            calls_a_second=Spread.of([1e6 / sample.wall for sample in taken]),
            p50_us=Spread.of([sample.p50 for sample in taken]),
            p99_us=Spread.of([sample.p99 for sample in taken]),
            cpu_here_us=Spread.of([sample.cpu_here for sample in taken]),
            cpu_there_us=Spread.of([sample.cpu_there for sample in taken]),
        )
        for name, taken in samples.items()
    ]


def ratio(condition: str, name: str, over: Sequence[float], under: Sequence[float]) -> Ratio:
    """`over` divided by `under`, each pair from the same round."""
    pairs = zip(over, under, strict=True)
    return Ratio(condition, name, Spread.of([first / second for first, second in pairs]))


def child_cpu(pid: int) -> float:
    """CPU seconds that a process has used so far, all its threads together."""
    tasks = Path(f"/proc/{pid}/task")
    if not tasks.is_dir():
        return 0.0
    spent = 0
    for task in tasks.iterdir():
        spent += int((task / "schedstat").read_text().split()[0])
    return spent / 1e9


def environment() -> dict[str, Any]:
    """What the figures belong to."""
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "affinity": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "versions": {name: _version(name) for name in ("executa-host", "msgspec", "uvloop")},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"
