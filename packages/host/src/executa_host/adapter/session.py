"""One conversation with the kit: a host that does what the commands say.

Owns the host, its nexus, and the commands that are under way. Lines come and go through
`__main__`.
"""

import asyncio
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, structs

from executa_host.adapter import commands
from executa_host.adapter.commands import (
    BadCommand,
    Cancel,
    Command,
    Failure,
    Hello,
    Invoke,
    Pace,
    Start,
    Stop,
    failure_of,
    read_command,
    tool_answer,
)
from executa_host.clock import SystemClock, Timer
from executa_host.handle import InvokeHandle
from executa_host.host import Host
from executa_host.nexus.http import HttpNexus
from executa_host.patience import Patience
from executa_host.runtime import LOCAL_USER
from executa_host.spec import PluginSpec
from executa_protocol.errors import ExecutaError, UsageError
from executa_protocol.limits import RESTART_BASE

SERVES: Final = (
    "v2",
    "sampling",
    "agent",
    "storage",
    "files",
    "nested",
    "nexus",
    "cancellation",
    "progress",
    "users",
    "apps",
    "env",
    "hide_env",
)
"""What the kit may check of this host."""

Write = Callable[[bytes], None]


class HurriedClock(SystemClock):
    """The machine's time, with timers that run `factor` times as fast.

    Waits before a restart are timers of the host's clock: with this one a run of the kit
    does not wait seven seconds for a plugin that keeps falling.
    """

    def __init__(self, factor: float) -> None:
        self._factor = factor

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` once its share of `seconds` has passed."""
        return super().call_later(seconds / self._factor, callback)


class Session:
    """Takes lines and writes answers, each one line."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._host: Host | None = None
        self._handles: dict[int, InvokeHandle] = {}
        self._works: set[asyncio.Task[None]] = set()

    def take(self, line: bytes) -> None:
        """Begin what a line asks for. Its answer comes when it is done."""
        if not line.strip():
            return
        try:
            command = read_command(line)
        except BadCommand as fault:
            self._fail(fault.id, Failure("usage", str(fault)))
            return
        work = asyncio.get_running_loop().create_task(self._answer(command))
        self._works.add(work)
        work.add_done_callback(self._works.discard)

    async def close(self) -> None:
        """Stop all plugins. What is under way is answered first, as cancelled or lost."""
        if self._host is not None:
            await self._host.close()
        if self._works:
            await asyncio.wait(self._works)

    # --- Answers ---------------------------------------------------------------------------

    async def _answer(self, command: Command) -> None:
        try:
            done = await self._do(command)
        except ExecutaError as fault:
            self._fail(command.id, failure_of(fault))
        else:
            self._say({"id": command.id, "ok": done})

    def _fail(self, identity: int | None, failure: Failure) -> None:
        self._say({"id": identity, "error": failure})

    def _say(self, members: dict[str, Any]) -> None:
        # Raw data keeps its own spelling, but no line end may get into a line.
        self._write(msgspec.json.encode(members).replace(b"\n", b" ") + b"\n")

    # --- Commands --------------------------------------------------------------------------

    async def _do(self, command: Command) -> object:
        if isinstance(command, Hello):
            return self._hello(command)
        host = self._host
        if host is None:
            msg = "the first command is hello"
            raise UsageError(msg)
        match command:
            case Start():
                return await _start(host, command)
            case Invoke():
                return await self._invoke(host, command)
            case Cancel():
                return await self._cancel(command)
            case Stop():
                await host.stop(command.plugin, user_id=command.user or LOCAL_USER)
                return {}
            case _:  # the decoder knows no other
                msg = f"no such command: {command!r}"
                raise UsageError(msg)

    def _hello(self, command: Hello) -> object:
        if self._host is not None:
            msg = "hello was said before"
            raise UsageError(msg)
        if command.adapter != commands.VERSION:
            msg = f"adapter protocol {command.adapter}: this adapter speaks {commands.VERSION}"
            raise UsageError(msg)
        if command.nexus is UNSET:
            msg = "hello: this host needs the address of a nexus"
            raise UsageError(msg)
        pace, patience = _patience(command.pace)
        restart = RESTART_BASE if pace.restart is UNSET else pace.restart
        self._host = Host(
            HttpNexus(command.nexus.url, key=command.nexus.key),
            closes_nexus=True,
            hide_env=command.hide_env,
            patience=patience,
            clock=HurriedClock(RESTART_BASE / restart),
        )
        return {
            "adapter": commands.VERSION,
            "name": "executa-host",
            "version": version("executa-host"),
            "serves": SERVES,
            "pace": structs.replace(pace, restart=restart),
        }

    async def _invoke(self, host: Host, command: Invoke) -> object:
        def progress(data: Raw) -> None:
            self._say({"id": command.id, "progress": data})

        handle = host.begin(
            command.plugin,
            command.tool,
            msgspec.json.decode(command.arguments),
            timeout=command.timeout,
            user_id=command.user or LOCAL_USER,
            app=command.app,
            on_progress=progress,
        )
        self._handles[command.id] = handle
        return tool_answer(await handle.result())

    async def _cancel(self, command: Cancel) -> object:
        handle = self._handles.get(command.invoke)
        if handle is None:
            msg = f"cancel: command {command.invoke} began no invoke"
            raise UsageError(msg)
        return {"outcome": str(await handle.cancel(command.reason))}


async def _start(host: Host, command: Start) -> object:
    spec = PluginSpec(
        name=command.plugin,
        command=command.command,
        cwd=command.cwd,
        env=command.env,
        executa_tool_id=command.tool_id,
        credentials=command.credentials,
        file_transport=command.file_transport,
    )
    if command.plugin not in {known.name for known in host.plugins()}:
        host.add(spec)
    user = command.user or LOCAL_USER
    await host.start(command.plugin, user_id=user)
    return {"protocol": host.status(command.plugin, user_id=user).protocol}


def _patience(wished: Pace) -> tuple[Pace, Patience]:
    """The time-outs that are kept: the kit's wishes, and the protocol's own for the rest."""
    wishes = {name: value for name, value in structs.asdict(wished).items() if value is not UNSET}
    if any(value <= 0 for value in wishes.values()):
        msg = "pace: expected seconds above 0"
        raise UsageError(msg)
    restart = wishes.pop("restart", UNSET)
    patience = structs.replace(Patience(), **wishes)
    kept = Pace(
        patience.initialize,
        patience.describe,
        patience.health,
        patience.stop,
        patience.cancel,
        restart,
    )
    return kept, patience
