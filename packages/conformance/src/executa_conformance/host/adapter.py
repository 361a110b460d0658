"""The kit's end of the adapter protocol: a host under test that is told what to do.

Owns the adapter's process and the commands that wait for their answers
(docs/conformance/host-adapter.md).
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Sequence
from typing import Any, Final, Self, cast

import msgspec
from msgspec import Raw, Struct

from executa_protocol.errors import UsageError

VERSION: Final = 1
"""Of the adapter protocol."""

LINE: Final = 1 << 27
"""Longest line of an adapter that is read: a result by file may have 64 MiB."""

HIDDEN: Final = "KIT_HIDDEN"
"""An environment variable that the host is told to keep from plugins."""

ENVIRONMENT: Final = {
    HIDDEN: "kept from plugins",
    "EXECUTA_KIT_SECRET": "kept from plugins",
    "KIT_SHOWN": "the user's own",
}
"""What the host's environment has beside the kit's own."""

_STDERR_KEPT: Final = 2000


class AdapterLost(Exception):
    """The adapter has gone, or speaks something else: no check can run."""


class HostFailure(Exception):
    """The host did not do what it was told. `kind` is the adapter protocol's word for why."""

    def __init__(self, kind: str, message: str, code: int | None, data: Any, written: Any) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.code = code
        self.data: dict[str, Any] = data if isinstance(data, dict) else {}
        self.written = written

    @property
    def symbol(self) -> str:
        """``errorCode``, if there is one."""
        return str(self.data.get("errorCode", ""))


class Told(Struct):
    """What an adapter says of its host in answer to hello."""

    name: str = "a host"
    version: str = ""
    serves: tuple[str, ...] = ()
    pace: dict[str, float] = {}
    adapter: int = VERSION


class _Line(Struct):
    id: int | None = None
    ok: Raw = Raw()
    error: dict[str, Any] | None = None
    progress: Any = None


class Command:
    """A command that was given. `progress` fills as the host passes it on."""

    def __init__(self, identity: int, future: "asyncio.Future[Raw]") -> None:
        self.id = identity
        self.progress: list[Any] = []
        self.moved = asyncio.Event()
        self._future = future

    @property
    def done(self) -> bool:
        """Whether it has been answered."""
        return self._future.done()

    async def answer(self) -> Any:
        """What it came to. Raises `HostFailure` and `AdapterLost`."""
        return msgspec.json.decode(await asyncio.shield(self._future))


class Adapter:
    """A host under test, behind the command that starts its adapter."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._waiting: dict[int, tuple[Command, asyncio.Future[Raw]]] = {}
        self._number = 0
        self._stderr = ""
        self._lost = ""

    async def __aenter__(self) -> Self:
        pipe = asyncio.subprocess.PIPE
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                env=dict(os.environ) | ENVIRONMENT,
                limit=LINE,
                start_new_session=True,
            )
        except OSError as fault:
            msg = f"{self._command[0]} cannot be started: {fault.strerror}"
            raise UsageError(msg) from None
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._drain())]
        return self

    async def __aexit__(self, *_: object) -> None:
        process = self._running
        stdin(process).close()
        try:
            await asyncio.wait_for(process.wait(), 10)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        await asyncio.gather(*self._tasks)

    async def hello(self, seconds: float, **members: Any) -> Told:
        """Begin. Raises `UsageError` for an adapter that does not answer as it should."""
        try:
            async with asyncio.timeout(seconds):
                answer = await self.give("hello", adapter=VERSION, **members).answer()
                told = msgspec.convert(answer, Told)
        except (AdapterLost, HostFailure, TimeoutError, msgspec.DecodeError) as fault:
            why = str(fault) or f"no answer within {seconds:g} s{self._last_words()}"
            msg = f"the adapter does not answer hello: {why}"
            raise UsageError(msg) from None
        if told.adapter != VERSION:
            msg = f"the adapter speaks version {told.adapter} of its protocol, the kit {VERSION}"
            raise UsageError(msg)
        return told

    def give(self, op: str, **members: Any) -> Command:
        """Give a command; what is None is left out."""
        self._number += 1
        future: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_looked_at)
        command = Command(self._number, future)
        if self._lost:
            future.set_exception(AdapterLost(self._lost))
            return command
        self._waiting[self._number] = command, future
        given = {name: value for name, value in members.items() if value is not None}
        line = msgspec.json.encode({"id": self._number, "op": op, **given})
        stdin(self._running).write(line + b"\n")
        return command

    @property
    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise AdapterLost("the adapter was not started")
        return self._process

    async def _read(self) -> None:
        output = stream(self._running.stdout)
        why = "the adapter has ended"
        try:
            async for line in output:
                self._take(line)
        except (msgspec.DecodeError, ValueError) as fault:
            why = f"the adapter wrote a line that is no answer: {fault}"
        self._lost = why + self._last_words()
        for _, future in self._waiting.values():
            if not future.done():
                future.set_exception(AdapterLost(self._lost))
        async for _ in output:
            pass  # whatever it still says, it must not block on it

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        said = msgspec.json.decode(line, type=_Line)
        command, future = self._waiting.get(said.id or 0, (None, None))
        if command is None or future is None or future.done():
            return
        if memoryview(said.ok):
            future.set_result(said.ok)
        elif said.error is not None:
            error = said.error
            future.set_exception(
                HostFailure(
                    str(error.get("kind", "rpc")),
                    str(error.get("message", "")),
                    error.get("code"),
                    error.get("data"),
                    error.get("written"),
                )
            )
        else:
            command.progress.append(said.progress)
            command.moved.set()

    async def _drain(self) -> None:
        while data := await stream(self._running.stderr).read(1 << 16):
            self._stderr = (self._stderr + data.decode(errors="replace"))[-_STDERR_KEPT:]

    def _last_words(self) -> str:
        return f"; it said last: {self._stderr[-500:].strip()}" if self._stderr.strip() else ""


def stdin(process: asyncio.subprocess.Process) -> asyncio.StreamWriter:
    """A process's stdin, which is a pipe of ours."""
    return cast("asyncio.StreamWriter", process.stdin)


def stream(pipe: asyncio.StreamReader | None) -> asyncio.StreamReader:
    """An output of a process, which is a pipe of ours."""
    return cast("asyncio.StreamReader", pipe)


def _looked_at(future: "asyncio.Future[Raw]") -> None:
    if not future.cancelled():
        future.exception()  # whoever waits gets it; a check may have ended before
