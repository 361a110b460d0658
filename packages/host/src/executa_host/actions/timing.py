"""The host's clock in epoch milliseconds, and waiting within bounds.

Nothing in here reads the machine's time: a test moves the clock that it gave.
"""

import asyncio

from executa_host.clock import Clock


def now_ms(clock: Clock) -> int:
    """The time."""
    return int(clock.now() * 1000)


async def wait_for(clock: Clock, event: asyncio.Event, seconds: float) -> bool:
    """Whether `event` is set within `seconds`; if both fall together, it is."""
    if event.is_set() or seconds <= 0:
        return event.is_set()
    waiter = asyncio.ensure_future(event.wait())

    def give_up() -> None:
        waiter.cancel()

    timer = clock.call_later(seconds, give_up)
    try:
        await asyncio.wait((waiter,))
    finally:
        timer.cancel()
        waiter.cancel()
    return event.is_set()
