"""The contract of a transport, over memory, pipes and sockets alike."""

import pytest

from executa_protocol.errors import ConnectionLost, WriteQueueFull
from executa_protocol.limits import KIB, READ_CHUNK, WRITE_HIGH_WATER, WRITE_LOW_WATER
from tests.protocol.aio.conftest import Wiring
from tests.protocol.aio.wires import Kind, Recorder, turns

BIG = 4 * WRITE_HIGH_WATER
"""More than any pipe or socket holds."""


async def test_bytes_arrive_in_order_and_in_pieces_of_bounded_size(
    kind: Kind, wiring: Wiring
) -> None:
    left, right = wiring.pair(kind)
    there, back = Recorder(), Recorder()
    left.start(back)
    right.start(there)
    sent = bytes(range(256)) * (BIG // 256)
    for start in range(0, len(sent), 100_000):
        left.write(sent[start : start + 100_000])
    right.write(b"and back\n")
    await there.until(lambda: len(there.data) >= len(sent))
    await back.until(lambda: back.data)
    assert there.data == sent
    assert back.data == b"and back\n"
    assert max(there.sizes) <= READ_CHUNK


async def test_bytes_wait_until_the_receiver_starts(kind: Kind, wiring: Wiring) -> None:
    left, right = wiring.pair(kind)
    left.start(Recorder())
    left.write(b"early\n")
    receiver = Recorder()
    right.start(receiver)
    assert receiver.data == b""  # on a later turn of the loop
    await receiver.until(lambda: receiver.data.endswith(b"early\n"))


async def test_a_paused_receiver_gets_nothing_until_it_resumes(kind: Kind, wiring: Wiring) -> None:
    left, right = wiring.pair(kind)
    there, back = Recorder(), Recorder()
    left.start(back)
    right.start(there)
    right.pause_reading()
    right.pause_reading()
    left.write(b"one\n")
    # What is sent the other way comes after many turns in which the first could have come.
    right.write(b"two\n")
    await back.until(lambda: back.data)
    assert there.data == b""
    right.poll()
    assert there.data == b""
    right.resume_reading()
    right.resume_reading()
    await there.until(lambda: there.data.endswith(b"one\n"))


async def test_a_receiver_may_be_paused_before_it_starts(kind: Kind, wiring: Wiring) -> None:
    left, right = wiring.pair(kind)
    there, back = Recorder(), Recorder()
    right.pause_reading()
    left.start(back)
    right.start(there)
    left.write(b"one\n")
    right.write(b"two\n")
    await back.until(lambda: back.data)
    assert there.data == b""
    right.resume_reading()
    await there.until(lambda: there.data)


async def test_resuming_before_the_start_loses_nothing(kind: Kind, wiring: Wiring) -> None:
    left, right = wiring.pair(kind)
    there, back = Recorder(), Recorder()
    left.start(back)
    right.pause_reading()
    left.write(b"one\n")
    right.write(b"two\n")
    right.resume_reading()
    await back.until(lambda: back.data)
    right.start(there)
    await there.until(lambda: there.data.endswith(b"one\n"))


async def test_poll_delivers_at_once_what_has_arrived(kind: Kind, wiring: Wiring) -> None:
    left, right = wiring.pair(kind)
    there, back = Recorder(), Recorder()
    left.start(back)
    right.poll()  # before the start there is nobody to deliver to
    right.start(there)
    right.poll()
    assert there.data == b""
    right.pause_reading()
    left.write(b"one\n")
    right.write(b"two\n")
    await back.until(lambda: back.data)  # by now the first one has left, too
    right.resume_reading()
    right.poll()
    assert there.data == b"one\n"


async def test_queued_and_taken_count_the_bytes_of_either_side(kind: Kind, wiring: Wiring) -> None:
    left, right = wiring.pair(kind)
    left.start(Recorder())
    there = Recorder()
    right.start(there)
    left.write(b"12345\n")
    assert (left.queued, left.taken) == (6, 0)
    left.write(b"7\n")
    assert left.queued == 8
    await there.until(lambda: len(there.data) == 8)
    assert (left.queued, left.taken) == (0, 8)


async def test_a_write_at_the_limit_is_queued_and_one_byte_more_is_refused_whole(
    kind: Kind, wiring: Wiring
) -> None:
    left, right = wiring.pair(kind, write_limit=10 * KIB)
    there = Recorder()
    left.start(Recorder())
    left.write(b"x" * 9 * KIB)
    with pytest.raises(WriteQueueFull) as caught:
        left.write(b"y" * (KIB + 1))
    assert (caught.value.queued, caught.value.limit) == (9 * KIB, 10 * KIB)
    left.write(b"z" * KIB)
    right.start(there)
    await there.until(lambda: len(there.data) == 10 * KIB)
    assert b"y" not in there.data


async def test_an_empty_queue_takes_one_frame_over_the_limit(kind: Kind, wiring: Wiring) -> None:
    left, right = wiring.pair(kind, write_limit=10 * KIB)
    there = Recorder()
    left.start(Recorder())
    left.write(b"x" * BIG)
    with pytest.raises(WriteQueueFull):
        left.write(b"y")
    right.start(there)
    await there.until(lambda: len(there.data) == BIG)


async def test_above_the_high_water_mark_a_writer_is_congested_until_it_falls_below_the_low_one(
    kind: Kind, wiring: Wiring
) -> None:
    left, right = wiring.pair(kind)
    there, back = Recorder(), Recorder()
    left.start(back)
    left.write(b"x" * WRITE_HIGH_WATER)
    assert not left.congested
    left.write(b"x" * BIG)
    assert left.congested
    right.start(there)
    await back.until(lambda: back.has("drained"))
    assert not left.congested
    assert left.queued <= WRITE_LOW_WATER
    await there.until(lambda: len(there.data) == WRITE_HIGH_WATER + BIG)
    assert back.events == ["drained"]


async def test_closing_the_writing_side_lets_everything_queued_arrive_first(
    kind: Kind, wiring: Wiring
) -> None:
    left, right = wiring.pair(kind)
    there, back = Recorder(), Recorder()
    left.start(back)
    left.write(b"x" * BIG)
    left.close_writing()
    with pytest.raises(ConnectionLost) as caught:
        left.write(b"more\n")
    assert caught.value.written is False
    right.start(there)
    await there.until(lambda: there.has("lost"))
    assert len(there.data) == BIG
    assert there.reasons == [None]
    right.write(b"the other direction goes on\n")
    await back.until(lambda: back.data)
    right.close_writing()
    await back.until(lambda: back.has("lost"))


async def test_closing_the_writing_side_with_nothing_queued_ends_it_at_once(
    kind: Kind, wiring: Wiring
) -> None:
    left, right = wiring.pair(kind)
    there = Recorder()
    left.start(Recorder())
    right.start(there)
    left.close_writing()
    left.close_writing()
    await there.until(lambda: there.has("lost"))


async def test_closing_tells_both_sides_once_and_may_be_repeated(
    kind: Kind, wiring: Wiring
) -> None:
    left, right = wiring.pair(kind)
    there, back = Recorder(), Recorder()
    left.start(back)
    right.start(there)
    left.close()
    assert back.events == ["lost"]
    left.close()
    await there.until(lambda: there.has("lost"))
    right.close()
    left.poll()
    left.pause_reading()
    left.resume_reading()
    left.close_writing()
    assert (back.events, there.events) == (["lost"], ["lost"])
    with pytest.raises(ConnectionLost):
        left.write(b"more\n")


async def test_a_transport_that_was_closed_does_not_start(kind: Kind, wiring: Wiring) -> None:
    left, right = wiring.pair(kind)
    left.close()
    receiver = Recorder()
    left.start(receiver)
    left.poll()
    right.start(Recorder())
    assert receiver.events == []


async def test_closing_from_within_a_delivery_is_safe(kind: Kind, wiring: Wiring) -> None:
    left, right = wiring.pair(kind)

    class Closing(Recorder):
        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            right.write(b"never sent\n")
            right.close()

    there, back = Closing(), Recorder()
    left.start(back)
    right.start(there)
    left.write(b"x" * BIG)
    await back.until(lambda: back.has("lost"))
    assert there.events == ["data", "lost"]


async def test_a_side_that_has_closed_breaks_the_others_writing(kind: Kind, wiring: Wiring) -> None:
    left, right = wiring.pair(kind)
    back = Recorder()
    left.start(back)
    right.start(Recorder())
    left.write(b"x" * BIG)
    assert left.congested
    right.close()
    await back.until(lambda: back.has("broken"))
    assert isinstance(back.reasons[-1] or back.reasons[0], ConnectionLost)
    assert not left.congested
    assert left.queued == 0
    with pytest.raises(ConnectionLost):
        left.write(b"more\n")


async def test_a_side_that_has_not_started_may_write_and_may_lose_its_reader(
    kind: Kind, wiring: Wiring
) -> None:
    left, right = wiring.pair(kind)
    there = Recorder()
    right.start(there)
    left.write(b"x" * BIG)
    await there.until(lambda: len(there.data) == BIG)
    assert not left.congested
    right.pause_reading()
    left.write(b"x" * BIG)
    await turns()
    right.close()
    await turns()
    back = Recorder()
    left.start(back)
    await back.until(lambda: back.has("lost"))
    assert left.queued == 0


async def test_what_was_queued_when_its_side_closed_its_writing_may_find_no_reader(
    kind: Kind, wiring: Wiring
) -> None:
    left, right = wiring.pair(kind)
    back = Recorder()
    left.start(back)
    right.start(Recorder())
    left.write(b"x" * BIG)
    left.close_writing()
    right.close()
    await back.until(lambda: back.has("lost") and not left.queued)


async def test_what_was_written_before_the_other_side_closed_is_still_read(
    kind: Kind, wiring: Wiring
) -> None:
    left, right = wiring.pair(kind)
    back = Recorder()
    right.start(Recorder())
    right.write(b"last words\n")
    right.close_writing()
    left.write(b"x" * BIG)  # nobody reads this
    left.start(back)
    await back.until(lambda: back.has("lost"))
    assert back.data == b"last words\n"
