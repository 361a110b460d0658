"""Requests of the other side: each is answered once, whatever it holds (R-04)."""

import asyncio
from typing import Any

import pytest

from executa_protocol.codes import ErrorObject, wire_error
from executa_protocol.limits import DIAGNOSTIC_CHARS, MIN_LINE_CAP
from tests.protocol.aio.conftest import Wiring
from tests.protocol.aio.wires import End, Kind, id_of


def request(identity: Any, method: str = "x", **members: Any) -> dict[str, Any]:
    """A request of a stranger."""
    return {"jsonrpc": "2.0", "id": identity, "method": method, **members}


@pytest.mark.parametrize(
    "identity", [1, 0, -1, 2**70, "1", "", "r-1", "żółć", None, True, 1.5, 7.0]
)
async def test_an_id_is_echoed_with_its_type(identity: Any, kind: Kind, wiring: Wiring) -> None:
    end, stranger = wiring.peer(kind)
    end.echo()
    stranger.send(request(identity, params=[1]))
    (answer,) = await stranger.receive(1)
    assert answer == {"jsonrpc": "2.0", "id": identity, "result": [1]}
    assert type(answer["id"]) is type(identity)


async def test_a_request_may_be_answered_later_and_in_any_order(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    stranger.send(request(1), request(2), request(3))
    await end.owner.until(lambda: len(end.owner.requests) == 3)
    assert end.peer.open_requests == 3
    end.peer.reply(3, b'"c"')
    end.peer.fail(1, ErrorObject(-1, "a"))
    end.peer.reply_pointer(2, "/tmp/b")  # noqa: S108 - a name
    answers = await stranger.receive(3)
    assert [answer["id"] for answer in answers] == [3, 1, 2]
    assert answers[0]["result"] == "c"
    assert answers[1]["error"] == {"code": -1, "message": "a"}
    assert answers[2]["__file_transport"] == "/tmp/b"  # noqa: S108
    assert end.peer.open_requests == 0


async def test_a_second_answer_is_dropped(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    stranger.send(request(1))
    await end.owner.until(lambda: end.owner.requests)
    end.peer.reply(1, b"1")
    end.peer.reply(1, b"2")
    end.peer.fail(1, ErrorObject(-1, "3"))
    end.peer.reply_pointer(1, "/4")
    end.peer.reply(99, b"to nobody")
    end.peer.reply("1", b"to another")
    end.peer.notify("last")
    lines = await stranger.receive(2)
    assert [line.get("result", line.get("method")) for line in lines] == [1, "last"]


async def test_two_open_requests_with_one_id_are_both_answered(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    stranger.send(request(7, "first"), request(7, "second"))
    (refusal,) = await stranger.receive(1)
    assert refusal["id"] == 7
    assert refusal["error"]["code"] == -32600
    assert refusal["error"]["data"] == {"errorCode": "DUPLICATE_REQUEST_ID"}
    end.peer.reply(7, b'"the first"')
    assert (await stranger.receive(2))[1] == {"jsonrpc": "2.0", "id": 7, "result": "the first"}
    assert [message.method for message in end.owner.requests] == ["first"]


async def test_an_id_may_be_used_again_once_it_was_answered(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    end.echo()
    stranger.send(request(7, params=1), request(7, params=2))
    assert [answer["result"] for answer in await stranger.receive(2)] == [1, 2]


async def test_ids_that_look_alike_are_different_requests(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    identities = [1, "1", 1.0, True, "True", None, "None", "1.0", "null", "true"]
    for identity in identities:
        stranger.send(request(identity))
    await end.owner.until(lambda: len(end.owner.requests) == len(identities))
    assert end.peer.open_requests == len(identities)
    for message in end.owner.requests:
        end.peer.reply(id_of(message), b"null")
    answers = [answer["id"] for answer in await stranger.receive(len(identities))]
    assert [(type(x), x) for x in answers] == [(type(x), x) for x in identities]


async def test_an_answer_that_can_no_longer_be_sent_is_dropped(kind: Kind, wiring: Wiring) -> None:
    end, stranger = wiring.peer(kind)
    stranger.send(request(1), request(2))
    await end.owner.until(lambda: len(end.owner.requests) == 2)
    end.peer.close_writing()
    end.peer.reply(1, b"1")
    end.peer.fail(2, ErrorObject(-1, "no"))
    assert end.peer.open_requests == 0
    await stranger.until(lambda: stranger.has("lost"))
    assert stranger.data == b""


# --- Handlers that fail -----------------------------------------------------------------------


def collect_faults(end: End) -> list[Any]:
    """What reaches the loop's exception handler from now on."""
    faults: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    return faults


async def test_a_handler_that_fails_is_answered_for_and_the_next_request_is_served(
    wiring: Wiring,
) -> None:
    end, stranger = wiring.peer()
    faults = collect_faults(end)

    def answer(message: Any) -> None:
        if message.method == "bad":
            raise ValueError("secret details")
        end.peer.reply(id_of(message), b"1")

    end.owner.answer = answer
    stranger.send(request(1, "bad"), request(2, "good"))
    refusal, result = await stranger.receive(2)
    assert refusal["error"] == {
        "code": -32603,
        "message": "the handler failed",
        "data": {"errorCode": "INTERNAL_ERROR"},
    }
    assert result["result"] == 1
    assert end.owner.kinds == ["handler"]
    assert end.owner.diagnostics[0].message == "bad: ValueError: secret details"
    (fault,) = faults
    assert str(fault["exception"]) == "secret details"


async def test_a_diagnostic_is_cut_short(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    collect_faults(end)

    def answer(message: Any) -> None:
        raise ValueError("x" * 10_000)

    end.owner.answer = answer
    stranger.send(request(1))
    await stranger.receive(1)
    assert len(end.owner.diagnostics[0].message) == DIAGNOSTIC_CHARS + 3


async def test_a_handler_that_fails_after_it_answered_answers_once(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    collect_faults(end)

    def answer(message: Any) -> None:
        end.peer.reply(id_of(message), b"1")
        raise ValueError("too late")

    end.owner.answer = answer
    stranger.send(request(1), request(2))
    assert [line["result"] for line in await stranger.receive(2)] == [1, 1]


async def test_a_handler_of_notifications_that_fails_harms_nothing_else(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, stranger = wiring.peer()
    faults = collect_faults(end)
    end.echo()

    def failing(notification: Any) -> None:
        raise ValueError("no")

    monkeypatch.setattr(end.owner, "on_notification", failing)
    stranger.send({"jsonrpc": "2.0", "method": "x" * 1000}, request(1))
    await stranger.receive(1)
    assert end.owner.kinds == ["handler"]
    assert len(end.owner.diagnostics[0].message) < 200
    assert len(faults) == 1


async def test_a_handler_of_diagnostics_that_fails_loses_no_line(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, stranger = wiring.peer()
    faults = collect_faults(end)
    end.echo()

    def failing(diagnostic: Any) -> None:
        raise OSError("stderr is closed")

    monkeypatch.setattr(end.owner, "on_diagnostic", failing)
    stranger.send(b"noise\n", request(1), b"noise\n", request(2))
    assert [line["id"] for line in await stranger.receive(2)] == [1, 2]
    assert end.peer.counts == {"unreadable": 2}
    assert len(faults) == 2


async def test_a_handler_of_the_end_that_fails_does_not_keep_the_transport_open(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, stranger = wiring.peer()
    faults = collect_faults(end)

    def failing(reason: Any) -> None:
        raise ValueError("no")

    monkeypatch.setattr(end.owner, "on_closed", failing)
    end.peer.close()
    await stranger.until(lambda: stranger.has("lost"))
    assert len(faults) == 1


# --- Answers that cannot be sent --------------------------------------------------------------


async def test_a_result_over_the_line_cap_becomes_an_error(wiring: Wiring) -> None:
    end, stranger = wiring.peer(max_line=MIN_LINE_CAP)
    end.owner.answer = lambda message: end.peer.reply(
        id_of(message), b'"%b"' % (b"x" * MIN_LINE_CAP)
    )
    stranger.send(request(1))
    (answer,) = await stranger.receive(1)
    assert answer["error"]["code"] == -32603
    assert answer["error"]["data"] == {
        "errorCode": "RESULT_TOO_LARGE",
        "result_size_bytes": MIN_LINE_CAP + 2,
        "max_payload_bytes": MIN_LINE_CAP,
    }
    assert end.peer.open_requests == 0


async def test_a_result_at_the_line_cap_goes_through(wiring: Wiring) -> None:
    end, stranger = wiring.peer(max_line=MIN_LINE_CAP)
    room = MIN_LINE_CAP - len(b'{"jsonrpc":"2.0","id":1,"result":""}')
    end.owner.answer = lambda message: end.peer.reply(id_of(message), b'"%b"' % (b"x" * room))
    stranger.send(request(1))
    assert (await stranger.receive(1))[0]["result"] == "x" * room


async def test_a_result_that_would_split_its_frame_becomes_an_error(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    end.owner.answer = lambda message: end.peer.reply(id_of(message), b"[1,\n2]")
    stranger.send(request(1))
    (answer,) = await stranger.receive(1)
    assert answer["error"]["data"]["errorCode"] == "INTERNAL_ERROR"
    assert "newline" in answer["error"]["message"]


@pytest.mark.parametrize(
    "error",
    [
        ErrorObject(-32000, "m", {"ratio": float("nan")}),
        ErrorObject(-32000, "m", {"what": object()}),
        ErrorObject(-32000, "\ud800"),
    ],
    ids=["nan", "object", "surrogate"],
)
async def test_an_error_that_is_not_json_is_sent_without_what_is_not(
    error: ErrorObject, wiring: Wiring
) -> None:
    end, stranger = wiring.peer()
    end.owner.answer = lambda message: end.peer.fail(id_of(message), error)
    stranger.send(request(1))
    (answer,) = await stranger.receive(1)
    assert (answer["id"], answer["error"]["code"]) == (1, -32000)
    assert answer["error"]["message"].startswith("the error cannot be sent whole: not JSON")


async def test_an_error_over_the_line_cap_becomes_a_small_one(wiring: Wiring) -> None:
    end, stranger = wiring.peer(max_line=MIN_LINE_CAP)
    error = wire_error("INTERNAL_ERROR", "x" * MIN_LINE_CAP)
    end.owner.answer = lambda message: end.peer.fail(id_of(message), error)
    stranger.send(request(1))
    (answer,) = await stranger.receive(1)
    assert (answer["id"], answer["error"]["code"]) == (1, -32603)
    assert answer["error"]["message"] == "the error does not fit into a line"


async def test_an_id_that_leaves_no_room_for_an_answer_is_answered_with_null(
    wiring: Wiring,
) -> None:
    end, stranger = wiring.peer(max_line=MIN_LINE_CAP)
    end.echo()
    identity = "i" * (MIN_LINE_CAP - len('{"jsonrpc":"2.0","id":"","method":"x"}') - 10)
    stranger.send(request(identity, "y"))
    (answer,) = await stranger.receive(1)
    assert answer["id"] == identity  # a result of null has just room enough
    stranger.send(request(identity + "i" * 10))
    answer = (await stranger.receive(2))[1]
    assert (answer["id"], answer["error"]["code"]) == (None, -32603)


@pytest.mark.parametrize("path", ["/" + "x" * MIN_LINE_CAP, "/\ud800"])
async def test_a_pointer_that_cannot_be_sent_becomes_an_error(path: str, wiring: Wiring) -> None:
    end, stranger = wiring.peer(max_line=MIN_LINE_CAP)
    end.owner.answer = lambda message: end.peer.reply_pointer(id_of(message), path)
    stranger.send(request(1))
    (answer,) = await stranger.receive(1)
    assert answer["error"]["data"]["errorCode"] == "FILE_TRANSPORT_FAILED"
