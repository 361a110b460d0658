"""Large results go by file where that is offered; a host that does not read costs no memory."""

import asyncio
import json
import os
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from executa_protocol.limits import KIB, MAX_FILE_TRANSPORT, MAX_INLINE_RESULT, MIB, SPILL_THRESHOLD
from tests.plugin.driver import WAIT, Child, child, invoke_message

PLUGIN = """
import asyncio, sys
from executa_sdk import Plugin
plugin = Plugin("large", "1.0.0")

@plugin.tool
async def task(size: int) -> str:
    return "x" * size

@plugin.tool
def thread(size: int) -> str:
    return "x" * size

@plugin.tool(inline=True)
def inline(size: int) -> str:
    return "x" * size

gate_opened = asyncio.Event()

@plugin.tool
async def gate(size: int) -> str:
    await gate_opened.wait()
    return "x" * size

@plugin.tool
async def open_gate() -> None:
    gate_opened.set()
    print("the gate is open", file=sys.stderr, flush=True)

plugin.run()
"""

WRAPPING = 64  # more than what surrounds the data in a result


def by_file(answer: dict[str, Any]) -> dict[str, Any]:
    """The response behind a pointer, checked as a host checks it."""
    assert set(answer) == {"jsonrpc", "id", "__file_transport"}
    path = Path(answer["__file_transport"])
    status = path.lstat()
    assert stat.S_ISREG(status.st_mode)
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert status.st_uid == os.getuid()
    response: dict[str, Any] = json.loads(path.read_bytes())
    assert response["id"] == answer["id"]
    path.unlink()
    return response


async def test_a_result_above_the_threshold_goes_by_file_when_the_host_offered_it(
    tmp_path: Path,
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    async with child(PLUGIN, folder=tmp_path, env={"TMPDIR": str(temporary)}) as running:
        assert "fileTransport" in (await running.initialize())["capabilities"]
        for identity, tool in enumerate(("task", "thread", "inline"), start=1):
            answer = await running.invoke(tool, identity, size=SPILL_THRESHOLD)
            assert Path(answer["__file_transport"]).parent == temporary
            assert len(by_file(answer)["result"]["data"]) == SPILL_THRESHOLD
        small = await running.invoke("task", "small", size=SPILL_THRESHOLD - WRAPPING)
        assert len(small["result"]["data"]) == SPILL_THRESHOLD - WRAPPING
        assert await running.end() == 0
        assert list(temporary.iterdir()) == []


async def test_a_result_goes_inline_when_files_were_not_offered(tmp_path: Path) -> None:
    async with child(PLUGIN, folder=tmp_path) as running:
        await running.initialize(sampling={})
        answer = await running.invoke("thread", size=MAX_INLINE_RESULT - WRAPPING)
        assert len(answer["result"]["data"]) == MAX_INLINE_RESULT - WRAPPING
        answer = await running.invoke("thread", 2, size=MAX_INLINE_RESULT)
        assert answer["error"]["data"]["errorCode"] == "RESULT_TOO_LARGE"
        assert answer["error"]["data"]["max_payload_bytes"] == MAX_INLINE_RESULT
        assert answer["error"]["data"]["result_size_bytes"] > MAX_INLINE_RESULT
        assert (await running.invoke("task", 3, size=1))["result"]["data"] == "x"


async def test_a_file_has_its_limit_too(tmp_path: Path) -> None:
    async with child(PLUGIN, folder=tmp_path, env={"TMPDIR": str(tmp_path)}) as running:
        await running.initialize()
        answer = await running.invoke("task", size=MAX_FILE_TRANSPORT)
        assert answer["error"]["data"]["errorCode"] == "RESULT_TOO_LARGE"
        assert list(tmp_path.glob("executa-resp-*")) == []


async def test_a_file_that_cannot_be_written_falls_back_to_the_line(tmp_path: Path) -> None:
    """As when the disk is full: here no folder for temporary files is writable."""
    source = "import tempfile\ntempfile.tempdir = '/nowhere/at/all'\n" + PLUGIN
    async with child(source, folder=tmp_path) as running:
        await running.initialize()
        answer = await running.invoke("task", size=1 * MIB)
        assert len(answer["result"]["data"]) == 1 * MIB
        answer = await running.invoke("task", 2, size=5 * MIB)
        assert answer["error"]["data"]["errorCode"] == "RESULT_TOO_LARGE"
        assert "could not be written" in running.stderr


# --- A host that does not read for a while. -----------------------------------------------------


def memory(running: Child) -> int:
    """Bytes of the child's memory that are resident now."""
    text = Path(f"/proc/{running.process.pid}/statm").read_text(encoding="ascii")
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Slow:
    """A host whose end of the plugin's output is read only when the test says so."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output

    async def read(self, count: int) -> list[dict[str, Any]]:
        """The next `count` messages; all there are for 0."""
        read = self._output.readlines if count == 0 else partial(self._lines, count)
        lines = await asyncio.wait_for(asyncio.to_thread(read), WAIT)
        return [json.loads(line) for line in lines]

    def _lines(self, count: int) -> list[bytes]:
        return [self._output.readline() for _ in range(count)]


@asynccontextmanager
async def slow(source: str, folder: Path) -> AsyncGenerator[tuple[Child, Slow]]:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as output:
        try:
            running_child = child(source, folder=folder, stdout=writing)
            running = await running_child.__aenter__()
        finally:
            os.close(writing)
        try:
            yield running, Slow(output)
        finally:
            await running_child.__aexit__(None, None, None)


async def test_answers_wait_in_bounded_memory_for_a_host_that_does_not_read(tmp_path: Path) -> None:
    async with slow(PLUGIN, tmp_path) as (running, host):
        assert running.process.stdin
        running.write(invoke_message(0, "inline", size=1))
        await host.read(1)
        before = memory(running)
        many = b"".join(
            json.dumps(invoke_message(number, "inline", size=100 * KIB)).encode() + b"\n"
            for number in range(1, 4001)
        )
        running.write(many)
        # It stops reading once enough waits, so that what we write comes to a stop as well.
        with_room = asyncio.create_task(running.process.stdin.drain())
        await asyncio.wait([with_room], timeout=1)
        assert not with_room.done()
        assert memory(running) - before < 16 * MIB
        answers = await host.read(4000)
        await with_room
        assert [answer["id"] for answer in answers] == list(range(1, 4001))
        assert all(len(answer["result"]["data"]) == 100 * KIB for answer in answers)
        assert await running.end() == 0


async def test_calls_in_flight_when_the_host_stops_reading_are_all_answered(tmp_path: Path) -> None:
    """Their results are far more than may be queued for a connection."""
    async with slow(PLUGIN, tmp_path) as (running, host):
        for number in range(1, 61):
            running.write(invoke_message(number, "gate", size=MIB))
        running.write(invoke_message(0, "open_gate"))
        await running.until_told("the gate is open")
        answers = await host.read(61)
        assert {answer["id"] for answer in answers} == set(range(61))
        assert all(len(answer["result"]["data"]) == MIB for answer in answers if answer["id"])
        assert await running.end() == 0


async def test_answers_that_wait_are_written_after_the_end_of_input(tmp_path: Path) -> None:
    async with slow(PLUGIN, tmp_path) as (running, host):
        assert running.process.stdin
        for number in range(1, 11):
            running.write(invoke_message(number, "thread", size=MIB))
        running.process.stdin.close()
        answers = await host.read(0)
        assert sorted(answer["id"] for answer in answers) == list(range(1, 11))
        assert await running.gone() == 0
