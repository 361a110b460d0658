"""Suite `roundtrip`: an invoke there and back, beside a raw pipe with the same bytes."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

from benchmarks.harness import Call, Contender, Report, Scale, WrongAnswer, compare, ratio, rows
from executa_host import Host, PluginSpec
from executa_nexus_stub import NexusStub

PEERS: Final = Path(__file__).parent / "peers"
TEXT: Final = ("lorem ipsum dolor sit amet " * 8)[:200]
FRAME_BYTES: Final = 420
"""About what an invoke of 200 bytes has on the line, so that the floor moves as much."""


class Executa:
    """Our host and our SDK, one tool of the echo plugin."""

    def __init__(self, tool: str) -> None:
        self.name = f"executa {tool}"
        self._tool = tool
        self._pid = 0

    def child_pid(self) -> int:
        return self._pid

    def open(self) -> AbstractAsyncContextManager[Call]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[Call]:
        nexus = NexusStub()
        async with Host(nexus) as host:
            command = (sys.executable, str(PEERS / "echo_plugin.py"))
            host.add(PluginSpec(name="echo", command=command))
            await host.start("echo")
            self._pid = host.pid("echo") or 0

            async def call(number: int) -> None:
                text = f"{number:08d}{TEXT}"
                outcome = await host.invoke("echo", self._tool, {"text": text})
                if outcome.data != text:
                    raise WrongAnswer(f"{self.name}: {outcome.data!r:.60}")

            yield call
        await nexus.aclose()


class Floor:
    """A pipe to a process that echoes: what any protocol over pipes pays at least."""

    name = "pipe floor"

    def __init__(self) -> None:
        self._pid = 0

    def child_pid(self) -> int:
        return self._pid

    def open(self) -> AbstractAsyncContextManager[Call]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[Call]:
        loop = asyncio.get_running_loop()
        child_in, our_in = os.pipe()
        our_out, child_out = os.pipe()
        child = await asyncio.create_subprocess_exec(
            sys.executable, str(PEERS / "floor.py"), stdin=child_in, stdout=child_out
        )
        os.close(child_in)
        os.close(child_out)
        self._pid = child.pid
        os.set_blocking(our_out, False)
        os.set_blocking(our_in, False)
        waiting: dict[bytes, asyncio.Future[bytes]] = {}
        rest = b""

        def readable() -> None:
            nonlocal rest
            *lines, rest = (rest + os.read(our_out, 65536)).split(b"\n")
            for line in lines:
                waiting.pop(line[:8]).set_result(line)

        async def call(number: int) -> None:
            key = b"%08d" % number
            line = key.ljust(FRAME_BYTES, b"x")
            waiting[key] = answer = loop.create_future()
            os.write(our_in, line + b"\n")
            if await answer != line:
                raise WrongAnswer("pipe floor: another line came back")

        loop.add_reader(our_out, readable)
        try:
            yield call
        finally:
            loop.remove_reader(our_out)
            os.close(our_in)
            await child.wait()
            os.close(our_out)


async def run(scale: Scale) -> Report:
    """An invoke of 200 bytes there and back, at 1 and at 64 in flight, beside a raw pipe."""
    floor = Floor()
    tools = [Executa(tool) for tool in ("echo", "echo_task", "echo_thread")]
    contenders: list[Contender] = [floor, *tools]
    report = Report("roundtrip", [], [], 0)
    for in_flight in (1, 64):
        condition = f"{in_flight} in flight"
        samples = await compare(contenders, scale, in_flight)
        report.rows += rows(condition, samples)
        report.checked += scale.rounds * scale.calls * len(contenders)
        ours, theirs = samples[tools[0].name], samples[floor.name]
        over, under = [s.p50 for s in ours], [s.p50 for s in theirs]
        report.ratios.append(ratio(condition, "inline p50 over the floor's", over, under))
    return report
