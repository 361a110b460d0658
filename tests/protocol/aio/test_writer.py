"""The writer of a descriptor: one system call a turn, in part, blocked, broken, taken back."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from executa_protocol.aio import writer as module
from executa_protocol.aio.writer import FdWriter
from executa_protocol.errors import ConnectionLost, WriteQueueFull
from executa_protocol.limits import KIB, WRITE_HIGH_WATER, WRITE_LOW_WATER
from tests.protocol.aio.wires import Changing, turns


class Pipe(Changing):
    """A pipe whose writing end a writer owns. Read it with `read`."""

    def __init__(self, limit: int = 32 * KIB * KIB) -> None:
        super().__init__()
        self.fd, writing = os.pipe()
        os.set_blocking(self.fd, False)
        self.drained = 0
        self.broken: list[Exception] = []
        self.writer = FdWriter(
            asyncio.get_running_loop(),
            writing,
            on_drained=self._on_drained,
            on_broken=self._on_broken,
            limit=limit,
        )

    def _on_drained(self) -> None:
        self.drained += 1
        self.changed()

    def _on_broken(self, reason: Exception) -> None:
        self.broken.append(reason)
        self.changed()

    def read(self) -> bytes:
        """What is in the pipe now."""
        data = b""
        while True:
            try:
                chunk = os.read(self.fd, 1 << 20)
            except BlockingIOError:
                return data
            if not chunk:
                return data
            data += chunk

    async def read_all(self, size: int) -> bytes:
        """Read until this many bytes have come."""
        loop, data = asyncio.get_running_loop(), bytearray()

        def take() -> None:
            data.extend(os.read(self.fd, 1 << 20))
            self.changed()

        loop.add_reader(self.fd, take)
        try:
            await self.until(lambda: len(data) >= size)
        finally:
            loop.remove_reader(self.fd)
        return bytes(data)

    def close(self) -> None:
        self.writer.close()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


@pytest_asyncio.fixture
async def pipe() -> AsyncIterator[Pipe]:
    """A pipe with a writer."""
    pipe = Pipe()
    yield pipe
    pipe.close()


class Writes:
    """Counts the system calls, and may take only a part of each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self.most = 1 << 30
        self.fault: OSError | None = None
        self._write = os.write
        monkeypatch.setattr(os, "write", self._counting)

    def _counting(self, fd: int, data: memoryview) -> int:
        if self.fault is not None:
            raise self.fault
        count = self._write(fd, data[: self.most])
        self.sizes.append(count)
        return count


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> Writes:
    """Counts system calls."""
    return Writes(monkeypatch)


async def test_frames_of_one_turn_leave_in_one_write(pipe: Pipe, writes: Writes) -> None:
    for frame in (b"a\n", b"b\n", b"c\n"):
        pipe.writer.write(frame)
    assert (pipe.read(), writes.sizes) == (b"", [])
    await turns(1)
    assert (pipe.read(), writes.sizes) == (b"a\nb\nc\n", [6])
    pipe.writer.write(b"d\n")
    await turns(1)
    assert (pipe.read(), writes.sizes) == (b"d\n", [6, 2])


@pytest.mark.parametrize("corked", [False, True])
async def test_of_many_frames_the_first_leave_before_the_turn_ends(
    pipe: Pipe, writes: Writes, corked: bool
) -> None:
    pipe.writer.corked = corked
    for _ in range(31):
        pipe.writer.write(b"a\n")
    assert writes.sizes == []
    for _ in range(9):
        pipe.writer.write(b"b\n")
    assert (pipe.read(), writes.sizes) == (b"a\n" * 31 + b"b\n", [64])
    pipe.writer.flush()
    assert (pipe.read(), writes.sizes) == (b"b\n" * 8, [64, 16])


async def test_on_one_core_all_frames_of_a_turn_leave_together(
    writes: Writes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "has_cores", lambda: False)
    pipe = Pipe()
    for _ in range(100):
        pipe.writer.write(b"a\n")
    assert writes.sizes == []
    await turns(1)
    assert (pipe.read(), writes.sizes) == (b"a\n" * 100, [200])
    pipe.close()


