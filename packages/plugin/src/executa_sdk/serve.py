"""From `Plugin.run` to the end of the process: loop, hooks, signals, drain, exit.

The host ends a plugin by closing its input; a host that died does so too. What is in
flight is finished within the grace, then the process ends with 0, also when a tool never
returns: threads are not waited for.
"""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable
from inspect import isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING, Final, TypeVar

from executa_protocol.aio.peer import Peer
from executa_protocol.aio.streams import FdTransport
from executa_protocol.codec import encode
from executa_sdk import stdio
from executa_sdk.connection import Connection
from executa_sdk.plugin import Hook, Plugin
from executa_sdk.server import Server

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

T = TypeVar("T")

FLUSH_GRACE: Final = 1.0
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
    try:
        asyncio.set_event_loop(loop)
        started, finished = loop.run_until_complete(_serve(plugin, manifest, wire, stop))
    finally:
        asyncio.set_event_loop(None)
    _leave(loop, finished=finished)
    if not started:
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
    """Whether start-up succeeded, and whether every call ended."""
    server = Server(plugin, manifest, FdTransport(wire.read_fd, wire.write_fd))
    connection = server.connection
    server.peer.start()
    ending = asyncio.ensure_future(_either(server.closed, stop))
    starting = asyncio.ensure_future(_run_hooks(plugin.startup_hooks, connection))
    await asyncio.wait((ending, starting), return_when=asyncio.FIRST_COMPLETED)
    # Calls that came before the end of input are in flight, also while we start up.
    if ending.done():
        await _within(starting, plugin.grace)
    started = starting.done() and not starting.cancelled() and starting.result()
    if started:
        server.open()
        await ending
    ending.cancel()
    starting.cancel()
    finished = await server.calls.drain(plugin.grace if started else 0.0)
    await _within(_run_hooks(plugin.shutdown_hooks, connection), plugin.grace)
    await _within(_flushed(server.peer), FLUSH_GRACE)
    server.peer.close()
    return started, finished


async def _either(first: asyncio.Event, second: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in (first, second)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def _run_hooks(hooks: list[Hook], connection: Connection) -> bool:
    """Run hooks in order; the first that fails ends it, with its story on stderr."""
    for hook in hooks:
        try:
            if iscoroutinefunction(hook):
                await hook()
            else:
                result = await connection.blocking(hook)
                if isawaitable(result):
                    await result
        except Exception:  # noqa: BLE001 - a hook is the author's code
            import traceback  # noqa: PLC0415 - faults are rare

            sys.stderr.write(f"executa: hook {hook!r} failed\n{traceback.format_exc()}")
            return False
    return True


async def _flushed(peer: Peer) -> None:
    # Bytes that wait for a host which reads slowly; nobody tells when the last has left.
    while peer.queued:  # noqa: ASYNC110 - see above
        await asyncio.sleep(FLUSH_INTERVAL)


async def _within(work: Awaitable[T], seconds: float) -> T | None:
    """What `work` gives; None if it takes longer."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        return None


def _on_signals(loop: "AbstractEventLoop", stop: asyncio.Event, grace: float) -> None:
    """End cleanly on SIGTERM and SIGINT, also when a tool blocks the loop."""
    if threading.current_thread() is not threading.main_thread():
        return

    def handle(number: int, frame: object) -> None:
        _exit_after(grace + FLUSH_GRACE + LEAVE_GRACE)
        loop.call_soon_threadsafe(stop.set)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def _leave(loop: "AbstractEventLoop", *, finished: bool) -> None:
    """Let the process end, whatever still runs in it."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
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
    declared = plugin.host_capabilities
    missing = [string for string in plugin.derived_capabilities() if string not in declared]
    if missing:
        sys.stderr.write(
            f"executa: the tools' code asks for {', '.join(missing)}, which host_capabilities "
            "does not declare; the host will refuse those calls\n"
        )


def _greet(plugin: Plugin) -> None:
    names = ", ".join(plugin.tools) or "none"
    first = next(iter(plugin.tools), "TOOL")
    sys.stderr.write(
        f"{plugin.name} {plugin.version} is an Executa plugin: a host starts it and speaks JSON "
        f"with it, one object a line.\nTools: {names}.\nTo try it here, type a request and Enter; "
        'Ctrl-D ends it:\n  {"jsonrpc":"2.0","id":1,"method":"describe"}\n'
        '  {"jsonrpc":"2.0","id":2,"method":"invoke",'
        f'"params":{{"tool":"{first}","arguments":{{}}}}}}\n'
    )
