"""The suites' end of a driver: start it, have it measure, end it."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.drivers.child import Answer, AnyCommand, Close, Measure, Start
from benchmarks.drivers.contender import Options, Task
from benchmarks.model import Absent, WrongAnswer
from benchmarks.rounds import Sample

OPEN_LIMIT: Final = 180.0
"""Seconds that a contender may take to open; two hundred plugins start in less."""

MEASURE_LIMIT: Final = 600.0
"""Seconds of one measurement, far above what it is told to take."""

CLOSE_LIMIT: Final = 20.0

_ROOT: Final = Path(__file__).parents[2]
_ANSWERS: Final = msgspec.json.Decoder(Answer)


class Driver:
    """A process that runs one contender. Made by `driver`."""

    def __init__(self, contender: str, process: asyncio.subprocess.Process) -> None:
        self.contender = contender
        self._process = process

    async def measure(self, task: Task, in_flight: int, seconds: float) -> Sample:
        """Do a task for so long, so many at a time. Raises `WrongAnswer`."""
        return await self._ask(Measure(task, in_flight, seconds), MEASURE_LIMIT)

    def taking(self, task: Task, in_flight: int, seconds: float) -> Callable[[], Awaitable[Sample]]:
        """`measure` with its arguments, for a `Trial`."""

        async def take() -> Sample:
            return await self.measure(task, in_flight, seconds)

        return take

    async def open(self, options: Mapping[str, Any], core: int, servers_core: int) -> None:
        """Open the contender. Raises `Absent`, `WrongAnswer`."""
        await self._ask(Start(self.contender, dict(options), core, servers_core), OPEN_LIMIT)

    async def close(self) -> None:
        """Let it close its contender and end; if it does not, end it."""
        process = self._process
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.write(msgspec.json.encode(Close()) + b"\n")
            process.stdin.close()
        try:
            async with asyncio.timeout(CLOSE_LIMIT):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _ask(self, command: AnyCommand, limit: float) -> Sample:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(msgspec.json.encode(command) + b"\n")
            async with asyncio.timeout(limit):
                line = await process.stdout.readline()
        except TimeoutError:
            process.kill()
            msg = f"{self.contender} gave no answer within {limit:g} s"
            raise WrongAnswer(msg) from None
        except OSError:
            line = b""
        if not line:
            msg = f"the driver of {self.contender} has ended"
            raise WrongAnswer(msg)
        answer = _ANSWERS.decode(line)
        if answer.absent:
            raise Absent(answer.absent)
        if answer.wrong or answer.failed:
            raise WrongAnswer(answer.wrong or answer.failed)
        return dict(answer.values)


@contextlib.asynccontextmanager
async def driver(
    contender: str, options: Options | None = None, *, core: int = -1, servers_core: int = -1
) -> AsyncGenerator[Driver]:
    """A contender that is open in a driver of its own, on one core alone if one is given.

    With `servers_core` its servers have that one, and the driver has `core`.

    Raises `Absent`, `WrongAnswer`.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "benchmarks.drivers.child",
        cwd=_ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=None if os.environ.get("BENCHMARKS_STDERR") else asyncio.subprocess.DEVNULL,
    )
    made = Driver(contender, process)
    try:
        await made.open(options or {}, core, servers_core)
        yield made
    finally:
        await made.close()
