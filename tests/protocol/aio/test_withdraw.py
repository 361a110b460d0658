"""Frames taken back from a pipe that is full: what leaves is what was kept, in its order."""

import asyncio
import os
import random

import pytest

from executa_protocol.aio.writer import FdWriter


def _nothing(_reason: object = None) -> None:
    return None


@pytest.mark.parametrize("seed", range(20))
async def test_what_leaves_is_what_was_not_taken_back_and_nothing_that_left_can_be(
    seed: int,
) -> None:
    dice = random.Random(seed)  # noqa: S311 - reproducible, no secret
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    writer = FdWriter(asyncio.get_running_loop(), writing, on_drained=_nothing, on_broken=_nothing)
    frames: list[tuple[int, bytes]] = []
    withdrawn: set[int] = set()
    received = bytearray()

    def written(position: int) -> bool:
        return writer.taken > position

    for number in range(300):
        what = dice.random()
        if what < 0.6:
            size = dice.choice((10, 300, 5_000, 70_000, 300_000))
            frame = b"%d:%b\n" % (number, b"x" * dice.randrange(size))
            frames.append((writer.taken + writer.queued, frame))
            writer.write(frame)
        elif what < 0.8 and frames:
            position, _ = dice.choice(frames)
            before = written(position)
            if writer.withdraw(position):
                assert not before
                assert position not in withdrawn
                withdrawn.add(position)
            else:
                # Too late, taken back before, or in the middle of a write.
                assert before or position in withdrawn or position < writer.taken + 400_000
        else:
            received += _read(reading, dice.randrange(200_000))
        await asyncio.sleep(0)
    writer.close_after_flush()
    while writer.queued:
        received += _read(reading, 1 << 20)
        await asyncio.sleep(0)
    received += _read(reading, 1 << 24)
    kept = [frame for position, frame in frames if position not in withdrawn]
    assert bytes(received) == b"".join(kept)
    assert writer.taken == sum(len(frame) for _, frame in frames)
    os.close(reading)


async def test_frames_joined_for_a_write_that_took_none_of_them_can_be_taken_back() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    writer = FdWriter(asyncio.get_running_loop(), writing, on_drained=_nothing, on_broken=_nothing)
    first = b"x" * 200_000 + b"\n"
    writer.write(first)
    writer.write(b"second\n")  # in the same turn, and so in the same write
    writer.write(b"third\n")
    await asyncio.sleep(0)
    assert 0 < writer.taken < len(first)
    assert writer.withdraw(len(first))
    assert not writer.withdraw(0)
    received = b""
    writer.close_after_flush()
    while writer.queued:
        received += _read(reading, 1 << 20)
        await asyncio.sleep(0)
    received += _read(reading, 1 << 20)
    assert received == first + b"third\n"
    os.close(reading)


def _read(fd: int, most: int) -> bytes:
    data = b""
    while len(data) < most:
        try:
            chunk = os.read(fd, min(65536, most - len(data)))
        except BlockingIOError:
            break
        if not chunk:
            break
        data += chunk
    return data
