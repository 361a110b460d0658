"""Work within one process: repeated for a while, timed, and its result checked."""

import gc
import time
from collections.abc import Callable, Coroutine
from typing import TypeVar

from benchmarks.model import WrongAnswer
from benchmarks.rounds import CHECKED, Sample, Trial

T = TypeVar("T")


def repeated(operation: Callable[[], object], seconds: float) -> tuple[float, float, int]:
    """Repeat for about `seconds`: wall and CPU seconds of one, and how often it was done.

    The collector is off meanwhile, so that no contender pays for another one's garbage.
    """
    clock, cpu = time.perf_counter, time.process_time
    done, batch = 0, 1
    gc.collect()
    gc.disable()
    try:
        used, begun = cpu(), clock()
        while True:
            for _ in range(batch):
                operation()
            done += batch
            took = clock() - begun
            if took >= seconds:
                return took / done, (cpu() - used) / done, done
            batch = max(1, min(done, int(done * (seconds - took) / max(took, 1e-9))))
    finally:
        gc.enable()


def work(
    name: str,
    operation: Callable[[], object],
    verify: Callable[[], bool],
    seconds: float,
    *,
    count: int = 1,
    size: int = 0,
) -> Trial:
    """A trial of an operation on `count` things, of `size` bytes in all.

    `verify` does the same once before each measurement and says whether the result was
    right; it is not timed.
    """

    async def take() -> Sample:
        if not verify():
            msg = f"{name} gave something else than was put in"
            raise WrongAnswer(msg)
        wall, cpu, _ = repeated(operation, seconds)
        sample = {"each_us": wall / count * 1e6, "cpu_us": cpu / count * 1e6, CHECKED: count}
        return {"rate_mb_per_s": size / wall / 1e6, **sample} if size else sample

    return Trial(name, take, take)


def at_once(coroutine: Coroutine[object, object, T]) -> T:
    """The result of a coroutine that finds everything there and never waits."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    coroutine.close()
    msg = "a coroutine waited for what should have been there"
    raise WrongAnswer(msg)
