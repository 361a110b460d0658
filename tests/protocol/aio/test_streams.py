"""A transport over descriptors of every kind: pipes, sockets, files, terminals, the null device."""

import asyncio
import contextlib
import errno
import os
import pty
import signal
import subprocess
import sys
import threading
import time
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from executa_protocol.aio.fds import has_cores, is_pollable
from executa_protocol.aio.pump import Pump
from executa_protocol.aio.streams import FdTransport
from executa_protocol.errors import ConnectionLost, WriteQueueFull
from executa_protocol.limits import KIB, MIB, POLL_READS, READ_CHUNK
from tests.protocol.aio.conftest import Wiring
from tests.protocol.aio.wires import Recorder, turns


def null() -> int:
    """A descriptor into which one may write without end."""
    return os.open(os.devnull, os.O_WRONLY)


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Whoever types into a terminal, and what a plugin has as stdin; give away copies of that."""
    typist, slave = pty.openpty()
    tty.setraw(slave)
    yield typist, slave
    os.close(slave)
    with contextlib.suppress(OSError):  # a test may have hung up
        os.close(typist)


# --- What can be waited for -------------------------------------------------------------------


def test_pipes_and_sockets_are_pollable_and_nothing_else(
    tmp_path: Path, terminal: tuple[int, int]
) -> None:
    reading, writing = os.pipe()
    file = os.open(tmp_path / "file", os.O_CREAT | os.O_RDWR)
    nothing = null()
    try:
        assert is_pollable(reading)
        assert is_pollable(writing)
        assert not any(map(is_pollable, (file, nothing, *terminal)))
    finally:
        for fd in (reading, writing, file, nothing):
            os.close(fd)


def test_a_closed_descriptor_is_refused() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    os.close(writing)
    with pytest.raises(OSError, match="Bad file descriptor"):
        is_pollable(reading)


@pytest.mark.skipif(sys.platform != "linux", reason="only there a process can be kept on a core")
def test_a_process_that_is_kept_on_one_core_has_no_other() -> None:
    usable = os.sched_getaffinity(0)
    assert has_cores() is (len(usable) > 1)
    os.sched_setaffinity(0, {min(usable)})
    try:
        assert not has_cores()
    finally:
        os.sched_setaffinity(0, usable)


# --- Files and the null device ----------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, READ_CHUNK, READ_CHUNK + 1, 3 * MIB])
async def test_a_regular_file_is_read_to_its_end(tmp_path: Path, size: int) -> None:
    path = tmp_path / "requests"
    content = os.urandom(size)
    path.write_bytes(content)
    transport = FdTransport(os.open(path, os.O_RDONLY), null())
    receiver = Recorder()
    transport.start(receiver)
    await receiver.until(lambda: receiver.has("lost"))
    assert bytes(receiver.data) == content
    assert receiver.reasons == [None]
    assert max(receiver.sizes, default=0) <= READ_CHUNK
    transport.close()


async def test_a_file_waits_while_its_receiver_is_paused(tmp_path: Path) -> None:
    path = tmp_path / "requests"
    path.write_bytes(b"x" * 10 * READ_CHUNK)
    transport = FdTransport(os.open(path, os.O_RDONLY), null())

    class Pausing(Recorder):
        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            transport.pause_reading()
            asyncio.get_running_loop().call_soon(self.look)

        def look(self) -> None:
            # The next chunk may be read already, but it is not delivered.
            assert len(self.data) == READ_CHUNK * len(self.sizes)
            transport.resume_reading()

    receiver = Pausing()
    transport.pause_reading()
    transport.start(receiver)
    transport.resume_reading()
    await receiver.until(lambda: receiver.has("lost"))
    assert len(receiver.data) == 10 * READ_CHUNK
    transport.close()


async def test_a_chunk_that_comes_while_paused_is_delivered_on_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "requests"
    path.write_bytes(b"one chunk")
    receiver = Recorder()
    came: list[bytes] = []
    hand_over: Any = vars(Pump)["_hand_over"]

    def handing(pump: Pump, data: bytes) -> None:
        hand_over(pump, data)
        came.append(data)
        receiver.changed()

    monkeypatch.setattr(Pump, "_hand_over", handing)
    transport = FdTransport(os.open(path, os.O_RDONLY), null())
    transport.start(receiver)
    transport.pause_reading()
    await receiver.until(lambda: came)
    assert receiver.events == []
    transport.resume_reading()
    await receiver.until(lambda: receiver.has("lost"))
    assert bytes(receiver.data) == b"one chunk"
    transport.close()


async def test_what_is_read_while_the_transport_closes_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "requests"
    path.write_bytes(b"one chunk")
    read, reading, closed = os.read, threading.Event(), threading.Event()

    def slow(fd: int, size: int) -> bytes:
        data = read(fd, size)
        reading.set()
        assert closed.wait(20)
        return data

    monkeypatch.setattr(os, "read", slow)
    transport = FdTransport(os.open(path, os.O_RDONLY), null())
    receiver = Recorder()
    transport.start(receiver)
    reader = next(t for t in threading.enumerate() if t.name == "executa-read")
    assert await asyncio.to_thread(reading.wait, 20)
    transport.close()
    closed.set()
    await asyncio.to_thread(reader.join, 20)
    await turns()
    assert receiver.events == ["lost"]


async def test_what_was_handed_over_while_the_transport_closes_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "requests"
    path.write_bytes(b"one chunk")
    transport = FdTransport(os.open(path, os.O_RDONLY), null())
    receiver = Recorder()
    transport.start(receiver)
    reader = next(t for t in threading.enumerate() if t.name == "executa-read")
    pump: Any = vars(transport)["_pump"]
    ends = time.monotonic() + 20
    while pump._taken.is_set() and time.monotonic() < ends:
        pass  # without a turn of the loop, so that the chunk waits there
    transport.close()
    await asyncio.to_thread(reader.join, 20)
    await turns()
    assert receiver.events == ["lost"]


async def test_the_null_device_ends_at_once() -> None:
    transport = FdTransport(os.open(os.devnull, os.O_RDONLY), null())
    receiver = Recorder()
    transport.start(receiver)
    transport.poll()  # there is nothing that could be polled
    await receiver.until(lambda: receiver.has("lost"))
    transport.close()


async def test_answers_may_go_into_a_file_or_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "answers"
    for target in (path, Path(os.devnull)):
        reading, writing = os.pipe()
        os.close(writing)
        transport = FdTransport(reading, os.open(target, os.O_WRONLY | os.O_CREAT))
        transport.start(Recorder())
        transport.write(b"x" * 3 * MIB)
        transport.write(b"end\n")
        transport.close_writing()
        assert transport.taken == 3 * MIB + 4
        transport.close()
    assert path.read_bytes() == b"x" * 3 * MIB + b"end\n"


async def test_a_full_device_breaks_the_writing() -> None:
    reading, writing = os.pipe()
    transport = FdTransport(reading, os.open("/dev/full", os.O_WRONLY))
    receiver = Recorder()
    transport.start(receiver)
    transport.write(b"x\n")
    await receiver.until(lambda: receiver.has("broken"))
    assert "No space left" in str(receiver.reasons[0])
    os.write(writing, b"still read\n")
    os.close(writing)
    await receiver.until(lambda: receiver.has("lost"))
    assert bytes(receiver.data) == b"still read\n"
    transport.close()


# --- Terminals --------------------------------------------------------------------------------


async def test_a_terminal_is_read_as_it_is_typed(terminal: tuple[int, int]) -> None:
    typist, slave = terminal
    transport = FdTransport(os.dup(slave), null())
    receiver = Recorder()
    transport.start(receiver)
    for line in (b"one\n", "zażółć\n".encode()):
        os.write(typist, line)
        await receiver.until(lambda line=line: receiver.data.endswith(line))
    assert os.get_blocking(slave)  # or the user's shell would find it changed
    transport.close()


async def test_a_terminal_that_nobody_types_into_lets_go_on_close(
    terminal: tuple[int, int],
) -> None:
    typist, slave = terminal
    before = threading.active_count()
    transport = FdTransport(os.dup(slave), null())
    receiver = Recorder()
    transport.start(receiver)
    os.write(typist, b"one\n")
    await receiver.until(lambda: receiver.data)
    reader = next(t for t in threading.enumerate() if t.name == "executa-read")
    transport.close()
    transport.close()
    assert receiver.events == ["data", "lost"]
    await asyncio.to_thread(reader.join, 20)
    assert threading.active_count() <= before + 1  # the pool of to_thread has one, too


async def test_a_terminal_that_hangs_up_has_ended(terminal: tuple[int, int]) -> None:
    typist, slave = terminal
    transport = FdTransport(os.dup(slave), null())
    receiver = Recorder()
    transport.start(receiver)
    os.close(typist)
    await receiver.until(lambda: receiver.has("lost"))
    assert receiver.reasons == [None]
    transport.close()


async def test_a_read_of_a_terminal_that_fails_is_its_end(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    typist, slave = terminal

    def failing(fd: int, size: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "read", failing)
    transport = FdTransport(os.dup(slave), null())
    receiver = Recorder()
    transport.start(receiver)
    os.write(typist, b"one\n")
    await receiver.until(lambda: receiver.has("lost"))
    assert receiver.reasons == [None]
    transport.close()


async def test_a_terminal_that_someone_made_non_blocking_does_not_seem_to_end(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    typist, slave = terminal
    read, refused = os.read, threading.Event()

    def reading(fd: int, size: int) -> bytes:
        if not refused.is_set():
            refused.set()  # another reader of the terminal was faster
            raise BlockingIOError
        return read(fd, size)

    monkeypatch.setattr(os, "read", reading)
    transport = FdTransport(os.dup(slave), null())
    receiver = Recorder()
    transport.start(receiver)
    os.write(typist, b"one\n")
    await receiver.until(lambda: receiver.data)
    assert refused.is_set()
    transport.close()


async def test_answers_may_go_to_a_terminal(terminal: tuple[int, int]) -> None:
    typist, slave = terminal
    reading, writing = os.pipe()
    transport = FdTransport(reading, os.dup(slave))
    transport.start(Recorder())
    transport.write(b"hello\n")
    transport.close_writing()
    assert os.read(typist, 100) == b"hello\n"
    os.close(writing)
    transport.close()


def test_a_loop_that_closes_leaves_no_reader_behind(terminal: tuple[int, int]) -> None:
    typist, slave = terminal
    loop = asyncio.new_event_loop()

    async def start() -> FdTransport:
        transport = FdTransport(os.dup(slave), null())
        transport.start(Recorder())
        return transport

    transport = loop.run_until_complete(start())
    reader = next(t for t in threading.enumerate() if t.name == "executa-read")
    loop.close()
    os.write(typist, b"for nobody\n")
    reader.join(20)
    assert not reader.is_alive()
    transport.close()


# --- Pipes and sockets ------------------------------------------------------------------------


async def test_a_read_that_fails_ends_the_stream_and_says_why(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = wiring.pair("pipes")
    receiver = Recorder()
    left.start(receiver)

    def failing(fd: int, size: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "read", failing)
    right.write(b"x\n")
    await receiver.until(lambda: receiver.has("lost"))
    assert str(receiver.reasons[0]) == "reading failed: Input/output error"
    assert isinstance(receiver.reasons[0], ConnectionLost)


async def test_poll_reads_until_nothing_is_left(wiring: Wiring) -> None:
    left, right = wiring.pair("sockets")
    receiver = Recorder()
    left.start(receiver)
    left.pause_reading()
    right.start(Recorder())
    right.write(b"x" * (READ_CHUNK + 100))
    right.close_writing()
    left.resume_reading()
    left.poll()
    assert len(receiver.data) == READ_CHUNK + 100


async def test_poll_is_bounded_even_if_the_other_side_keeps_up(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(fd: int, size: int) -> bytes:
        return b"x" * size

    left, _ = wiring.pair("pipes")
    receiver = Recorder()
    left.start(receiver)
    monkeypatch.setattr(os, "read", endless)
    left.poll()
    monkeypatch.undo()
    assert receiver.sizes == [READ_CHUNK] * POLL_READS


async def test_answers_to_one_chunk_leave_in_one_write(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = wiring.pair("pipes")
    written: list[bytes] = []
    write = os.write

    def counting(fd: int, data: memoryview) -> int:
        written.append(bytes(data))
        return write(fd, data)

    class Echo(Recorder):
        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            for line in data.splitlines(keepends=True):
                right.write(line)

    there, back = Echo(), Recorder()
    left.start(back)
    right.start(there)
    left.write(b"1\n2\n3\n")
    await there.until(lambda: there.data)
    await back.until(lambda: len(back.data) == 6)
    monkeypatch.setattr(os, "write", counting)
    left.write(b"4\n5\n6\n")
    await back.until(lambda: len(back.data) == 12)
    assert written == [b"4\n5\n6\n", b"4\n5\n6\n"]


async def test_a_receiver_that_fails_does_not_keep_answers_back(wiring: Wiring) -> None:
    left, right = wiring.pair("pipes")
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda loop, context: faults.append(context.get("exception"))
    )

    class Failing(Recorder):
        def data_received(self, data: bytes) -> None:
            right.write(b"answer\n")
            raise ValueError("a fault of the receiver")

    back = Recorder()
    left.start(back)
    right.start(Failing())
    left.write(b"x\n")
    await back.until(lambda: back.data)
    assert [str(fault) for fault in faults] == ["a fault of the receiver"]
    right.write(b"and another\n")
    await back.until(lambda: b"another" in back.data)


async def test_a_writer_whose_reader_stops_reading_is_bounded(wiring: Wiring) -> None:
    left, _ = wiring.pair("pipes", write_limit=1 * MIB)
    left.start(Recorder())
    refused = 0
    for _ in range(100):
        try:
            left.write(b"x" * 64 * KIB)
        except WriteQueueFull:
            refused += 1
        await turns()
    assert refused > 50
    assert left.queued <= 1 * MIB


def spawn(program: str) -> tuple["subprocess.Popen[bytes]", FdTransport]:
    """A Python process and the transport to it."""
    to_child, from_child = os.pipe(), os.pipe()
    command = [sys.executable, "-c", program]
    child = subprocess.Popen(command, stdin=to_child[0], stdout=from_child[1])
    os.close(to_child[0])
    os.close(from_child[1])
    return child, FdTransport(from_child[0], to_child[1])


async def test_the_wire_reaches_another_process() -> None:
    child, transport = spawn(
        "import shutil, sys; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"
    )
    receiver = Recorder()
    transport.start(receiver)
    transport.write(b"x" * 5 * MIB)
    transport.close_writing()
    await receiver.until(lambda: receiver.has("lost"))
    assert len(receiver.data) == 5 * MIB
    assert child.wait(20) == 0
    transport.close()


async def test_a_process_that_is_killed_ends_the_stream_after_what_it_wrote() -> None:
    child, transport = spawn("import os, time; os.write(1, b'last words\\n'); time.sleep(60)")
    receiver = Recorder()
    transport.start(receiver)
    await receiver.until(lambda: receiver.data)
    child.send_signal(signal.SIGKILL)
    child.wait(20)
    await receiver.until(lambda: receiver.has("lost"))
    transport.write(b"too late\n")
    await receiver.until(lambda: receiver.has("broken"))
    assert bytes(receiver.data) == b"last words\n"
    transport.close()
