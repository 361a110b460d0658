"""A writer in any order of writes, withdrawals, full pipes and reads, against a plain list."""

import asyncio
import fcntl
import os
from collections.abc import Callable
from typing import Any, cast
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from executa_protocol.aio import writer as module
from executa_protocol.aio.writer import FdWriter
from executa_protocol.errors import WriteQueueFull

PAGE = 4096
LIMIT = 40 * PAGE


class Loop:
    """As much of a loop as a writer needs, moved by hand."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []
        self.writable: Callable[[], None] | None = None

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def add_writer(self, fd: int, callback: Callable[[], None]) -> None:
        assert fd >= 0
        assert self.writable is None
        self.writable = callback

    def remove_writer(self, fd: int) -> None:
        assert fd >= 0
        self.writable = None


class Frame:
    """What was written: its bytes, where it begins, and whether it was taken back."""

    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self.position = position
        self.withdrawn = False


class Writing(RuleBasedStateMachine):
    """One writer into a pipe of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = mock.patch.object(module, "_BATCH", 2 * PAGE)
        self.patch.start()
        self.reading, writing = os.pipe()
        fcntl.fcntl(writing, 1031, PAGE)  # F_SETPIPE_SZ
        os.set_blocking(self.reading, False)
        self.loop = Loop()
        self.drained = 0
        self.writer = FdWriter(
            cast("asyncio.AbstractEventLoop", self.loop),
            writing,
            on_drained=self._on_drained,
            on_broken=self._on_broken,
            limit=LIMIT,
        )
        self.frames: list[Frame] = []
        self.received = bytearray()

    def _on_drained(self) -> None:
        self.drained += 1

    def _on_broken(self, reason: Exception) -> None:
        raise AssertionError(reason)

    @property
    def waiting(self) -> int:
        """Bytes that may still leave."""
        kept = sum(len(frame.data) for frame in self.frames if not frame.withdrawn)
        return kept - self._left()

    def _left(self) -> int:
        """Bytes of frames that stay which have left already."""
        taken = self.writer.taken
        return sum(
            min(len(frame.data), max(0, taken - frame.position))
            for frame in self.frames
            if not frame.withdrawn
        )

    @rule(size=st.sampled_from([1, 2, 10, 500, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE]))
    def write(self, size: int) -> None:
        position = self.writer.taken + self.writer.queued
        data = (b"%d." % len(self.frames)).ljust(size, b"x")[:size]
        before = self.waiting
        if before and before + size > LIMIT:
            with pytest.raises(WriteQueueFull) as caught:
                self.writer.write(data)
            assert caught.value.queued == before
        else:
            self.writer.write(data)
            self.frames.append(Frame(data, position))

    @precondition(lambda self: self.frames)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        frame = data.draw(st.sampled_from(self.frames))
        begun = self.writer.taken > frame.position
        done = self.writer.withdraw(frame.position)
        assert done == (not begun and not frame.withdrawn)
        frame.withdrawn = frame.withdrawn or done

    @rule()
    def turn(self) -> None:
        callbacks, self.loop.soon = self.loop.soon, []
        for callback in callbacks:
            callback()

    @rule(size=st.sampled_from([1, 100, PAGE, 10 * PAGE]))
    def read(self, size: int) -> None:
        try:
            self.received += os.read(self.reading, size)
        except BlockingIOError:
            return

    @precondition(lambda self: self.loop.writable is not None)
    @rule()
    def writable(self) -> None:
        callback: Any = self.loop.writable
        callback()

    @invariant()
    def positions_stay_true(self) -> None:
        total = sum(len(frame.data) for frame in self.frames)
        assert self.writer.taken + self.writer.queued == total

    def teardown(self) -> None:
        # Whatever is left goes out now, in order.
        for _ in range(1000):
            self.turn()
            self.read(100 * PAGE)
            if self.loop.writable is not None:
                self.writable()
            elif not self.writer.queued and not self.loop.soon:
                break
        self.read(100 * PAGE)
        kept = b"".join(frame.data for frame in self.frames if not frame.withdrawn)
        assert bytes(self.received) == kept
        assert self.writer.queued == 0
        self.writer.close()
        os.close(self.reading)
        self.patch.stop()


Writing.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestWriting = Writing.TestCase
