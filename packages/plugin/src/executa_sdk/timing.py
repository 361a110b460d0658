"""Bounded waits."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def within(work: Awaitable[T], seconds: float) -> T | None:
    """What `work` gives; None, and `work` cancelled, if it takes longer than `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        return None
