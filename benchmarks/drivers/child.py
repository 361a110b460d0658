"""``python -m benchmarks.drivers.child``: one contender, driven by commands on standard input.

A command is a JSON object a line, and so is each answer. Standard output belongs to the
answers alone: what a contender prints goes to standard error.
"""

import asyncio
import gc
import os
import sys
import traceback
from contextlib import AsyncExitStack
from typing import Any, Final

import msgspec
import uvloop
from msgspec import Struct

from benchmarks import machine
from benchmarks.drivers import load
from benchmarks.drivers.contender import Opened, Options, Task
from benchmarks.drivers.registry import REGISTRY
from benchmarks.model import Absent, WrongAnswer


class Command(Struct, tag_field="do", tag=False):
    """What the parent asks."""


class Start(Struct, tag_field="do", tag="open"):
    """Open a contender, and everything on one core from the start if `core` is given.

    Its servers then go to `servers_core`, if that is given too.
    """

    contender: str
    options: Options = {}
    core: int = -1
    servers_core: int = -1


class Measure(Struct, tag_field="do", tag="measure"):
    """Do a task for so many seconds with so many calls in flight."""

    task: Task
    in_flight: int
    seconds: float


class Close(Struct, tag_field="do", tag="close"):
    """Let go of everything and end."""


class Answer(Struct, omit_defaults=True):
    """The costs of one operation, or what was wrong."""

    values: dict[str, float] = {}
    absent: str = ""
    wrong: str = ""
    failed: str = ""


AnyCommand = Start | Measure | Close

_COMMANDS: Final = msgspec.json.Decoder(AnyCommand)


class Child:
    """Serves commands until it is told to close, or its input ends."""

    def __init__(self, answers: int) -> None:
        self._answers = answers
        self._opened: Opened | None = None
        self._stack = AsyncExitStack()

    async def serve(self, first: Start) -> None:
        """Answer `first` and what comes after it."""
        async with self._stack:
            command: AnyCommand = first
            while not isinstance(command, Close):
                self._write(await self._answer(command))
                line = await asyncio.to_thread(sys.stdin.buffer.readline)
                if not line:
                    return
                command = _COMMANDS.decode(line)

    async def _answer(self, command: Start | Measure) -> Answer:
        try:
            if isinstance(command, Start):
                return await self._open(command)
            return Answer(await self._measure(command))
        except Absent as absence:
            return Answer(absent=str(absence))
        except WrongAnswer as fault:
            return Answer(wrong=str(fault))
        except Exception as fault:  # noqa: BLE001 - told to the parent, whatever it is
            traceback.print_exc()
            return Answer(failed=f"{type(fault).__name__}: {fault}"[:500])

    async def _open(self, command: Start) -> Answer:
        if command.core >= 0:
            machine.pin((os.getpid(),), command.core)
        opening = REGISTRY[command.contender].load()
        self._opened = await self._stack.enter_async_context(opening(command.options))
        if command.servers_core >= 0:
            machine.pin(self._opened.servers, command.servers_core)
        return Answer({"servers": len(self._opened.servers)})

    async def _measure(self, command: Measure) -> dict[str, Any]:
        opened = self._opened
        if opened is None:
            msg = "no contender is open"
            raise WrongAnswer(msg)
        call = opened.call(command.task)
        # What was imported to get here is no part of an operation: keep it out of collections.
        gc.collect()
        gc.freeze()
        return await load.run(call, command.in_flight, command.seconds, opened.servers)

    def _write(self, answer: Answer) -> None:
        os.write(self._answers, msgspec.json.encode(answer) + b"\n")


def main() -> None:
    """Keep standard output for the answers, and serve on the loop that suits the contender."""
    answers = os.dup(1)
    os.dup2(2, 1)
    line = sys.stdin.buffer.readline()
    if not line:
        return
    command = _COMMANDS.decode(line)
    if isinstance(command, Start):
        child = Child(answers)
        runner = uvloop.run if REGISTRY[command.contender].uvloop else asyncio.run
        runner(child.serve(command))


if __name__ == "__main__":
    main()
