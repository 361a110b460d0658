"""From `Plugin.run` to the end of the process: loop, hooks, signals, drain, exit.

The host ends a plugin by closing its input; a host that died does so too. What is in
flight is finished within the grace, then the process ends with 0, also when a tool never
returns: threads are not waited for.
"""

import contextlib
import os
import select
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Final, cast

from executa_protocol.aio.flag import Flag
from executa_protocol.aio.streams import FdTransport
from executa_protocol.codec import encode
from executa_sdk import stdio
from executa_sdk.lifetime import HOOK_GRACE, start_up, wind_down
from executa_sdk.log import tell
from executa_sdk.plugin import Plugin
from executa_sdk.server import Server
from executa_sdk.timing import ended_within, pause, within

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task

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
    on_asyncio = needs_asyncio(plugin)
    loop = _asyncio_loop() if on_asyncio else _plain_loop()
    failed, finished = loop.run_until_complete(_serve(plugin, manifest, wire, loop))
    if finished and on_asyncio:
        finished = loop.run_until_complete(_end_tasks())
    _leave(loop, finished=finished)
    if failed:
        raise SystemExit(1)


def _plain_loop() -> "AbstractEventLoop":
    from executa_sdk.plainloop import PlainLoop  # noqa: PLC0415 - if asyncio is not used

    return cast("AbstractEventLoop", PlainLoop())  # the part of it that is used here


def _asyncio_loop() -> "AbstractEventLoop":
    try:
        from uvloop import new_event_loop  # noqa: PLC0415 - an extra
    except ImportError:
        from asyncio import new_event_loop  # noqa: PLC0415 - costs more than all the rest
    return new_event_loop()


def needs_asyncio(plugin: Plugin) -> bool:
    """Whether code of the plugin's may want to run on a loop of asyncio's.

    Coroutines do and hooks may; so does what has loaded asyncio for itself.
    """
    hooks = plugin.startup_hooks or plugin.shutdown_hooks
    coroutines = any(tool.way == "task" for tool in plugin.tools.values())
    # Windows has no poll.
    return bool(hooks) or coroutines or "asyncio" in sys.modules or not hasattr(select, "poll")


async def _serve(
    plugin: Plugin, manifest: bytes, wire: stdio.Wire, loop: "AbstractEventLoop"
) -> tuple[bool, bool]:
    """Whether start-up failed, and whether every call ended."""
    server = Server(plugin, manifest, FdTransport(wire.read_fd, wire.write_fd, loop=loop))
    ending = server.closed
    _on_signals(loop, ending, plugin.grace)
    server.peer.start()
    starting = loop.create_task(start_up(server, plugin))
    starting.add_done_callback(lambda _: ending.set() if _has_failed(starting) else None)
    await ending.wait()
    if not starting.done():
        # Calls that came before the end of input are in flight, also while we start up.
        await ended_within(starting, plugin.grace, loop)
    finished = await wind_down(server, plugin)
    await within(_flushed(server, loop), FLUSH_GRACE, loop)
    server.peer.close()
    return _has_failed(starting), finished


def _has_failed(starting: "Task[bool]") -> bool:
    return not starting.cancelled() and not starting.result()


async def _end_tasks() -> bool:
    """End the tasks that tools have left behind; False if some do not listen."""
    import asyncio  # noqa: PLC0415 - if it is used

    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    return not left or not (await asyncio.wait(left, timeout=FLUSH_GRACE))[1]


async def _flushed(server: Server, loop: "AbstractEventLoop") -> None:
    # Bytes that wait for a host which reads slowly; nobody tells when the last has left.
    while server.peer.queued:
        await pause(FLUSH_INTERVAL, loop)


def _on_signals(loop: "AbstractEventLoop", stop: Flag, grace: float) -> None:
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
