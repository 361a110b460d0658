"""Large results go by file where the host takes files; a host that does not read costs no memory."""

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

from executa_protocol.limits import KIB, MAX_FILE_TRANSPORT, MAX_INLINE_RESULT, MIB, SPILL_THRESHOLD
from tests.plugin.driver import Child, child, invoke_message

PLUGIN = """
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


async def test_answers_wait_in_bounded_memory_for_a_host_that_does_not_read(tmp_path: Path) -> None:
    async with child(PLUGIN, folder=tmp_path, limit=64 * KIB) as running:
        assert running.process.stdin
        await running.invoke("inline", 0, size=1)
        before = memory(running)
        for number in range(1, 1001):
            running.write(invoke_message(number, "inline", size=100 * KIB))
        # The plugin stops reading once enough waits, so that our own writes come to a stop.
        with_room = asyncio.create_task(running.process.stdin.drain())
        await asyncio.wait([with_room], timeout=1)
        assert memory(running) - before < 16 * MIB
        answers = await running.answers(*range(1, 1001))
        await with_room
        assert all(len(answer["result"]["data"]) == 100 * KIB for answer in answers)
        assert await running.end() == 0


async def test_calls_that_were_in_flight_when_the_host_stopped_reading_are_all_answered(
    tmp_path: Path,
) -> None:
    """Their results are far more than may be queued for a connection."""
    source = PLUGIN.replace(
        "async def task(size: int) -> str:",
        "async def task(size: int) -> str:\n    import asyncio; await asyncio.sleep(0.3)",
    )
    async with child(source, folder=tmp_path, limit=64 * KIB) as running:
        await running.initialize(sampling={})
        for number in range(1, 41):
            running.write(invoke_message(number, "task", size=MIB))
        answers = await running.answers(*range(1, 41))
        assert all(len(answer["result"]["data"]) == MIB for answer in answers)
        assert await running.end() == 0


async def test_answers_that_wait_are_written_after_the_end_of_input(tmp_path: Path) -> None:
    async with child(PLUGIN, folder=tmp_path, limit=64 * KIB) as running:
        assert running.process.stdin
        await running.initialize(sampling={})
        for number in range(1, 11):
            running.write(invoke_message(number, "thread", size=MIB))
        running.process.stdin.close()
        answers = await running.read_all()
        assert sorted(answer["id"] for answer in answers) == list(range(1, 11))
        assert await running.gone() == 0
