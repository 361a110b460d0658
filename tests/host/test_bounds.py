"""Time-outs kept by one timer: they raise as `asyncio.timeout` does, and never early."""

import asyncio
import time

import pytest

from executa_host.background import Background
from executa_host.bounds import Bounds


async def test_a_block_that_takes_too_long_raises_and_never_early() -> None:
    bounds = Bounds()
    started = time.monotonic()
    with pytest.raises(TimeoutError), bounds.within(0.05):
        await asyncio.Event().wait()
    assert time.monotonic() - started >= 0.05


async def test_a_block_that_ends_in_time_is_left_alone() -> None:
    bounds = Bounds()
    with bounds.within(10):
        await asyncio.sleep(0)
    bounds.stop()
    await asyncio.sleep(0)


async def test_many_bounds_each_have_their_own_end() -> None:
    bounds = Bounds()
    ended: list[float] = []

    async def block(seconds: float) -> None:
        with pytest.raises(TimeoutError), bounds.within(seconds):
            await asyncio.Event().wait()
        ended.append(seconds)

    async with asyncio.timeout(5):
        await asyncio.gather(block(0.3), block(0.01), block(0.15))
    assert ended == [0.01, 0.15, 0.3]


async def test_a_shorter_bound_that_comes_later_is_kept_too() -> None:
    bounds = Bounds()

    async def long() -> None:
        with bounds.within(60):
            await asyncio.Event().wait()

    waiting = asyncio.ensure_future(long())
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError), bounds.within(0.01):
        await asyncio.Event().wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    bounds.stop()


async def test_a_task_that_somebody_cancels_stays_cancelled() -> None:
    bounds = Bounds()

    async def block() -> None:
        with bounds.within(60):
            await asyncio.Event().wait()

    task = asyncio.ensure_future(block())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    bounds.stop()


async def test_a_cancel_and_a_time_out_at_once_are_a_cancel() -> None:
    bounds = Bounds()

    async def block() -> None:
        bound = bounds.within(60)
        with bound:
            bound.expire()
            task.cancel()
            await asyncio.Event().wait()

    task = asyncio.ensure_future(block())
    with pytest.raises(asyncio.CancelledError):
        await task
    bounds.stop()


async def test_another_fault_is_not_hidden_by_a_time_out() -> None:
    bounds = Bounds()

    async def block() -> None:
        bound = bounds.within(60)
        with bound:
            bound.expire()
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await asyncio.ensure_future(block())
    bounds.stop()


async def test_work_in_the_background_is_bounded_and_its_faults_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bounds = Bounds()
    background = Background(bounds)

    async def fails() -> None:
        raise RuntimeError("broken")

    await asyncio.wait(
        [
            background.run(asyncio.Event().wait, "waiting", 0.01),
            background.run(fails, "failing", 1),
        ]
    )
    assert "waiting was given up after 0.01 s" in caplog.text
    assert "failing failed" in caplog.text
    bounds.stop()


async def test_finishing_cancels_what_does_not_end() -> None:
    bounds = Bounds()
    background = Background(bounds)
    task = background.run(asyncio.Event().wait, "waiting", 60)
    await background.finish(0.01)
    assert task.cancelled()
    assert len(background) == 0
    bounds.stop()
