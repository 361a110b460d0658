"""Transports that share the turns of their loop: bounded, in order, and nobody is left out."""

import asyncio
import os
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executa_protocol.aio.streams import FdTransport
from executa_protocol.aio.turns import TURN_BYTES, Turns
from executa_protocol.limits import READ_CHUNK
from tests.protocol.aio.wires import Changing, Recorder, turns

LITTLE = b"little\n"


class Side(Recorder):
    """A transport that shares turns, the far ends of its pipes, and what is done with its bytes."""

    def __init__(self, number: int, shared: Turns, sides: "Sides") -> None:
        super().__init__()
        self.number = number
        self._sides = sides
        reading, self.far_write = os.pipe()
        self.far_read, writing = os.pipe()
        os.set_blocking(self.far_read, False)
        self.transport = FdTransport(reading, writing, turns=shared)
        self.then: Callable[[], None] = lambda: None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._sides.note("read", self.number)
        asyncio.get_running_loop().call_soon(self._work)

    def _work(self) -> None:
        self.then()
        self._sides.note("worked", self.number)

    def fill(self, count: int = READ_CHUNK) -> None:
        os.write(self.far_write, b"x" * count)

    def arrived(self) -> bytes:
        """What the other side finds in its pipe now."""
        try:
            return os.read(self.far_read, READ_CHUNK)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        self.transport.close()
        os.close(self.far_write)
        os.close(self.far_read)


