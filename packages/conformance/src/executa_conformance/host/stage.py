"""Where scripted plugins come on: the socket that their processes connect to.

Owns the channel to each process. What is said over it is `actor`'s business.
"""

import asyncio
import contextlib
import shutil
import struct
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self

import msgspec

HEAD: Final = struct.Struct("!cI")

_PUPPET: Final = Path(__file__).with_name("puppet.py")


class Channel:
    """The kit's end of the channel to one process. `who` is what it said about itself."""

    def __init__(
        self, who: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.who = who
        self._reader = reader
        self._writer = writer

    def send(self, kind: bytes, body: bytes = b"") -> None:
        """Tell the process something. Harmless once it has gone."""
        self._writer.write(HEAD.pack(kind, len(body)) + body)

    async def receive(self) -> tuple[bytes, bytes] | None:
        """The next message; None when the process has gone."""
        try:
            kind, size = HEAD.unpack(await self._reader.readexactly(HEAD.size))
            return kind, await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    def close(self) -> None:
        """Let go of the process, which ends it."""
        self._writer.close()


Met = Callable[[Channel], None]


class Stage:
    """Listens for scripted plugins. `expect` says who is told of those with a name."""

    def __init__(self) -> None:
        self._folder = ""
        self._server: asyncio.Server | None = None
        self._expected: dict[str, Met] = {}
        self._channels: set[Channel] = set()

    async def __aenter__(self) -> Self:
        # A socket's path may have about a hundred characters: not below a folder of the user's.
        self._folder = tempfile.mkdtemp(prefix="executa-kit-", dir="/tmp")
        self._server = await asyncio.start_unix_server(
            self._meet, f"{self._folder}/stage", limit=1 << 26
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        for channel in list(self._channels):
            channel.close()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        shutil.rmtree(self._folder, ignore_errors=True)

    def command(self, name: str) -> list[str]:
        """The command of a scripted plugin that reports under `name`."""
        return [sys.executable, "-I", "-S", str(_PUPPET), f"{self._folder}/stage", name]

    def expect(self, name: str, met: Met) -> None:
        """Tell `met` of every process that reports under `name`."""
        self._expected[name] = met

    def forget(self, name: str) -> None:
        """Nobody is interested in these any more."""
        self._expected.pop(name, None)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            _, size = HEAD.unpack(await reader.readexactly(HEAD.size))
            who = msgspec.json.decode(await reader.readexactly(size), type=dict[str, Any])
            channel = Channel(who, reader, writer)
            met = self._expected.get(who["name"])
            if met is not None:
                self._channels.add(channel)
                met(channel)
                return
        writer.close()
