"""How every command that needs an event loop runs, and how signals end it."""

import asyncio
import signal
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end, under uvloop where there is one.

    SIGTERM and SIGHUP end it as Ctrl-C does: what `work` started is ended first.
    """
    if sys.platform == "win32":
        return asyncio.run(work)
    import uvloop  # noqa: PLC0415 - not to be had on Windows

    return uvloop.run(_ended_by_signals(work))


async def _ended_by_signals(work: Coroutine[Any, Any, T]) -> T:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup wants it
            loop.add_signal_handler(number, signal.raise_signal, signal.SIGINT)
    return await work