class Sides(Changing):
    """Some sides with the same turns, and what happened at them in its order."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.log: list[tuple[str, int]] = []
        shared = Turns()
        self.sides = [Side(number, shared, self) for number in range(count)]

    def note(self, what: str, number: int) -> None:
        self.log.append((what, number))
        self.changed()

    def __getitem__(self, number: int) -> Side:
        return self.sides[number]

    def __iter__(self) -> Iterator[Side]:
        return iter(self.sides)

    def start(self) -> None:
        for side in self.sides:
            side.transport.start(side)

    def reads(self) -> list[int]:
        """Who was read, in order."""
        return [number for what, number in self.log if what == "read"]

    async def until_worked(self, count: int) -> None:
        """Wait until what so many reads brought has been worked on."""
        await self.until(lambda: len(self.log) - len(self.reads()) >= count)

    def close(self) -> None:
        for side in self.sides:
            side.close()


@pytest.fixture
def made() -> Iterator[Callable[[int], Sides]]:
    """Makes sides, and closes them after the test."""
    every: list[Sides] = []

    def make(count: int) -> Sides:
        every.append(Sides(count))
        return every[-1]

    yield make
    for sides in every:
        sides.close()


async def test_no_more_than_a_turn_is_read_before_it_is_worked_on(
    made: Callable[[int], Sides],
) -> None:
    sides = made(9)
    for side in sides:
        side.fill()
    sides.start()
    await sides.until_worked(9)
    unworked = most = 0
    for what, _ in sides.log:
        unworked += 1 if what == "read" else -1
        most = max(most, unworked)
    assert unworked == 0
    assert most == TURN_BYTES // READ_CHUNK


async def test_short_reads_are_all_made_in_one_turn(made: Callable[[int], Sides]) -> None:
    sides = made(9)
    for side in sides:
        side.fill(100)
    sides.start()
    await sides.until_worked(9)
    assert [what for what, _ in sides.log] == ["read"] * 9 + ["worked"] * 9


async def test_whoever_is_late_is_served_before_those_that_come_again(
    made: Callable[[int], Sides],
) -> None:
    sides = made(6)
    for side in sides:
        side.then = side.fill  # always has more to say
        side.fill()
    sides.start()
    await sides.until_worked(60)
    reads = sides.reads()[:60]
    for side in sides:
        assert reads.count(side.number) == 10, reads
    gaps = [reads[at : at + 6] for at in range(0, 60, 6)]
    assert all(sorted(gap) == list(range(6)) for gap in gaps), reads


async def test_few_frames_wait_until_those_that_wait_have_been_read(
    made: Callable[[int], Sides],
) -> None:
    sides = made(8)
    target = sides[0]
    early: list[bytes] = []

    def write_one() -> None:
        if len(sides.reads()) < 8:
            early.append(target.arrived())
        target.transport.write(LITTLE)

    for side in sides:
        side.then = write_one
        side.fill()
    sides.start()
    await sides.until_worked(8)
    await turns()
    assert early == [b""] * 6
    assert target.arrived() == LITTLE * 8


async def test_frames_that_wait_leave_although_others_never_stop(
    made: Callable[[int], Sides],
) -> None:
    sides = made(6)
    speaker, others = sides[0], list(sides)[1:]
    left_after: list[int] = []

    def speak() -> None:
        begun = len(sides.reads())
        speaker.transport.write(LITTLE)

        def look() -> None:
            if speaker.arrived():
                left_after.append(len(sides.reads()) - begun)
            else:
                asyncio.get_running_loop().call_soon(look)

        look()

    speaker.then = speak
    for other in others:
        other.then = other.fill
        other.fill()
    speaker.fill()
    sides.start()
    await sides.until_worked(80)
    assert left_after, "the frame never left"
    assert left_after[0] <= 2 * len(others), "it waited longer than those that waited with it"


async def test_many_frames_leave_although_others_wait(made: Callable[[int], Sides]) -> None:
    sides = made(8)
    target = sides[0]
    seen: list[tuple[int, int]] = []

    def write_many() -> None:
        for _ in range(63):
            target.transport.write(LITTLE)
        assert target.arrived() == b"", "twice as many as usual wait for each other"
        for _ in range(7):
            target.transport.write(LITTLE)
        seen.append((len(sides.reads()), len(target.arrived()) // len(LITTLE)))

    target.then = write_many
    for side in sides:
        side.fill()
    sides.start()
    await sides.until_worked(8)
    reads, left = seen[0]
    assert reads < 8, "some still waited to be read"
    assert left == 64
    await turns()
    assert target.arrived() == LITTLE * 6


async def test_who_pauses_or_closes_while_it_waits_is_passed_over(
    made: Callable[[int], Sides],
) -> None:
    sides = made(7)
    paused, closed = sides[4], sides[5]
    for side in sides:
        side.fill()

    def leave() -> None:
        paused.transport.pause_reading()
        closed.transport.close()

    sides[0].then = leave
    sides.start()
    await sides.until_worked(5)
    await turns()
    assert sorted(sides.reads()) == [0, 1, 2, 3, 6]
    paused.transport.resume_reading()
    await paused.until(lambda: len(paused.data) == READ_CHUNK)


async def test_a_receiver_that_fails_does_not_keep_others_waiting(
    made: Callable[[int], Sides],
) -> None:
    sides = made(6)
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda loop, context: faults.append(context.get("exception"))
    )

    class Failing(Recorder):
        def data_received(self, data: bytes) -> None:
            raise ValueError("a fault of the receiver")

    for side in sides:
        side.fill()
        side.transport.start(Failing() if side.number in {1, 3} else side)
    for side in sides:
        if side.number not in {1, 3}:
            await side.until(lambda side=side: len(side.data) == READ_CHUNK)
    assert [str(fault) for fault in faults] == ["a fault of the receiver"] * 2


@given(amounts=st.lists(st.integers(0, 3 * READ_CHUNK), min_size=1, max_size=8))
def test_every_byte_arrives_whatever_comes(amounts: list[int]) -> None:
    async def run() -> None:
        sides = Sides(len(amounts))
        left = list(amounts)

        def more(number: int) -> None:
            count = min(left[number], READ_CHUNK)
            left[number] -= count
            if count:
                sides[number].fill(count)

        try:
            for side in sides:
                side.then = lambda number=side.number: more(number)
                more(side.number)
            sides.start()
            for side, amount in zip(sides, amounts, strict=True):
                await side.until(lambda side=side, amount=amount: len(side.data) == amount)
            await turns()
        finally:
            sides.close()

    asyncio.run(run())
