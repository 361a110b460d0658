"""A process under test: its lines, its stderr, its end. It knows nothing of messages.

It runs in a process group of its own, so that what a wrapper started (``uv run``, ``npx``)
ends with it. Every line is kept as evidence.
"""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from executa_conformance.evidence import Evidence
from executa_conformance.model import NotMet
from executa_protocol.framing import Oversized
from executa_protocol.limits import MAX_LINE, READ_CHUNK

LINE_CAP: Final = 2 * MAX_LINE
"""The kit reads longer lines than are allowed, to be able to say so."""

STDERR_KEPT: Final = 4 * 1024 * 1024
"""Bytes of stderr that are kept to be searched."""

Received = Callable[[bytes | Oversized, bool], None]
"""Gets each line, and whether its LF was there."""


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The user's environment without what is meant for a host (R-27), and `extra`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EXECUTA_")}
    return {**kept, **extra}


class CannotStart(NotMet):
    """There is no such program, or it cannot be run."""


class Child:
    """A process. `received` is called in the loop for each line on its stdout."""

    def __init__(self, process: Process, received: Received, evidence: Evidence) -> None:
        self._process = process
        self._received = received
        self._evidence = evidence
        self.ended = asyncio.Event()
        """Set when its stdout has ended."""
        self.stderr = bytearray()
        self._tasks = [
            asyncio.create_task(self._read_lines()),
            asyncio.create_task(self._read_stderr()),
        ]

    @classmethod
    async def spawn(
        cls,
        command: Sequence[str],
        received: Received,
        evidence: Evidence,
        env: Mapping[str, str],
    ) -> "Child":
        """Start it. Raises `CannotStart`."""
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=environment(env),
                limit=LINE_CAP,
                start_new_session=True,
            )
        except OSError as fault:
            msg = f"{command[0]} cannot be started: {fault.strerror}"
            raise CannotStart(msg) from None
        return cls(process, received, evidence)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended; negative for a signal, None while it runs."""
        return self._process.returncode

    # --- In and out ---------------------------------------------------------------------

    async def _read_lines(self) -> None:
        stream = self._process.stdout
        if stream is None:
            return
        while True:
            try:
                line = await stream.readline()
            except ValueError:  # what was read of it is gone
                self._received(Oversized(b"", LINE_CAP + 1), True)
                continue
            if not line:
                break
            self._received(line, line.endswith(b"\n"))
        self.ended.set()

    async def _read_stderr(self) -> None:
        stream = self._process.stderr
        if stream is None:
            return
        while data := await stream.read(READ_CHUNK):
            if len(self.stderr) < STDERR_KEPT:
                self.stderr += data
            for line in data.splitlines():
                self._evidence.add("2", line)

    async def write(self, data: bytes) -> None:
        """Write bytes and wait until the pipe has taken most of them."""
        stream = self._process.stdin
        if stream is None or stream.is_closing():
            raise NotMet("the process's stdin is closed")
        try:
            stream.write(data)
            await stream.drain()
        except (BrokenPipeError, ConnectionResetError):
            msg = f"the process no longer reads its stdin{self.epitaph()}"
            raise NotMet(msg) from None

    def close_stdin(self) -> None:
        """End its input."""
        if self._process.stdin is not None and not self._process.stdin.is_closing():
            self._evidence.tell("stdin is closed")
            self._process.stdin.close()

    # --- Its end ------------------------------------------------------------------------

    def epitaph(self) -> str:
        """How it ended, as the end of a sentence; empty while it runs."""
        code = self.exit_code
        if code is None:
            return ""
        return f"; it ended by signal {-code}" if code < 0 else f"; it ended with exit code {code}"

    async def exit(self, within: float) -> int | None:
        """Its exit code, or None if it still runs after `within` seconds."""
        try:
            async with asyncio.timeout(within):
                code = await self._process.wait()
                await asyncio.wait(self._tasks)
        except TimeoutError:
            return self.exit_code
        self._evidence.tell(f"exit status {code}")
        return code

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its group."""
        self._evidence.tell(f"{number.name} is sent")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    async def close(self, grace: float) -> None:
        """End it, kindly first: stdin, SIGTERM, SIGKILL; then whatever is left of its group."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.exit_code is None and await self.exit(grace) is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.pid, number)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        await self._process.wait()
        # What was in the pipes is read; a stranger that holds them is not waited for.
        await asyncio.wait(self._tasks, timeout=grace)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # asyncio closes the pipes only when they end, and a stranger may hold them.
        getattr(self._process, "_transport").close()  # noqa: B009 - asyncio has no other name
