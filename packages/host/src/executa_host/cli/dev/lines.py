"""Where lines come from: a terminal with history and completion, or a pipe.

Owns what Ctrl-C and Ctrl-D mean while nothing runs. While something does the terminal is not
read, and Ctrl-C is the signal that `command` takes.
"""

import asyncio
import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.history import History, InMemoryHistory
from prompt_toolkit.patch_stdout import patch_stdout

from executa_host.cli.dev.completing import DevCompleter
from executa_host.cli.dev.history import CleanHistory, history_file
from executa_protocol.limits import MIB

_LONGEST = MIB


class Lines(Protocol):
    """A source of lines."""

    async def next(self) -> str | None:
        """The next line; None when there are no more."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class TerminalLines:
    """Lines that a person types. What happens meanwhile is printed above the prompt."""

    def __init__(self, name: str, completer: DevCompleter, secrets: Mapping[str, str]) -> None:
        self._session: PromptSession[str] = PromptSession(
            [("ansicyan", f"{name}> ")],
            history=_history(secrets),
            completer=completer,
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
        )

    async def next(self) -> str | None:
        """Ctrl-C drops the line, Ctrl-D is the end."""
        while True:
            try:
                with patch_stdout(raw=True):
                    return await self._session.prompt_async(handle_sigint=False)
            except KeyboardInterrupt:
                continue
            except EOFError:
                return None

    def close(self) -> None:
        """Nothing is held."""


class PipedLines:
    """Lines of standard input, whatever that is."""

    def __init__(self) -> None:
        self._reader: asyncio.StreamReader | None = None
        self._transport: asyncio.ReadTransport | None = None

    async def next(self) -> str | None:
        """An unfinished last line counts."""
        if not _waits(sys.stdin.fileno()):
            line = sys.stdin.buffer.readline()  # of a file, which never keeps one waiting
        else:
            reader = self._reader or await self._open()
            line = await reader.readline()
        return line.decode(errors="replace").rstrip("\r\n") if line else None

    async def _open(self) -> asyncio.StreamReader:
        self._reader = reader = asyncio.StreamReader(limit=_LONGEST)
        protocol = asyncio.StreamReaderProtocol(reader)
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(lambda: protocol, sys.stdin.buffer)
        return reader

    def close(self) -> None:
        """Stop reading, and leave standard input as it was found: others may read it too."""
        if self._transport is not None:
            with suppress(OSError):
                os.set_blocking(sys.stdin.fileno(), True)
            self._transport.close()


def _waits(fd: int) -> bool:
    """Whether there may be more to read later."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)


def _history(secrets: Mapping[str, str]) -> History:
    try:
        return CleanHistory(history_file(), secrets)
    except OSError:  # a home that cannot be written to is no reason not to work
        return InMemoryHistory()
