"""Suite `correlate`: which call an answer belongs to, and what its deadline costs."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final
from uuid import uuid4

from benchmarks.model import Report, WrongAnswer
from benchmarks.rounds import CHECKED, Sample, Trial, alternate, ratio
from benchmarks.scale import SEED, Scale
from benchmarks.timing import work
from executa_protocol.aio.deadlines import Deadlines
from executa_protocol.correlation import InFlight

IN_FLIGHT: Final = (1, 64, 1_024, 10_000)
TIMEOUT: Final = 60.0
BATCH: Final = 64


async def run(scale: Scale) -> Report:
    """Ids given out and taken back, 1 to 10,000 in flight; one sweep of deadlines over timers."""
    report = Report("correlate")
    for count in IN_FLIGHT:
        order = list(range(count))
        random.Random(SEED).shuffle(order)  # noqa: S311 - no secret
        trials = [
            work(name, lambda way=way, order=order: way(order),
                 lambda way=way, order=order: way(order) == order,
                 scale.seconds / 4, count=count)
            for name, way in (("executa", ours), ("dict", plain), ("dict, uuid4 ids", with_uuids))
        ]  # fmt: skip
        series = await alternate(f"{count:,} in flight", trials, scale.rounds, report)
        found, bound = (series.values(name, "cpu_us") for name in ("executa", "dict"))
        title = f"{count:,} in flight: CPU of ours over a bare dict's"
        ratio(report, f"over_dict_{count}", title, found, bound)
    await _deadlines(scale, report)
    return report


def ours(order: list[int]) -> list[int]:
    """`InFlight`, answered in another order than asked."""
    flying = InFlight[int]()
    numbers = [flying.add(place) for place in range(len(order))]
    return [taken for place in order if isinstance(taken := flying.take(numbers[place]), int)]


def plain(order: list[int]) -> list[int]:
    """The least: a counter and a dict, and no answer that belongs to nobody."""
    flying: dict[int, int] = {}
    for place in range(len(order)):
        flying[place] = place  # noqa: PERF403 - one after the other, as calls are made
    return [flying.pop(place) for place in order]


def with_uuids(order: list[int]) -> list[int]:
    """As many libraries do it."""
    names = [uuid4().hex for _ in order]
    flying = {name: place for place, name in enumerate(names)}
    return [flying.pop(names[place]) for place in order]


# --- Deadlines -------------------------------------------------------------------------


class _Call:
    """A future with a deadline, as the peer has it."""

    __slots__ = ("deadline", "future")

    def __init__(self, future: "asyncio.Future[int]") -> None:
        self.future = future
        self.deadline = 0.0

    def fail(self, reason: Exception) -> None:
        self.future.set_exception(reason)


async def _deadlines(scale: Scale, report: Report) -> None:
    """Futures that are answered in time, with a deadline each that is never reached."""
    trials = [
        Trial(name, lambda way=way: _answered(way, scale.seconds / 4))
        for name, way in (
            ("executa, one sweep", swept),
            ("call_later", with_timers),
            ("wait_for", with_wait_for),
            ("no deadline", without),
        )
    ]
    series = await alternate(f"deadlines, {BATCH} in flight", trials, scale.rounds, report)
    found = series.values("executa, one sweep", "cpu_us")
    for peer in ("no deadline", "call_later", "wait_for"):
        key = peer.replace(" ", "_")
        title = f"deadlines: CPU of one sweep over {peer}"
        ratio(report, f"deadline_over_{key}", title, found, series.values(peer, "cpu_us"))


async def _answered(way: Callable[[], Awaitable[int]], seconds: float) -> Sample:
    clock, done = time.perf_counter, 0
    used, begun = time.process_time(), clock()
    while (took := clock() - begun) < seconds or not done:
        if await way() != sum(range(BATCH)):
            msg = "a future had another result"
            raise WrongAnswer(msg)
        done += BATCH
    cpu = time.process_time() - used
    return {"each_us": took / done * 1e6, "cpu_us": cpu / done * 1e6, CHECKED: done}


async def swept() -> int:
    """As the peer does it: all deadlines under one timer."""
    loop, calls = asyncio.get_running_loop(), dict[int, _Call]()
    deadlines = Deadlines(calls, lambda: None, loop)
    until = time.monotonic() + TIMEOUT
    for number in range(BATCH):
        calls[number] = call = _Call(loop.create_future())
        deadlines.watch(call, until)
    waiting = list(calls.values())
    loop.call_soon(_answer_in_time, waiting, calls)
    total = 0
    for call in waiting:
        total += await call.future
    deadlines.stop()
    return total


async def with_timers() -> int:
    """A timer for each, cancelled when the answer is there."""
    loop = asyncio.get_running_loop()
    futures = [loop.create_future() for _ in range(BATCH)]
    timers = [loop.call_later(TIMEOUT, future.cancel) for future in futures]
    loop.call_soon(_answer_all, futures)
    total = 0
    for future, timer in zip(futures, timers, strict=True):
        total += await future
        timer.cancel()
    return total


async def with_wait_for() -> int:
    """`asyncio.wait_for` for each."""
    loop = asyncio.get_running_loop()
    futures = [loop.create_future() for _ in range(BATCH)]
    loop.call_soon(_answer_all, futures)
    total = 0
    for future in futures:
        total += await asyncio.wait_for(future, TIMEOUT)
    return total


async def without() -> int:
    """The bound: nobody looks at the time."""
    loop = asyncio.get_running_loop()
    futures = [loop.create_future() for _ in range(BATCH)]
    loop.call_soon(_answer_all, futures)
    total = 0
    for future in futures:
        total += await future
    return total


def _answer_in_time(waiting: list[_Call], calls: dict[int, _Call]) -> None:
    for number, call in enumerate(waiting):
        del calls[number]
        call.future.set_result(number)


def _answer_all(futures: "list[asyncio.Future[int]]") -> None:
    for number, future in enumerate(futures):
        future.set_result(number)
