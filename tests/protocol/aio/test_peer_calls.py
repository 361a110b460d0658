"""A peer's own calls: answered, refused, timed out, given up, and never answered twice (R-13)."""

import asyncio
import time
from typing import Any

import pytest
from msgspec import Raw

from executa_protocol.aio.peer import Peer
from executa_protocol.codes import ErrorObject
from executa_protocol.errors import (
    CallTimeout,
    ConnectionLost,
    DecodeFailure,
    FrameTooLarge,
    NotEncodable,
    RpcError,
    SamplingError,
    WriteQueueFull,
)
from executa_protocol.limits import MIN_LINE_CAP, SWEEP_INTERVAL
from tests.protocol.aio.conftest import Wiring
from tests.protocol.aio.wires import Kind, id_of, transport_pair, turns


async def test_a_call_is_answered_with_the_raw_result(kind: Kind, wiring: Wiring) -> None:
    left, right = wiring.peers(kind)
    right.echo()
    result = await left.peer.request("echo", b'{"n": 1.10}')
    assert bytes(result) == b'{"n": 1.10}'
    assert bytes(await left.peer.request("echo")) == b"null"
    request = right.owner.requests[0]
    assert (request.id, request.method) == (1, "echo")


async def test_both_sides_call_at_once_and_ids_do_not_meet(kind: Kind, wiring: Wiring) -> None:
    left, right = wiring.peers(kind)
    left.echo()
    right.echo()
    calls = [
        *(left.peer.request("a", b"%d" % number) for number in range(200)),
        *(right.peer.request("b", b"%d" % number) for number in range(200)),
    ]
    results = await asyncio.gather(*calls)
    assert [bytes(result) for result in results] == [b"%d" % number for number in range(200)] * 2
    assert {request.id for request in left.owner.requests} == {f"p{n + 1}" for n in range(200)}
    assert left.owner.diagnostics == right.owner.diagnostics == []


