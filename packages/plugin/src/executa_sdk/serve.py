"""From `Plugin.run` to the end of the process: loop, hooks, signals, drain, exit.

The host ends a plugin by closing its input; a host that died does so too. What is in
flight is finished within the grace, then the process ends with 0, also when a tool never
returns: threads are not waited for.
"""

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

from executa_protocol.aio.peer import Peer
from executa_protocol.aio.streams import FdTransport
from executa_protocol.codec import encode
from executa_sdk import stdio
from executa_sdk.lifetime import HOOK_GRACE, start_up, wind_down
from executa_sdk.log import tell
from executa_sdk.plugin import Plugin
from executa_sdk.server import Server
from executa_sdk.timing import within

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

FLUSH_GRACE: Final = 0.5
"""Seconds that the host may take to read our last answers."""

LEAVE_GRACE: Final = 1.0
"""Seconds that threads which Python waits for may still take."""

FLUSH_INTERVAL: Final = 0.005
"""Seconds between two looks at what is still to be written."""


def run(plugin: Plugin) -> None:
    """Serve `plugin` on stdin and stdout. Raises SystemExit(1) if start-up fails."""
    manifest = encode(plugin.manifest())
    _warn_of_undeclared(plugin)
    wire = stdio.claim()
    if wire.is_terminal:
        _greet(plugin)
    loop = _new_loop()
    stop = asyncio.Event()
    _on_signals(loop, stop, plugin.grace)
    failed, finished = loop.run_until_complete(_serve(plugin, manifest, wire, stop))
    _leave(loop, finished=finished)
    if failed:
        raise SystemExit(1)


def _new_loop() -> "AbstractEventLoop":
    try:
        from uvloop import new_event_loop  # noqa: PLC0415 - an extra
    except ImportError:
        return asyncio.new_event_loop()
    return new_event_loop()


async def _serve(
    plugin: Plugin, manifest: bytes, wire: stdio.Wire, stop: asyncio.Event
) -> tuple[bool, bool]:
    """Whether start-up failed, and whether every call ended."""
    server = Server(plugin, manifest, FdTransport(wire.read_fd, wire.write_fd))
    server.peer.start()
    ending = asyncio.ensure_future(_either(server.closed, stop))
    starting = asyncio.ensure_future(start_up(server, plugin))
    await asyncio.wait((ending, starting), return_when=asyncio.FIRST_COMPLETED)
    if ending.done():
        # Calls that came before the end of input are in flight, also while we start up.
        await within(starting, plugin.grace)
    failed = starting.done() and not starting.cancelled() and not starting.result()
    if not failed:
        await ending
    ending.cancel()
    finished = await wind_down(server, plugin)
    await within(_flushed(server.peer), FLUSH_GRACE)
    server.peer.close()
    return failed, finished and await _end_tasks()


async def _either(first: asyncio.Event, second: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in (first, second)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def _end_tasks() -> bool:
    """End the tasks that tools have left behind; False if some do not listen."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    return not left or not (await asyncio.wait(left, timeout=FLUSH_GRACE))[1]


async def _flushed(peer: Peer) -> None:
    # Bytes that wait for a host which reads slowly; nobody tells when the last has left.
    while peer.outgoing.queued:  # noqa: ASYNC110 - see above
        await asyncio.sleep(FLUSH_INTERVAL)


def _on_signals(loop: "AbstractEventLoop", stop: asyncio.Event, grace: float) -> None:
    """End cleanly on SIGTERM and SIGINT, also when a tool blocks the loop."""
    if threading.current_thread() is not threading.main_thread():
        return

    def handle(number: int, frame: object) -> None:
        _exit_after(grace + HOOK_GRACE + FLUSH_GRACE)
        with contextlib.suppress(RuntimeError):  # the loop has closed: we are leaving already
            loop.call_soon_threadsafe(stop.set)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def _leave(loop: "AbstractEventLoop", *, finished: bool) -> None:
    """Let the process end, whatever still runs in it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    if not finished:
        # A thread that holds a lock of the interpreter could abort a regular exit.
        os._exit(0)
    loop.close()
    here = threading.current_thread()
    if any(thread is not here and not thread.daemon for thread in threading.enumerate()):
        _exit_after(LEAVE_GRACE)


def _exit_after(seconds: float) -> None:
    """End the process with 0 if it is still there then."""

    def end() -> None:
        time.sleep(seconds)
        os._exit(0)

    threading.Thread(target=end, name="executa-exit", daemon=True).start()


def _warn_of_undeclared(plugin: Plugin) -> None:
    missing = plugin.undeclared_capabilities()
    if missing:
        tell(
            f"the tools' code asks for {', '.join(missing)}, which host_capabilities does not "
            "declare; the host will refuse those calls"
        )


def _greet(plugin: Plugin) -> None:
    first = next(iter(plugin.tools))
    tell(
        f"{plugin.name} {plugin.version} is an Executa plugin: a host starts it and speaks JSON "
        f"with it, one object a line.\nTools: {', '.join(plugin.tools)}.\nTo try it here, type a "
        'request and Enter; Ctrl-D ends it:\n  {"jsonrpc":"2.0","id":1,"method":"describe"}\n'
        '  {"jsonrpc":"2.0","id":2,"method":"invoke",'
        f'"params":{{"tool":"{first}","arguments":{{}}}}}}'
    )
