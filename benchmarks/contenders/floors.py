"""Floors: a pipe to a process that answers, with the bytes of our invoke and no JSON.

What any protocol over pipes pays at least, once with a loop (uvloop at both ends), once
blocking, where only one call can be under way.
"""

import asyncio
import os
import subprocess
import sys
from collections import deque
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from benchmarks.drivers.contender import Call, Options, Task
from benchmarks.model import WrongAnswer

PEERS: Final = Path(__file__).parents[1] / "peers"

REQUEST_EXTRA: Final = 229
"""Bytes that a request of ours has on the line beside the text that it carries."""

ANSWER_EXTRA: Final = 84
"""The same of an answer."""

READ: Final = 65_536


class Pipe:
    """Lines to a process and back, non-blocking."""

    def __init__(self, process: "subprocess.Popen[bytes]", to: int, of: int) -> None:
        self.servers = [process.pid]
        self._loop = asyncio.get_running_loop()
        self._to, self._of = to, of
        self._waiting: dict[bytes, asyncio.Future[bytes]] = {}
        self._parts: list[bytes] = []
        self._unsent: deque[memoryview] = deque()
        os.set_blocking(to, False)
        os.set_blocking(of, False)
        self._loop.add_reader(of, self._readable)

    def close(self) -> None:
        """Read no more."""
        self._loop.remove_reader(self._of)
        if self._unsent:
            self._loop.remove_writer(self._to)

    def call(self, task: Task) -> Call:
        """A line of a request's bytes; the answer begins as the request did."""
        request, answer = task.size + REQUEST_EXTRA, task.size + ANSWER_EXTRA
        filler = b"x" * (request - 9) + b"\n"
        head = b"%08d" % answer
        create = self._loop.create_future
        waiting = self._waiting

        async def call(number: int) -> None:
            key = b"%08d" % number
            waiting[key] = future = create()
            self._write(key + head + filler[8:])
            line = await future
            if len(line) != answer or line[:8] != key:
                msg = f"the pipe answered {line[:20]!r}, {len(line)} bytes"
                raise WrongAnswer(msg)

        return call

    def _write(self, data: bytes) -> None:
        if not self._unsent:
            sent = self._send(data)
            if sent == len(data):
                return
            data = data[sent:]
            self._loop.add_writer(self._to, self._writable)
        self._unsent.append(memoryview(data))

    def _writable(self) -> None:
        unsent = self._unsent
        while unsent:
            sent = self._send(unsent[0])
            if sent < len(unsent[0]):
                unsent[0] = unsent[0][sent:]
                return
            unsent.popleft()
        self._loop.remove_writer(self._to)

    def _send(self, data: "bytes | memoryview") -> int:
        try:
            return os.write(self._to, data)
        except BlockingIOError:
            return 0

    def _readable(self) -> None:
        data = os.read(self._of, READ)
        if not data:
            self._loop.remove_reader(self._of)
            return
        *lines, rest = data.split(b"\n")
        if lines:
            if self._parts:
                lines[0] = b"".join((*self._parts, lines[0]))
                self._parts = []
            for line in lines:
                self._waiting.pop(line[:8]).set_result(line + b"\n")
        if rest:
            self._parts.append(rest)


class BlockingPipe:
    """Lines to a process and back, one at a time."""

    def __init__(self, process: "subprocess.Popen[bytes]", to: int, of: int) -> None:
        self.servers = [process.pid]
        self._to, self._of = to, of

    def call(self, task: Task) -> Call:
        """As `Pipe.call`, and the loop stands still meanwhile."""
        request, answer = task.size + REQUEST_EXTRA, task.size + ANSWER_EXTRA
        filler = b"x" * (request - 9) + b"\n"
        head = b"%08d" % answer
        to, of = self._to, self._of

        async def call(number: int) -> None:
            key = b"%08d" % number
            _send_all(to, key + head + filler[8:])
            line = os.read(of, READ)
            while line and not line.endswith(b"\n"):
                line += os.read(of, READ)
            if len(line) != answer or line[:8] != key:
                msg = f"the pipe answered {line[:20]!r}, {len(line)} bytes"
                raise WrongAnswer(msg)

        return call


def _send_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


@contextmanager
def _process(program: str) -> "Generator[tuple[subprocess.Popen[bytes], int, int]]":
    child_in, to = os.pipe()
    of, child_out = os.pipe()
    command = (sys.executable, str(PEERS / program))
    with subprocess.Popen(command, stdin=child_in, stdout=child_out) as process:
        os.close(child_in)
        os.close(child_out)
        try:
            yield process, to, of
        finally:
            os.close(to)
            process.wait(timeout=10)
            os.close(of)


@asynccontextmanager
async def open_uvloop(options: Options) -> AsyncGenerator[Pipe]:
    """The floor under a loop."""
    del options
    with _process("floor_uvloop.py") as (process, to, of):
        pipe = Pipe(process, to, of)
        try:
            yield pipe
        finally:
            pipe.close()


@asynccontextmanager
async def open_blocking(options: Options) -> AsyncGenerator[BlockingPipe]:
    """The floor without one."""
    del options
    with _process("floor_blocking.py") as (process, to, of):
        yield BlockingPipe(process, to, of)