async def test_answers_may_come_in_any_order(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    calls = [end.peer.call("x") for _ in range(3)]
    for number in (3, 1, 2):
        stranger.send({"jsonrpc": "2.0", "id": number, "result": number * 10})
    results = await asyncio.gather(*(call.future for call in calls))
    assert [bytes(result) for result in results] == [b"10", b"20", b"30"]


async def test_an_error_answer_raises_the_exception_of_its_chapter(
    kind: Kind, wiring: Wiring
) -> None:
    left, right = wiring.peers(kind)
    error = ErrorObject(-32002, "no more today", {"errorCode": "QUOTA_EXCEEDED"})
    right.owner.answer = lambda request: right.peer.fail(id_of(request), error)
    with pytest.raises(SamplingError, match="no more today") as caught:
        await left.peer.request("sampling/createMessage")
    assert (caught.value.code, caught.value.symbol) == (-32002, "QUOTA_EXCEEDED")


@pytest.mark.parametrize(
    "error", [None, "text", 7, [], {}, {"code": 1}, {"code": "1", "message": "m"}, {"message": "m"}]
)
async def test_an_error_that_is_no_error_object_fails_its_call_and_is_quoted(
    error: Any, wiring: Wiring
) -> None:
    end, stranger = wiring.peer()
    call = end.peer.call("x")
    stranger.send({"jsonrpc": "2.0", "id": 1, "error": error})
    with pytest.raises(DecodeFailure, match="not an error object"):
        await call.future
    again = end.peer.call("x")
    stranger.send({"jsonrpc": "2.0", "id": 2, "error": "out of paper"})
    with pytest.raises(DecodeFailure, match="out of paper"):
        await again.future


async def test_an_error_may_have_no_data_or_any(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    first, second = end.peer.call("x"), end.peer.call("x")
    stranger.send({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": ""}})
    stranger.send({"jsonrpc": "2.0", "id": 2, "error": {"code": 2**70, "message": "", "data": [1]}})
    with pytest.raises(RpcError) as caught:
        await first.future
    assert caught.value.data == {}
    with pytest.raises(RpcError) as caught:
        await second.future
    assert (caught.value.code, caught.value.data) == (2**70, {"value": [1]})


# --- Answers to nobody ------------------------------------------------------------------------


async def test_late_duplicate_and_unknown_answers_are_counted_and_told(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    call = end.peer.call("x")
    forgotten = end.peer.call("x")
    end.peer.forget(forgotten)
    for identity in (1, 1, 2, 99, "7", None, True, 1.5):
        stranger.send({"jsonrpc": "2.0", "id": identity, "result": "r"})
    assert bytes(await call.future) == b'"r"'
    await end.owner.until(lambda: end.peer.counts["stray"] == 7)
    messages = [diagnostic.message for diagnostic in end.owner.diagnostics]
    assert messages == [
        "an answer to late or duplicate id 1",
        "an answer to late or duplicate id 2",
        "an answer to unknown id 99",
        "an answer to unknown id '7'",
        "an answer to unknown id None",
        "an answer to unknown id True",
        "an answer to unknown id 1.5",
    ]
    assert {diagnostic.sample for diagnostic in end.owner.diagnostics} == {b'"r"'}


async def test_an_error_without_an_owner_is_shown(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    stranger.send(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no JSON"}}\n')
    await end.owner.until(lambda: end.owner.diagnostics)
    assert end.owner.diagnostics[0].sample == b'{"code":-32700,"message":"no JSON"}'


async def test_an_id_as_long_as_a_line_is_not_repeated_whole(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    stranger.send({"jsonrpc": "2.0", "id": "x" * 1_000_000, "result": 1})
    await end.owner.until(lambda: end.owner.diagnostics)
    assert len(end.owner.diagnostics[0].message) < 200


@pytest.mark.parametrize("identity", ["1", 1.0])
async def test_an_id_of_the_wrong_type_is_tolerated_and_told(identity: Any, wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    call = end.peer.call("x")
    stranger.send({"jsonrpc": "2.0", "id": identity, "result": "r"})
    assert bytes(await call.future) == b'"r"'
    assert end.owner.kinds == ["tolerated"]
    assert end.owner.diagnostics[0].message.startswith("WIRE-007: ")


@pytest.mark.parametrize("identity", ["1", 1.0])
@pytest.mark.parametrize("content", [{"result": 1}, {"result": 1, "error": 1}])
async def test_an_id_of_the_wrong_type_answers_nothing_in_strict_mode(
    identity: Any, content: Any, wiring: Wiring
) -> None:
    end, stranger = wiring.peer(strict=True)
    call = end.peer.call("x")
    stranger.send({"jsonrpc": "2.0", "id": identity, **content})
    await end.owner.until(lambda: end.peer.counts["stray"])
    assert end.owner.diagnostics[-1].message.startswith("WIRE-007: ")
    stranger.send({"jsonrpc": "2.0", "id": 1, "result": "right"})
    assert bytes(await call.future) == b'"right"'


# --- Deadlines --------------------------------------------------------------------------------


async def test_a_call_times_out_and_the_connection_goes_on(kind: Kind, wiring: Wiring) -> None:
    left, right = wiring.peers(kind)
    started = time.monotonic()
    with pytest.raises(CallTimeout):
        await left.peer.request("slow", timeout=0.02)
    assert time.monotonic() - started >= 0.02
    assert left.peer.pending_count == 0
    right.peer.reply(id_of(right.owner.requests[0]), b'"late"')
    right.echo()
    assert bytes(await left.peer.request("echo", b"1", timeout=20.0)) == b"1"
    assert left.owner.kinds == ["stray"]


async def test_a_deadline_that_has_passed_already_fails_at_once(wiring: Wiring) -> None:
    end, _ = wiring.peer()
    for timeout in (0.0, -5.0):
        with pytest.raises(CallTimeout):
            await end.peer.request("x", timeout=timeout)


async def test_the_other_calls_wait_on(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    short, long, forever = (end.peer.call("x", None, limit) for limit in (0.01, 20.0, None))
    with pytest.raises(CallTimeout):
        await short.future
    assert end.peer.pending_count == 2
    stranger.send(
        {"jsonrpc": "2.0", "id": 2, "result": 2}, {"jsonrpc": "2.0", "id": 3, "result": 3}
    )
    assert [bytes(await call.future) for call in (long, forever)] == [b"2", b"3"]


async def test_a_deadline_may_be_moved(wiring: Wiring) -> None:
    end, _ = wiring.peer()
    call = end.peer.call("x", None, 60.0)
    end.peer.wait_at_most(call, 0.01)
    with pytest.raises(CallTimeout):
        await call.future


async def test_an_answer_that_has_arrived_when_the_deadline_falls_wins(
    kind: Kind, wiring: Wiring
) -> None:
    end, stranger = wiring.peer(kind)
    call = end.peer.call("x", None, 0.05)
    await stranger.receive(1)
    stranger.send({"jsonrpc": "2.0", "id": 1, "result": "in time"})
    stranger.transport.poll()  # what is written leaves with the next turn; give it that turn
    await turns(1)
    held = call.deadline + SWEEP_INTERVAL
    while time.monotonic() < held:
        pass  # the loop stands still: answer and deadline fall into one turn
    assert bytes(await call.future) == b'"in time"'


# --- Given up ---------------------------------------------------------------------------------


async def test_a_task_that_is_cancelled_forgets_its_call(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    task = asyncio.ensure_future(end.peer.request("x"))
    await stranger.receive(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert end.peer.pending_count == 0
    stranger.send({"jsonrpc": "2.0", "id": 1, "result": 1})
    await end.owner.until(lambda: end.peer.counts["stray"])


async def test_a_request_that_has_not_left_can_be_withdrawn(wiring: Wiring) -> None:
    end, stranger = wiring.peer("pipes")
    first, second, third = (end.peer.call("x", b"%d" % number) for number in range(3))
    assert end.peer.withdraw(second)
    end.peer.forget(second)
    lines = await stranger.receive(2)
    assert [line["id"] for line in lines] == [1, 3]
    assert not end.peer.withdraw(first)
    assert end.peer.was_written(third)
    for call in (first, third):
        end.peer.forget(call)


async def test_in_memory_what_was_written_is_on_its_way(wiring: Wiring) -> None:
    end, stranger = wiring.peer("memory")
    call = end.peer.call("x")
    assert not end.peer.withdraw(call)
    end.peer.forget(call)
    await stranger.receive(1)


@pytest.mark.parametrize("content", [{"result": 1}, {"error": {"code": -1, "message": "m"}}])
async def test_an_answer_to_a_cancelled_future_that_nobody_forgot_is_kept(
    content: Any, wiring: Wiring
) -> None:
    end, stranger = wiring.peer()
    call = end.peer.call("x")
    call.future.cancel()
    stranger.send({"jsonrpc": "2.0", "id": 1, **content})
    await stranger.receive(1)
    await end.owner.until(lambda: end.peer.pending_count == 0 or end.owner.changed())
    assert isinstance(call.late, RpcError if "error" in content else Raw)
    assert end.owner.diagnostics == []


# --- Refused before anything is sent ----------------------------------------------------------


async def test_a_frame_over_the_cap_is_refused_before_a_byte_is_written(
    kind: Kind, wiring: Wiring
) -> None:
    end, stranger = wiring.peer(kind, max_line=MIN_LINE_CAP)
    room = MIN_LINE_CAP - len(b'{"jsonrpc":"2.0","id":1,"method":"x","params":""}')
    with pytest.raises(FrameTooLarge) as caught:
        end.peer.call("x", b'"%b"' % (b"y" * (room + 1)))
    assert (caught.value.size, caught.value.limit) == (MIN_LINE_CAP + 1, MIN_LINE_CAP)
    assert (end.peer.queued, end.peer.pending_count) == (0, 0)
    call = end.peer.call("x", b'"%b"' % (b"y" * (room - 0)))
    (line,) = await stranger.receive(1)
    assert line["id"] == 2
    end.peer.forget(call)


async def test_what_cannot_be_sent_leaves_no_call_behind(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    with pytest.raises(NotEncodable, match="newline"):
        end.peer.call("x", b"[1,\n2]")
    with pytest.raises(NotEncodable, match="newline"):
        end.peer.notify("x", b"\n")
    end.peer.notify("fine")
    await stranger.receive(1)
    assert [line["method"] for line in stranger.lines] == ["fine"]


async def test_a_full_queue_refuses_calls_and_keeps_those_that_wait(wiring: Wiring) -> None:
    left, right = transport_pair("pipes", write_limit=200_000)
    end = wiring.end(left)
    end.peer.start()
    call = end.peer.call("x", b'"%b"' % (b"y" * 150_000), 20.0)
    with pytest.raises(WriteQueueFull):
        end.peer.call("x", b'"%b"' % (b"y" * 150_000), 20.0)
    assert end.peer.pending_count == 1
    right.close()
    with pytest.raises(ConnectionLost):
        await call.future


async def test_notifications_arrive_without_an_id(kind: Kind, wiring: Wiring) -> None:
    left, right = wiring.peers(kind)
    left.peer.notify("executa/cancel", b'{"invoke_id":"1"}')
    left.peer.notify("bare")
    await right.owner.until(lambda: len(right.owner.notifications) == 2)
    assert [message.method for message in right.owner.notifications] == ["executa/cancel", "bare"]
    params = right.owner.notifications[0].params
    assert isinstance(params, Raw)
    assert bytes(params) == b'{"invoke_id":"1"}'


async def test_ids_begin_where_they_are_told_to(wiring: Wiring) -> None:
    left, right = wiring.pair("memory")
    end = wiring.end(left, first_id=0)
    other = wiring.end(right)
    end.peer.start()
    other.peer.start()
    other.echo()
    await end.peer.request("initialize")
    await end.peer.request("describe")
    assert [request.id for request in other.owner.requests] == [0, 1]


async def test_a_peer_belongs_to_the_loop_it_was_made_on(wiring: Wiring) -> None:
    end, _ = wiring.peer()
    assert isinstance(end.peer, Peer)
    call = end.peer.call("x")
    assert call.future.get_loop() is asyncio.get_running_loop()
    end.peer.forget(call)