async def test_a_fault_amid_many_frames_is_told_at_the_end_of_the_turn_and_not_to_who_writes(
    pipe: Pipe,
) -> None:
    os.close(pipe.fd)
    pipe.fd = -1
    for _ in range(100):
        pipe.writer.write(b"a\n")
    assert not pipe.broken
    await turns(1)
    assert len(pipe.broken) == 1


async def test_many_frames_that_a_full_pipe_does_not_take_stay_in_order(pipe: Pipe) -> None:
    frames = [b"%d" % number * KIB + b"\n" for number in range(200)]
    for frame in frames:
        pipe.writer.write(frame)
    assert await pipe.read_all(sum(map(len, frames))) == b"".join(frames)


async def test_corked_frames_wait_for_the_owner(pipe: Pipe, writes: Writes) -> None:
    pipe.writer.corked = True
    pipe.writer.write(b"a\n")
    await turns(1)
    assert writes.sizes == []
    pipe.writer.corked = False
    pipe.writer.flush()
    assert pipe.read() == b"a\n"


async def test_a_write_that_is_taken_in_parts_goes_on_where_it_stopped(
    pipe: Pipe, writes: Writes
) -> None:
    writes.most = 3
    pipe.writer.write(b"0123456789\n")
    await turns(1)
    assert pipe.read() == b"0123456789\n"
    assert writes.sizes == [3, 3, 3, 2]


async def test_a_full_pipe_is_waited_for_and_nothing_is_lost_or_doubled(pipe: Pipe) -> None:
    sent = os.urandom(300 * KIB)
    for start in range(0, len(sent), 7 * KIB):
        pipe.writer.write(sent[start : start + 7 * KIB])
    await turns(1)
    assert 0 < pipe.writer.taken < len(sent)
    assert pipe.writer.queued == len(sent) - pipe.writer.taken
    assert await pipe.read_all(len(sent)) == sent
    assert (pipe.writer.queued, pipe.writer.taken) == (0, len(sent))


async def test_a_writer_that_waits_makes_no_more_system_calls(pipe: Pipe, writes: Writes) -> None:
    pipe.writer.write(b"x" * 200 * KIB)
    await turns(1)
    count = len(writes.sizes)
    pipe.writer.write(b"more\n")
    await turns(1)
    pipe.writer.flush()
    assert len(writes.sizes) == count
    await pipe.read_all(200 * KIB + 5)


async def test_the_limit_counts_what_waits_and_not_what_was_taken(pipe: Pipe) -> None:
    pipe.close()
    small = Pipe(limit=10)
    small.writer.write(b"12345678\n")
    with pytest.raises(WriteQueueFull) as caught:
        small.writer.write(b"9\n")
    assert (caught.value.queued, caught.value.limit) == (9, 10)
    await turns(1)
    small.writer.write(b"123456789\n")
    await turns(1)
    assert small.read() == b"12345678\n123456789\n"
    small.close()


async def test_drained_is_told_once_when_what_waits_falls_below_the_low_mark(pipe: Pipe) -> None:
    pipe.writer.write(b"x" * WRITE_HIGH_WATER)
    assert not pipe.writer.congested
    pipe.writer.write(b"y")
    assert pipe.writer.congested
    await pipe.read_all(WRITE_HIGH_WATER + 1 - WRITE_LOW_WATER)
    await pipe.until(lambda: pipe.drained)
    await pipe.read_all(1)
    assert (pipe.drained, pipe.writer.congested) == (1, False)


async def test_a_reader_that_has_gone_breaks_the_writer(pipe: Pipe) -> None:
    os.close(pipe.fd)
    pipe.fd = -1
    pipe.writer.write(b"a\n")
    await turns(1)
    assert [str(fault) for fault in pipe.broken] == [
        "writing failed: the other side has closed its end"
    ]
    assert isinstance(pipe.broken[0], ConnectionLost)
    assert (pipe.writer.queued, pipe.writer.taken) == (0, 0)
    with pytest.raises(ConnectionLost) as caught:
        pipe.writer.write(b"b\n")
    assert caught.value.written is False


