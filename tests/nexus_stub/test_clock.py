"""The two clocks keep the same promises."""

import asyncio

import pytest

from executa_nexus_stub.clock import ManualClock, SystemClock, sleep, wait_for


async def test_timers_run_in_the_order_of_their_times_and_cancelled_ones_do_not(
    clock: ManualClock,
) -> None:
    ran: list[tuple[str, float]] = []
    start = clock.now()
    for name, seconds in (("late", 3.0), ("early", 1.0), ("never", 2.0), ("beyond", 9.0)):
        timer = clock.call_later(seconds, lambda name=name: ran.append((name, clock.now() - start)))
        if name == "never":
            timer.cancel()

    clock.advance(5.0)

    assert ran == [("early", 1.0), ("late", 3.0)]
    assert clock.pending_count == 1


async def test_a_wait_that_is_over_in_time_leaves_no_timer(clock: ManualClock) -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    future.set_result(7)

    assert await wait_for(clock, future, 10) == 7
    assert clock.pending_count == 0


async def test_a_wait_that_is_not_ends_the_future(clock: ManualClock) -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    waiting = asyncio.ensure_future(wait_for(clock, future, 10))
    await asyncio.sleep(0)

    clock.advance(10)

    with pytest.raises(TimeoutError):
        await waiting
    assert future.done()


async def test_the_systems_clock_sleeps_and_gives_up() -> None:
    clock = SystemClock()
    before = clock.now()

    async with asyncio.timeout(10):
        await sleep(clock, 0.001)
        await sleep(clock, 0)
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with pytest.raises(TimeoutError):
            await wait_for(clock, never, 0.001)

    assert clock.now() >= before
