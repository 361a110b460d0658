"""The end of a connection, from either side, in the middle of anything (R-25)."""

import asyncio
import os
from typing import Any

import pytest

from executa_protocol.errors import ConnectionLost, PeerViolation
from executa_protocol.limits import MIN_LINE_CAP
from tests.protocol.aio.conftest import Wiring
from tests.protocol.aio.wires import End, Kind, Stranger, id_of, turns

ANSWER = b'{"jsonrpc":"2.0","id":1,"result":"last words"}'
REQUEST = b'{"jsonrpc":"2.0","id":7,"method":"x"}'


async def failure(call: Any) -> ConnectionLost:
    """How a call failed."""
    with pytest.raises(ConnectionLost) as caught:
        await call.future
    return caught.value


# --- The other side closes --------------------------------------------------------------------


async def test_the_end_fails_every_call_and_is_told_once(kind: Kind, wiring: Wiring) -> None:
    end, stranger = wiring.peer(kind)
    calls = [end.peer.call("x", None, timeout) for timeout in (None, 20.0)]
    await stranger.receive(2)
    stranger.transport.close()
    for call in calls:
        fault = await failure(call)
        assert fault.written is True
        assert str(fault) == (
            "the connection ended after the request was written: the other side closed it"
        )
    await end.owner.until(lambda: end.owner.closings)
    end.peer.close()
    assert end.owner.closings == [None]
    assert (end.peer.closed, end.peer.lost_calls, end.peer.pending_count) == (True, 2, 0)


async def test_what_was_in_the_pipe_counts_before_any_call_fails(
    kind: Kind, wiring: Wiring
) -> None:
    end, stranger = wiring.peer(kind)
    answered, lost = end.peer.call("x"), end.peer.call("x")
    await stranger.receive(2)
    stranger.send(ANSWER + b"\n")
    stranger.transport.close_writing()
    assert bytes(await answered.future) == b'"last words"'
    await failure(lost)


async def test_a_call_of_which_nothing_was_taken_says_so(kind: Kind, wiring: Wiring) -> None:
    left, right = wiring.pair(kind)
    end = wiring.end(left)
    end.peer.start()
    filler = end.peer.call("x", b'"%b"' % (b"y" * 3_000_000))
    call = end.peer.call("x")
    await turns(1)
    right.close()
    await failure(filler)
    fault = await failure(call)
    assert fault.written is False


async def test_after_the_end_nothing_can_be_called(kind: Kind, wiring: Wiring) -> None:
    end, stranger = wiring.peer(kind)
    stranger.transport.close()
    await end.owner.until(lambda: end.owner.closings)
    with pytest.raises(ConnectionLost) as caught:
        end.peer.call("x")
    assert caught.value.written is False
    assert end.peer.pending_count == 0


async def test_open_requests_end_with_the_connection(kind: Kind, wiring: Wiring) -> None:
    end, stranger = wiring.peer(kind)
    stranger.send(REQUEST + b"\n")
    await end.owner.until(lambda: end.owner.requests)
    stranger.transport.close()
    await end.owner.until(lambda: end.owner.closings)
    assert end.peer.open_requests == 0
    end.peer.reply(7, b"null")


# --- In the middle of a line ------------------------------------------------------------------


@pytest.mark.parametrize("line", [ANSWER, REQUEST, REQUEST + b"\r", b" " + REQUEST + b"  "])
async def test_a_whole_object_without_its_newline_counts_and_is_told(
    line: bytes, kind: Kind, wiring: Wiring
) -> None:
    end, stranger = wiring.peer(kind)
    call = end.peer.call("x")
    stranger.send(line)
    stranger.transport.close_writing()
    await end.owner.until(lambda: end.owner.closings)
    assert end.owner.diagnostics[0].message.startswith("WIRE-008: ")
    if line == ANSWER:
        assert bytes(await call.future) == b'"last words"'
    else:
        assert [message.id for message in end.owner.requests] == [7]
        await failure(call)


