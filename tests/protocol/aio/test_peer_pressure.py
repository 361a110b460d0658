"""A side that does not read: nothing blocks, nothing grows without bound, nobody deadlocks."""

import asyncio
from typing import Any

import pytest

from executa_protocol.errors import CallTimeout, ConnectionLost, WriteQueueFull
from executa_protocol.limits import KIB, MIB, WRITE_HIGH_WATER
from tests.protocol.aio.conftest import Wiring
from tests.protocol.aio.wires import Kind, id_of, turns

BIG = b'"%b"' % (b"x" * 600 * KIB)


def request(identity: int) -> bytes:
    """A request of a stranger."""
    return b'{"jsonrpc":"2.0","id":%d,"method":"x"}\n' % identity


async def test_a_call_to_a_side_that_never_reads_times_out(kind: Kind, wiring: Wiring) -> None:
    left, _ = wiring.pair(kind)
    end = wiring.end(left)
    end.peer.start()
    calls = [end.peer.call("x", BIG, 0.02) for _ in range(20)]
    for call in calls:
        with pytest.raises(CallTimeout):
            await call.future
    assert end.peer.pending_count == 0
    assert end.peer.queued > 10 * MIB
    written = [end.peer.was_written(call) for call in calls]
    assert written == sorted(written, reverse=True)
    assert not written[-1]


async def test_calls_beyond_the_queue_are_refused_at_once(kind: Kind, wiring: Wiring) -> None:
    left, _ = wiring.pair(kind, write_limit=1 * MIB)
    end = wiring.end(left)
    end.peer.start()
    call = end.peer.call("x", BIG)
    with pytest.raises(WriteQueueFull):
        end.peer.call("x", BIG)
    end.peer.notify("small")
    end.peer.forget(call)


async def test_a_side_that_asks_and_does_not_read_the_answers_loses_its_connection(
    kind: Kind, wiring: Wiring
) -> None:
    left, right = wiring.pair(kind, write_limit=1 * MIB)
    end = wiring.end(left)
    end.owner.answer = lambda message: end.peer.reply(id_of(message), BIG)
    end.peer.start()
    call = end.peer.call("reverse")
    for identity in range(10):
        right.write(request(identity))
    await end.owner.until(lambda: end.owner.closings)
    assert isinstance(end.owner.closings[0], WriteQueueFull)
    with pytest.raises(ConnectionLost, match="does not read"):
        await call.future
    assert len(end.owner.requests) < 10


async def test_a_peer_that_yields_stops_reading_while_its_answers_wait(
    kind: Kind, wiring: Wiring
) -> None:
    end, stranger = wiring.peer(kind, yield_to_writes=True)
    end.owner.answer = lambda message: end.peer.reply(id_of(message), BIG)
    stranger.transport.pause_reading()
    for identity in range(8):
        stranger.send(request(identity))
        await end.owner.until(lambda: end.owner.requests)
        await turns(5)
    asked = len(end.owner.requests)
    assert asked < 8
    assert end.peer.queued <= WRITE_HIGH_WATER + 2 * len(BIG)
    stranger.transport.resume_reading()
    answers = await stranger.receive(8)
    assert sorted(answer["id"] for answer in answers) == list(range(8))


async def test_a_peer_that_does_not_yield_reads_on(kind: Kind, wiring: Wiring) -> None:
    end, stranger = wiring.peer(kind)
    end.owner.answer = lambda message: end.peer.reply(id_of(message), BIG)
    stranger.transport.pause_reading()
    for identity in range(8):
        stranger.send(request(identity))
    await end.owner.until(lambda: len(end.owner.requests) == 8)
    stranger.transport.resume_reading()
    await stranger.receive(8)


async def test_a_peer_that_yields_still_notices_that_nobody_reads_any_more(
    kind: Kind, wiring: Wiring
) -> None:
    end, stranger = wiring.peer(kind, yield_to_writes=True)
    end.owner.answer = lambda message: end.peer.reply(id_of(message), BIG)
    stranger.transport.pause_reading()
    for identity in range(8):
        stranger.send(request(identity))
    await end.owner.until(lambda: end.peer.queued > WRITE_HIGH_WATER)
    stranger.transport.close()
    await end.owner.until(lambda: end.owner.closings)
    assert end.peer.closed


async def test_two_peers_that_flood_each_other_do_not_deadlock(kind: Kind, wiring: Wiring) -> None:
    left, right = wiring.pair(kind)
    host, plugin = wiring.end(left), wiring.end(right, prefix="p", yield_to_writes=True)
    for end in (host, plugin):
        end.echo()
        end.peer.start()
    calls = [
        *(host.peer.request("a", BIG) for _ in range(20)),
        *(plugin.peer.request("b", BIG) for _ in range(20)),
    ]
    async with asyncio.timeout(60):
        results = await asyncio.gather(*calls)
    assert {len(memoryview(result)) for result in results} == {len(BIG)}


async def test_writable_waits_until_most_has_been_taken(kind: Kind, wiring: Wiring) -> None:
    end, stranger = wiring.peer(kind)
    await end.peer.writable()
    stranger.transport.pause_reading()
    end.peer.notify("x", b'"%b"' % (b"y" * 4 * MIB))
    waiting = [asyncio.ensure_future(end.peer.writable()) for _ in range(2)]
    await turns()
    assert not any(task.done() for task in waiting)
    stranger.transport.resume_reading()
    async with asyncio.timeout(20):
        await asyncio.gather(*waiting)
    assert end.peer.queued < 4 * MIB


@pytest.mark.parametrize("side", ["this", "other"])
async def test_writable_ends_with_the_connection(side: str, kind: Kind, wiring: Wiring) -> None:
    end, stranger = wiring.peer(kind)
    stranger.transport.pause_reading()
    end.peer.notify("x", b'"%b"' % (b"y" * 4 * MIB))
    waiting = asyncio.ensure_future(end.peer.writable())
    await turns(1)
    if side == "this":
        end.peer.close()
    else:
        stranger.transport.close()
    async with asyncio.timeout(20):
        await waiting


async def test_many_calls_in_flight_are_all_answered(kind: Kind, wiring: Wiring) -> None:
    left, right = wiring.peers(kind)
    right.echo()
    calls: list[Any] = [left.peer.call("x", b"%d" % number, 60.0) for number in range(10_000)]
    results = await asyncio.gather(*(call.future for call in calls))
    assert [bytes(result) for result in results] == [b"%d" % number for number in range(10_000)]
    assert left.peer.pending_count == right.peer.open_requests == 0
