"""One line after the other, and what signals mean meanwhile.

Ctrl-C cancels the invoke that runs; a second one gives up waiting for that. Any other command
it ends at once. While a line is typed it drops the line, and where lines come from a pipe it
ends the whole, as SIGTERM and SIGHUP always do.
"""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from executa_host.cli import exits
from executa_host.cli.dev.commands import Commands
from executa_host.cli.dev.lines import Lines
from executa_host.cli.dev.session import DevSession
from executa_host.cli.dev.show import Show
from executa_host.cli.output import reader_gone

T = TypeVar("T")


class Loop:
    """Reads and does lines until somebody leaves."""

    def __init__(
        self,
        lines: Lines,
        commands: Commands,
        session: DevSession,
        show: Show,
        *,
        terminal: bool,
    ) -> None:
        self._lines = lines
        self._commands = commands
        self._session = session
        self._show = show
        self._terminal = terminal
        self._doing: asyncio.Task[Any] | None = None
        self._cancelling: asyncio.Task[None] | None = None
        self._over = False

    async def run(self) -> int:
        """The exit code: that of the first line that failed, unless a person has seen them all."""
        code = exits.OK
        with self._signals():
            while not self._commands.left and not reader_gone():
                line = await self._interruptible(self._lines.next(), "")
                if self._over:
                    return exits.INTERRUPTED
                if line is None:
                    break
                result = await self._interruptible(self._commands.run(line), exits.INTERRUPTED)
                code = code or result
                if self._over:
                    return exits.INTERRUPTED
        return exits.OK if self._terminal else code

    async def _interruptible(self, work: Coroutine[Any, Any, T], otherwise: T) -> T:
        """What `work` gives, or `otherwise` if Ctrl-C ended it."""
        self._doing = task = asyncio.ensure_future(work)
        try:
            await asyncio.wait((task,))
        finally:
            self._doing = None
            task.cancel()
        if task.cancelled():
            return otherwise
        return task.result()

    # --- Signals -------------------------------------------------------------------------

    @contextmanager
    def _signals(self) -> Generator[None]:
        if sys.platform == "win32":  # whose loops take no handlers: Ctrl-C ends the whole
            yield
            return
        loop = asyncio.get_running_loop()
        handlers: dict[int, Callable[[], None]] = {
            signal.SIGINT: self._interrupt,
            signal.SIGTERM: self._end,
            signal.SIGHUP: self._end,
        }
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number in handlers:
                loop.remove_signal_handler(number)

    def _interrupt(self) -> None:
        if self._session.busy and self._cancelling is None:
            self._cancelling = asyncio.ensure_future(self._session.cancel())
            self._cancelling.add_done_callback(self._cancelled)
        elif self._commands.busy or self._terminal:
            self._drop()
        else:
            self._end()

    def _cancelled(self, task: "asyncio.Task[None]") -> None:
        self._cancelling = None
        if not task.cancelled() and (fault := task.exception()) is not None:
            self._show.fault(fault if isinstance(fault, Exception) else RuntimeError(str(fault)))

    def _drop(self) -> None:
        if self._doing is not None:
            self._doing.cancel()

    def _end(self) -> None:
        self._over = True
        self._drop()
