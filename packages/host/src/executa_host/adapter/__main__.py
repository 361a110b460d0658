"""``python -m executa_host.adapter``: commands on stdin, answers on stdout, until stdin ends."""

import asyncio
import os
import signal
import sys
import threading
from typing import Final

from executa_host.adapter.session import Session

_STDOUT: Final = 1


def _write(line: bytes) -> None:
    """Write a line whole. The kit reads all the time, so this waits for nobody."""
    view = memoryview(line)
    while view:
        view = view[os.write(_STDOUT, view) :]


def _read(loop: asyncio.AbstractEventLoop, lines: "asyncio.Queue[bytes]") -> None:
    """Pass on the lines of stdin, whatever it is; an empty one ends."""
    while line := sys.stdin.buffer.readline():
        loop.call_soon_threadsafe(lines.put_nowait, line)
    loop.call_soon_threadsafe(lines.put_nowait, b"")


async def _serve() -> None:
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    # A thread of its own, which nothing waits for: a read cannot be called off.
    reading = threading.Thread(
        target=_read, args=(asyncio.get_running_loop(), lines), daemon=True, name="stdin"
    )
    reading.start()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, lines.put_nowait, b"")
    session = Session(_write)
    try:
        while line := await lines.get():
            session.take(line)
    finally:
        await session.close()


def main() -> int:
    """Serve until stdin ends, or a signal says so; the exit code."""
    if sys.platform == "win32":
        asyncio.run(_serve())
    else:
        import uvloop  # noqa: PLC0415 - not to be had on Windows

        uvloop.run(_serve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