async def test_a_reader_that_goes_while_the_pipe_is_full_breaks_the_writer(pipe: Pipe) -> None:
    pipe.writer.write(b"x" * 2 * WRITE_HIGH_WATER)
    await turns(1)
    assert pipe.writer.congested
    os.close(pipe.fd)
    pipe.fd = -1
    await pipe.until(lambda: pipe.broken)
    assert not pipe.writer.congested


async def test_any_other_fault_breaks_it_with_its_own_words(pipe: Pipe, writes: Writes) -> None:
    writes.fault = OSError(errno.EIO, "Input/output error")
    pipe.writer.write(b"a\n")
    await turns(1)
    assert "Input/output error" in str(pipe.broken[0])


async def test_closing_after_the_flush_waits_for_what_is_queued(pipe: Pipe) -> None:
    pipe.writer.write(b"x" * 200 * KIB)
    pipe.writer.close_after_flush()
    with pytest.raises(ConnectionLost):
        pipe.writer.write(b"more\n")
    assert await pipe.read_all(200 * KIB) == b"x" * 200 * KIB
    await turns(1)
    assert pipe.read() == b""
    pipe.writer.close_after_flush()
    pipe.writer.flush()
    assert not pipe.broken


async def test_closing_drops_what_is_queued(pipe: Pipe) -> None:
    pipe.writer.write(b"x" * 200 * KIB)
    await turns(1)
    pipe.writer.close()
    assert (pipe.writer.queued, pipe.writer.congested) == (0, False)
    assert len(pipe.read()) == pipe.writer.taken
    pipe.writer.close()


# --- Taken back -------------------------------------------------------------------------------


async def test_a_frame_that_has_not_begun_to_leave_can_be_taken_back(pipe: Pipe) -> None:
    writer = pipe.writer
    positions: list[int] = []
    for frame in (b"a\n", b"bb\n", b"ccc\n", b"dddd\n"):
        positions.append(writer.taken + writer.queued)
        writer.write(frame)
    assert writer.withdraw(positions[2])
    assert writer.withdraw(positions[1])
    assert not writer.withdraw(positions[1])
    assert not writer.withdraw(positions[1] + 1)
    await turns(1)
    assert pipe.read() == b"a\ndddd\n"
    assert (writer.queued, writer.taken) == (0, 14)  # the others' positions stay true
    assert not writer.withdraw(positions[3])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
async def test_all_frames_may_be_taken_back_in_any_order(
    pipe: Pipe, order: tuple[int, ...]
) -> None:
    positions = [0, 2, 5]
    for frame in (b"a\n", b"bb\n", b"ccc\n"):
        pipe.writer.write(frame)
    assert all(pipe.writer.withdraw(positions[index]) for index in order)
    pipe.writer.write(b"last\n")
    await turns(1)
    assert pipe.read() == b"last\n"
    assert (pipe.writer.queued, pipe.writer.taken) == (0, 14)


async def test_a_frame_that_has_begun_to_leave_stays(pipe: Pipe) -> None:
    pipe.writer.write(b"x" * 200 * KIB)
    await turns(1)
    position = pipe.writer.taken + pipe.writer.queued
    pipe.writer.write(b"second\n")
    assert not pipe.writer.withdraw(0)
    assert pipe.writer.withdraw(position)
    pipe.writer.write(b"third\n")
    data = await pipe.read_all(200 * KIB + 6)
    assert data == b"x" * 200 * KIB + b"third\n"


async def test_nothing_but_frames_taken_back_is_nothing_to_write(pipe: Pipe) -> None:
    pipe.writer.write(b"a\n")
    assert pipe.writer.withdraw(0)
    pipe.writer.close_after_flush()
    assert pipe.read() == b""
    assert (pipe.writer.queued, pipe.broken) == (0, [])
