"""`executa serve` as a process of the demo's own, which may be killed and started again.

Owns the process and the folder with its configuration, store, keys and log. It knows nothing
of what is asked of the host.
"""

import asyncio
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from executa_host.actions.requests import Scope
from executa_host.cli.demo_plugins import command_of
from executa_host.cli.demo_steps import StepFailed
from executa_host.keys import KeyFile, keys_beside

START_SECONDS: Final = 20.0
STOP_SECONDS: Final = 10.0
"""How long the host may take to listen, and to end."""

_GRACE: Final = 2
_KEY_SECONDS: Final = 3600.0
_CONFIG: Final = """\
[nexus]
kind = "stub"

[plugins.{plugin}]
command = {command}
"""


class HostProcess:
    """A host that serves one plugin on a free port of the loopback address; `url` says where.

    It has ended when the context is left, whatever happened inside. Raises `StepFailed` if it
    does not start.
    """

    def __init__(self, folder: Path, plugin: str, record: Path | None = None) -> None:
        self._record = record
        self._config = folder / "host.toml"
        self._log = folder / "host.log"
        self._store = folder / "state" / "actions.db"
        self._keys = KeyFile(keys_beside(self._store))
        self._process: Process | None = None
        self.url = ""
        command = msgspec.json.encode(command_of(plugin)).decode()
        self._config.write_text(_CONFIG.format(plugin=plugin, command=command), encoding="utf-8")

    def key(self, principal: str, *scopes: Scope) -> str:
        """A key of this host's, good for an hour."""
        made = self._keys.create(principal, scopes=scopes, expires_in=_KEY_SECONDS)
        return made.text

    async def start(self) -> int:
        """Start it and wait until it takes requests; its process id."""
        words = ["serve", "--config", str(self._config), "--store", str(self._store)]
        words += ["--port", "0", "--grace", str(_GRACE), "--json"]
        if self._record is not None:
            words += ["--record", str(self._record)]
        with self._log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "executa_host.cli"),
                *words,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=log,
            )
        self._process = process
        self.url = await self._address(process)
        return process.pid

    async def kill(self) -> int:
        """SIGKILL: it can tidy nothing up. Its exit code."""
        return await self._end(signal.SIGKILL)

    async def stop(self) -> int:
        """SIGTERM: it drains. Its exit code."""
        return await self._end(signal.SIGTERM)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process is not None:
            await self._end(signal.SIGKILL)

    async def _address(self, process: Process) -> str:
        line = b""
        if process.stdout is not None:
            try:
                async with asyncio.timeout(START_SECONDS):
                    line = await process.stdout.readline()
            except TimeoutError:
                pass
        if not line:
            said = self._log.read_text(encoding="utf-8", errors="replace").strip()
            msg = f"the host did not start: {said or 'it said nothing'}"
            raise StepFailed(msg)
        return msgspec.json.decode(line, type=dict[str, Any])["url"]

    async def _end(self, number: signal.Signals) -> int:
        process = self._process
        if process is None:
            msg = "the host is not running"
            raise RuntimeError(msg)
        if process.returncode is None:
            process.send_signal(number)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await process.communicate()
        except TimeoutError:
            process.kill()
            await process.communicate()
        self._process = None
        return process.returncode or 0