async def test_strict_mode_does_not_take_a_line_without_its_newline(wiring: Wiring) -> None:
    end, stranger = wiring.peer(strict=True)
    call = end.peer.call("x")
    stranger.send(ANSWER)
    stranger.transport.close_writing()
    await failure(call)
    assert end.owner.kinds == ["unfinished"]
    assert end.owner.diagnostics[0].sample == ANSWER


async def test_half_an_answer_fails_its_call(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    call = end.peer.call("x")
    stranger.send(b'{"jsonrpc":"2.0","id":1,"result":{"a')
    stranger.transport.close_writing()
    with pytest.raises(PeerViolation, match="cannot be read"):
        await call.future


@pytest.mark.parametrize("rest", [b"\r", b"  ", b"\t\r", b"\xef\xbb\xbf"])
async def test_blank_bytes_at_the_end_are_nothing(rest: bytes, wiring: Wiring) -> None:
    end, stranger = wiring.peer(strict=True)
    stranger.send(rest)
    stranger.transport.close_writing()
    await end.owner.until(lambda: end.owner.closings)
    assert end.owner.diagnostics == []


async def test_an_oversized_line_that_never_ends_fails_its_call(wiring: Wiring) -> None:
    end, stranger = wiring.peer(max_line=MIN_LINE_CAP)
    call = end.peer.call("x")
    stranger.send(b'{"jsonrpc":"2.0","id":1,"result":"' + b"y" * 10_000)
    stranger.transport.close_writing()
    with pytest.raises(PeerViolation, match="10,034 bytes"):
        await call.future


# --- This side closes -------------------------------------------------------------------------


async def test_closing_fails_calls_with_the_reason(kind: Kind, wiring: Wiring) -> None:
    end, stranger = wiring.peer(kind)
    call = end.peer.call("x")
    await stranger.receive(1)
    end.peer.close(ConnectionLost("the plugin was killed"))
    assert str(await failure(call)).endswith("was written: the plugin was killed")
    assert [str(reason) for reason in end.owner.closings] == ["the plugin was killed"]
    await stranger.until(lambda: stranger.has("lost"))


async def test_closing_without_a_reason_says_who_closed(wiring: Wiring) -> None:
    end, _ = wiring.peer()
    call = end.peer.call("x")
    end.peer.close()
    assert str(await failure(call)).endswith("before the request was written: this side closed it")


async def test_half_a_line_is_not_looked_at_when_this_side_closes(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    stranger.send(b'{"jsonrpc":"2.0","method":"first"}\n', b'{"jsonrpc":"2.0","method":"second"}')
    await end.owner.until(lambda: end.owner.notifications)
    end.peer.close()
    assert [message.method for message in end.owner.notifications] == ["first"]
    assert end.owner.diagnostics == []


async def test_lines_after_the_one_that_made_us_close_are_not_delivered(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    end.owner.answer = lambda _: end.peer.close()
    stranger.send(REQUEST + b"\n" + REQUEST + b"\n" + b"noise\n")
    await stranger.until(lambda: stranger.has("lost"))
    assert len(end.owner.requests) == 1
    assert end.owner.diagnostics == []


async def test_a_peer_may_be_closed_before_it_starts(kind: Kind, wiring: Wiring) -> None:
    left, _ = wiring.pair(kind)
    end = wiring.end(left)
    end.peer.close()
    end.peer.start()
    assert end.owner.closings == [None]
    with pytest.raises(ConnectionLost):
        end.peer.notify("x")


async def test_closing_the_writing_side_is_the_end_of_the_others_input(
    kind: Kind, wiring: Wiring
) -> None:
    end, stranger = wiring.peer(kind)
    call = end.peer.call("x")
    end.peer.close_writing()
    await stranger.until(lambda: stranger.has("lost"))
    with pytest.raises(ConnectionLost):
        end.peer.call("y")
    assert end.peer.pending_count == 1
    stranger.send(ANSWER + b"\n")  # it may finish what it has
    assert bytes(await call.future) == b'"last words"'


# --- Owners who want to decide themselves -----------------------------------------------------


def deciding(kind: Kind, wiring: Wiring, **options: Any) -> tuple[End, Stranger, asyncio.Event]:
    """A peer whose owner is told of the end of the other side's output."""
    ended = asyncio.Event()
    end, stranger = wiring.peer(kind, on_eof=ended.set, **options)
    return end, stranger, ended


async def test_with_on_eof_calls_wait_until_the_owner_knows_why(kind: Kind, wiring: Wiring) -> None:
    end, stranger, ended = deciding(kind, wiring)
    call = end.peer.call("x")
    await stranger.receive(1)
    stranger.transport.close()
    await ended.wait()
    assert (end.peer.pending_count, end.peer.closed, end.owner.closings) == (1, False, [])
    with pytest.raises(ConnectionLost):
        end.peer.call("y")  # nobody would answer
    end.peer.close(ConnectionLost("exited with code 3"))
    assert str(await failure(call)).endswith("exited with code 3")
    assert end.peer.lost_calls == 1
    assert len(end.owner.closings) == 1


async def test_with_on_eof_open_requests_can_still_be_answered(kind: Kind, wiring: Wiring) -> None:
    end, stranger, ended = deciding(kind, wiring)
    call = end.peer.call("reverse")
    stranger.send(REQUEST + b"\n")
    stranger.transport.close_writing()
    await ended.wait()
    end.peer.fail_calls()
    await failure(call)
    assert (end.peer.lost_calls, end.peer.open_requests) == (1, 1)
    end.peer.reply(7, b'"drained"')
    assert (await stranger.receive(2))[1] == {"jsonrpc": "2.0", "id": 7, "result": "drained"}
    end.peer.close()
    assert end.peer.lost_calls == 1
    assert end.owner.closings == [None]


async def test_after_the_end_of_input_writing_may_still_break(wiring: Wiring) -> None:
    end, stranger, ended = deciding("pipes", wiring)
    stranger.send(REQUEST + b"\n")
    stranger.transport.close()
    await ended.wait()
    waiting = asyncio.ensure_future(end.peer.writable())
    end.peer.reply(7, b'"%b"' % (b"y" * 3_000_000))
    late = asyncio.ensure_future(end.peer.writable())
    async with asyncio.timeout(20):
        await asyncio.gather(waiting, late)
    assert end.peer.queued == 0


async def test_a_read_that_fails_is_the_end_with_its_reason(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, stranger = wiring.peer("pipes")

    def failing(fd: int, size: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.read", failing)
    stranger.send(b"x\n")
    await end.owner.until(lambda: end.owner.closings)
    monkeypatch.undo()
    assert [str(reason) for reason in end.owner.closings] == ["reading failed: Input/output error"]


async def test_writing_that_breaks_fails_what_was_never_seen_and_keeps_the_rest(
    wiring: Wiring,
) -> None:
    end, stranger = wiring.peer("pipes")
    seen = end.peer.call("x")
    await stranger.receive(1)
    filler = end.peer.call("x", b'"%b"' % (b"y" * 3_000_000))
    unseen = end.peer.call("x")
    await stranger.until(lambda: len(stranger.data) > 100_000)
    # The other side stops reading, and still has something to say.
    stranger_input = stranger.transport
    stranger_input.pause_reading()
    close_input(stranger_input)
    fault = await failure(unseen)
    assert fault.written is False
    assert end.peer.pending_count == 2
    stranger.send(ANSWER + b"\n")
    assert bytes(await seen.future) == b'"last words"'
    stranger.transport.close()
    assert (await failure(filler)).written is True


def close_input(transport: Any) -> None:
    """Close the reading descriptor alone, as a plugin does that closes its stdin."""
    os.close(transport._fd)
    transport._fd = -1


async def test_the_handler_may_answer_while_it_closes(wiring: Wiring) -> None:
    end, stranger = wiring.peer("pipes")

    def answer(message: Any) -> None:
        end.peer.reply(id_of(message), b"1")
        end.peer.close_writing()

    end.owner.answer = answer
    stranger.send(REQUEST + b"\n")
    assert (await stranger.receive(1))[0]["result"] == 1
    await stranger.until(lambda: stranger.has("lost"))
