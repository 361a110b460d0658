"""Bounded waits, on any loop."""

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


async def within(
    work: Coroutine[Any, Any, T], seconds: float, loop: "asyncio.AbstractEventLoop"
) -> T | None:
    """What `work` gives; None, and `work` cancelled, if it takes longer than `seconds`."""
    return await ended_within(loop.create_task(work), seconds, loop)


async def ended_within(
    task: "asyncio.Task[T]", seconds: float, loop: "asyncio.AbstractEventLoop"
) -> T | None:
    """As `within`, for a task that runs already."""
    timer = loop.call_later(seconds, task.cancel)
    try:
        await _ended(task, loop)
    except BaseException:
        task.cancel()
        raise
    finally:
        timer.cancel()
    return None if task.cancelled() else task.result()


async def _ended(task: "asyncio.Task[Any]", loop: "asyncio.AbstractEventLoop") -> None:
    """Wait for a task without being told how it ended."""
    over: asyncio.Future[None] = loop.create_future()

    def end(_: object) -> None:
        if not over.done():
            over.set_result(None)

    task.add_done_callback(end)
    await over


async def pause(seconds: float, loop: "asyncio.AbstractEventLoop") -> None:
    """Wait for `seconds`."""
    over: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(seconds, over.set_result, None)
    try:
        await over
    finally:
        timer.cancel()
