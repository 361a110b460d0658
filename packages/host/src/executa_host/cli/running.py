"""What every command that runs one plugin needs: nexus, host, and what a fault means."""

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from executa_host.cli import exits
from executa_host.cli.nexuses import in_process
from executa_host.connection import StartFailed
from executa_host.host import Host
from executa_host.invocation import InvokeRefused
from executa_host.process import SpawnFailed
from executa_host.spec import PluginSpec
from executa_host.supervisor import PluginFaulted
from executa_protocol.codes import INVALID_PARAMS, METHOD_NOT_FOUND
from executa_protocol.errors import (
    ConnectionLost,
    DecodeFailure,
    ExecutaError,
    RpcError,
    UsageError,
)
from executa_protocol.transcript import AnyEvent

T = TypeVar("T")

_BROKEN = (StartFailed, SpawnFailed, PluginFaulted, ConnectionLost, DecodeFailure)
_MISUSE = (INVALID_PARAMS, METHOD_NOT_FOUND)


@asynccontextmanager
async def one_plugin(
    spec: PluginSpec, trace: Callable[[AnyEvent], None] | None = None
) -> AsyncGenerator[Host]:
    """A host over the stub that knows this plugin."""
    nexus = in_process()
    try:
        async with Host(nexus, trace=trace) as host:
            host.add(spec)
            yield host
    finally:
        await nexus.aclose()


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


def exit_code(fault: ExecutaError) -> int:
    """The exit code that a fault means."""
    if isinstance(fault, _BROKEN):
        return exits.BROKEN
    if isinstance(fault, RpcError) and fault.code in _MISUSE:
        return exits.USAGE
    if isinstance(fault, InvokeRefused):
        return exits.REFUSED
    return exits.USAGE if isinstance(fault, UsageError) else exits.FAILED
