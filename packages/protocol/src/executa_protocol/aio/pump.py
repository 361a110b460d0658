"""Reads a descriptor that no loop can wait for: a file, a terminal, the null device.

A thread waits for it, one chunk ahead of the loop and no more. It never sits in a read
that nothing can interrupt, so that closing lets go of the descriptor at once. Windows has no
poll for pipes: there the read does hold the thread, until the other end closes.
"""

import os
import select
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from executa_protocol.limits import READ_CHUNK

if TYPE_CHECKING:
    import asyncio


class Pump:
    """Owns `fd` and hands its bytes to `deliver` on the loop; no bytes mean its end."""

    def __init__(
        self, loop: "asyncio.AbstractEventLoop", fd: int, deliver: Callable[[bytes], None]
    ) -> None:
        self._loop = loop
        self._fd = fd
        self._deliver = deliver
        self._wake_read, self._wake_write = os.pipe()
        self._taken = threading.Event()  # the loop has taken the last chunk
        self._taken.set()
        self._paused = False
        self._held: bytes | None = None  # came while paused
        self._closed = False
        # A daemon: where poll cannot watch a terminal, its read does hold the thread.
        threading.Thread(target=self._run, name="executa-read", daemon=True).start()

    def pause(self) -> None:
        """Deliver nothing until `resume`."""
        self._paused = True

    def resume(self) -> None:
        """Deliver again, beginning with what came meanwhile."""
        self._paused = False
        if self._held is not None:
            data, self._held = self._held, None
            self._loop.call_soon(self._hand_over, data)

    def close(self) -> None:
        """Deliver no more and let go of the descriptor. Call it once."""
        self._closed = True
        self._taken.set()
        os.close(self._wake_write)

    def _hand_over(self, data: bytes) -> None:
        if self._closed:
            return
        if self._paused:
            self._held = data
            return
        self._deliver(data)
        self._taken.set()

    def _run(self) -> None:
        try:
            data = b"more"
            while data and self._may_read():
                try:
                    data = os.read(self._fd, READ_CHUNK)
                except BlockingIOError:  # whoever shares the descriptor made it so
                    continue
                except OSError:  # a terminal that hangs up ends like this
                    data = b""
                self._taken.clear()
                # After the clear: `close` sets the flag first and the event then.
                if self._closed:
                    return
                self._loop.call_soon_threadsafe(self._hand_over, data)
        except RuntimeError:  # the loop has closed, so nobody reads on
            return
        finally:
            os.close(self._wake_read)
            os.close(self._fd)

    def _may_read(self) -> bool:
        """Wait until there is something to read and the loop wants it; False to end."""
        self._taken.wait()
        if not hasattr(select, "poll"):
            return not self._closed
        poller = select.poll()
        poller.register(self._fd, select.POLLIN)
        poller.register(self._wake_read, select.POLLIN)
        poller.poll()
        return not self._closed
