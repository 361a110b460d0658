"""Lines that are no messages harm themselves only, and whoever waits is told (R-10, R-11, R-14)."""

from typing import Any

import pytest

from executa_protocol.errors import PeerViolation
from executa_protocol.limits import MAX_LINE, MIN_LINE_CAP, SAMPLE_BYTES
from tests.protocol.aio.conftest import Wiring
from tests.protocol.aio.wires import Kind

NOISE = [
    b"hello\n",
    b"[]\n",
    b'[{"jsonrpc":"2.0","id":1,"method":"x"}]\n',
    b"7\n",
    b'"text"\n',
    b"null\n",
    b"\xff\xfe\n",
    b"{\n",
    b'{"a":1}}\n',
    b"[" * 100_000 + b"\n",
    b"\xef\xbb\xbf{}\n",
]
PING = b'{"jsonrpc":"2.0","id":"ping","method":"x","params":1}\n'
PONG = {"jsonrpc": "2.0", "id": "ping", "result": 1}


async def test_noise_is_counted_shown_and_skipped(kind: Kind, wiring: Wiring) -> None:
    end, stranger = wiring.peer(kind)
    end.echo()
    stranger.send(PING, *NOISE, PING)
    assert await stranger.receive(2) == [PONG, PONG]
    assert end.owner.kinds == ["unreadable"] * len(NOISE)
    samples = [diagnostic.sample for diagnostic in end.owner.diagnostics]
    assert samples == [line[:SAMPLE_BYTES] for line in NOISE]
    assert end.peer.counts == {"unreadable": len(NOISE)}


async def test_a_server_answers_noise_with_a_null_id(kind: Kind, wiring: Wiring) -> None:
    end, stranger = wiring.peer(kind, answer_unreadable=True)
    stranger.send(*NOISE)
    answers = await stranger.receive(len(NOISE))
    assert {answer["id"] for answer in answers} == {None}
    assert {answer["error"]["code"] for answer in answers} == {-32700}
    assert {answer["error"]["data"]["errorCode"] for answer in answers} == {"PARSE_ERROR"}
    stranger.send(b"{}\n", b'{"jsonrpc":"2.0","method":7}\n', b'{"jsonrpc":"2.0"}\n')
    answers = (await stranger.receive(len(NOISE) + 3))[len(NOISE) :]
    assert {answer["error"]["data"]["errorCode"] for answer in answers} == {"INVALID_REQUEST"}
    assert end.owner.requests == []


async def test_what_is_an_answer_is_never_answered(wiring: Wiring) -> None:
    end, stranger = wiring.peer(answer_unreadable=True)
    end.echo()
    stranger.send(
        b'{"jsonrpc":"2.0","result":1}\n',
        b'{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}\n',
        b'{"jsonrpc":"2.0","id":[1],"result":1}\n',
        b'{"jsonrpc":"2.0","id":99,"result":1,"error":1}\n',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}\n',
        b'{"jsonrpc":"2.0","id":99,"result":NaN}\n',
        b'{"jsonrpc":"2.0","id":99,"result":"' + b"x" * MAX_LINE + b'"}\n',
        PING,
    )
    assert await stranger.receive(1) == [PONG]
    assert end.owner.notifications == []


async def test_two_servers_do_not_answer_each_others_refusals_for_ever(wiring: Wiring) -> None:
    left, right = wiring.pair("memory")
    ends = [wiring.end(side, answer_unreadable=True) for side in (left, right)]
    for end in ends:
        end.peer.start()
    left.write(b"noise\n")
    ends[1].echo()
    assert bytes(await ends[0].peer.request("x", b"1")) == b"1"
    assert ends[0].owner.kinds == ["stray"]
    assert ends[1].owner.kinds == ["unreadable"]


BAD = [
    b'{"jsonrpc":"2.0","id":%b,"method":"x","params":NaN}\n',
    b'{"jsonrpc":"2.0","id":%b,"method":"x","params":1e999}\n',
    b'{"jsonrpc":"2.0","id":%b,"method":"x","params":"\xff"}\n',
    b'{"jsonrpc":"2.0","id":%b,"method":"x","params":"\\ud800"}\n',
    b'{"jsonrpc":"2.0","id":%b,"method":"x","params":' + b"[" * 200 + b"]" * 200 + b"}\n",
    b'{"jsonrpc":"2.0","id":%b,"method":"x","params":[1,]}\n',
]


@pytest.mark.parametrize("template", BAD)
@pytest.mark.parametrize("identity", [7, "r7"])
async def test_a_request_with_bad_content_is_answered_under_its_id(
    template: bytes, identity: Any, wiring: Wiring
) -> None:
    end, stranger = wiring.peer()
    end.echo()
    token = b"7" if identity == 7 else b'"r7"'
    stranger.send(template % token, PING)
    refusal, pong = await stranger.receive(2)
    assert (refusal["id"], refusal["error"]["code"]) == (identity, -32700)
    assert pong == PONG


async def test_a_request_with_a_member_of_the_wrong_type_is_answered(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    stranger.send(
        b'{"jsonrpc":"2.0","id":7,"method":5}\n',
        b'{"jsonrpc":"2.0","id":[7],"method":"x"}\n',
        b'{"jsonrpc":"2.0","id":8,"method":"x","__file_transport":"/a"}\n',
    )
    answers = await stranger.receive(3)
    assert [answer["id"] for answer in answers] == [7, None, 8]
    assert {answer["error"]["code"] for answer in answers} == {-32600}
    assert end.owner.requests == []


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"result":NaN}\n',
        b'{"jsonrpc":"2.0","id":1,"result":"\xff"}\n',
        b'{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"m"}}\n',
        b'{"jsonrpc":"2.0","id":1}\n',
        b'{"jsonrpc":"2.0","id":1,"result":1,"__file_transport":"/a"}\n',
        b'{"jsonrpc":"2.0","id":1,"__file_transport":7}\n',
        b'{"id":1,"result":' + b"[" * 1000 + b"\n",
        b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * 10_000 + b'"}\n',
    ],
)
async def test_an_answer_that_cannot_be_read_fails_its_call_and_is_not_answered(
    line: bytes, wiring: Wiring
) -> None:
    end, stranger = wiring.peer(max_line=MIN_LINE_CAP)
    end.echo()
    call = end.peer.call("x")
    other = end.peer.call("x")
    stranger.send(line, PING)
    with pytest.raises(PeerViolation, match="the answer cannot be read"):
        await call.future
    assert (await stranger.receive(3))[2] == PONG
    end.peer.forget(other)


async def test_an_unreadable_answer_to_nobody_is_told_once(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    stranger.send(b'{"jsonrpc":"2.0","id":99,"result":NaN}\n', b'{"id":"x","result":NaN}\n')
    await end.owner.until(lambda: len(end.owner.diagnostics) == 2)
    assert end.owner.kinds == ["unreadable"] * 2


# --- Oversized --------------------------------------------------------------------------------


@pytest.mark.parametrize("identity", [b"7", b'"r-7"'])
async def test_an_oversized_request_is_answered_under_its_id(
    identity: bytes, kind: Kind, wiring: Wiring
) -> None:
    end, stranger = wiring.peer(kind, max_line=MIN_LINE_CAP)
    end.echo()
    line = b'{"jsonrpc":"2.0","id":%b,"method":"x","params":"%b"}' % (identity, b"y" * 300_000)
    stranger.send(line + b"\n", PING)
    refusal, pong = await stranger.receive(2)
    assert refusal["id"] == (7 if identity == b"7" else "r-7")
    assert refusal["error"]["code"] == -32600
    assert refusal["error"]["data"] == {
        "errorCode": "frame_too_large",
        "frame_bytes": len(line),
        "max_frame_bytes": MIN_LINE_CAP,
    }
    assert pong == PONG
    assert end.owner.kinds == ["oversized"]
    assert end.owner.diagnostics[0].sample == line[:SAMPLE_BYTES]


@pytest.mark.parametrize("prefix", ["", "p"])
async def test_an_oversized_answer_fails_only_its_call(
    prefix: str, kind: Kind, wiring: Wiring
) -> None:
    end, stranger = wiring.peer(kind, max_line=MIN_LINE_CAP, prefix=prefix)
    calls = [end.peer.call("x") for _ in range(2)]
    identity = b'"p2"' if prefix else b"2"
    first = b'"p1"' if prefix else b"1"
    stranger.send(b'{"jsonrpc":"2.0","id":%b,"result":"%b"}\n' % (identity, b"y" * 300_000))
    with pytest.raises(PeerViolation, match=r"300,0.. bytes and the cap is 4,096"):
        await calls[1].future
    stranger.send(b'{"jsonrpc":"2.0","id":%b,"result":1}\n' % first)
    assert bytes(await calls[0].future) == b"1"


async def test_an_oversized_line_without_an_id_is_answered_by_a_server_if_it_is_a_request(
    wiring: Wiring,
) -> None:
    end, stranger = wiring.peer(max_line=MIN_LINE_CAP, answer_unreadable=True)
    end.echo()
    params = b"y" * 300_000
    stranger.send(
        b'{"jsonrpc":"2.0","method":"x","params":"%b","id":7}\n' % params,
        b'{"jsonrpc":"2.0","result":"%b","id":7}\n' % params,
        b"%b\n" % params,
        PING,
    )
    refusal, pong = await stranger.receive(2)
    assert (refusal["id"], refusal["error"]["data"]["errorCode"]) == (None, "frame_too_large")
    assert pong == PONG
    assert end.owner.kinds == ["oversized"] * 3


async def test_a_line_at_the_cap_of_16_mib_is_read_and_one_byte_more_is_not(
    kind: Kind, wiring: Wiring
) -> None:
    end, stranger = wiring.peer(kind)
    end.owner.answer = lambda request: end.peer.reply("r", b"%d" % len(end.owner.requests))
    start, tail = b'{"jsonrpc":"2.0","id":"r","method":"x","params":"', b'"}\n'
    room = MAX_LINE + 1 - len(start) - len(tail)
    stranger.send(start + b"y" * room + tail)
    assert (await stranger.receive(1))[0]["result"] == 1
    stranger.send(start + b"y" * (room + 1) + tail)
    refusal = (await stranger.receive(2))[1]
    assert refusal["error"]["data"]["frame_bytes"] == MAX_LINE + 1


# --- How lines come ---------------------------------------------------------------------------


async def test_blank_lines_crlf_and_a_bom_mean_nothing(kind: Kind, wiring: Wiring) -> None:
    end, stranger = wiring.peer(kind)
    end.echo()
    stranger.send(b"\xef\xbb\xbf", b"\n\r\n  \t\n", PING.replace(b"\n", b"\r\n"), b"\n", PING)
    assert await stranger.receive(2) == [PONG, PONG]
    assert end.owner.diagnostics == []


async def test_a_line_may_come_byte_by_byte(wiring: Wiring) -> None:
    end, _ = wiring.peer()
    line = '{"jsonrpc":"2.0","method":"żółć 🦜"}\r\n'.encode()
    for index in range(len(line)):
        end.peer.data_received(line[index : index + 1])
    assert [message.method for message in end.owner.notifications] == ["żółć 🦜"]


@pytest.mark.parametrize(
    "separator", ["\u2028", "\u2029", "\x85", "\v", "\f", "\x1c"], ids=lambda text: f"{ord(text):x}"
)
async def test_other_line_ends_do_not_split(separator: str, wiring: Wiring) -> None:
    end, _ = wiring.peer()
    escaped = separator if ord(separator) >= 0x80 else f"\\u{ord(separator):04x}"
    end.peer.data_received(f'{{"jsonrpc":"2.0","method":"a{escaped}b"}}\n'.encode())
    assert [message.method for message in end.owner.notifications] == [f"a{separator}b"]


async def test_departures_are_told_by_their_requirement(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    end.echo()
    stranger.send(b'{"id":1,"method":"x"}\n')
    await stranger.receive(1)
    assert [(d.kind, d.message[:9]) for d in end.owner.diagnostics] == [("tolerated", "WIRE-001:")]


async def test_strict_mode_refuses_them_by_their_requirement(wiring: Wiring) -> None:
    end, stranger = wiring.peer(strict=True)
    stranger.send(b'{"id":1,"method":"x"}\n')
    (answer,) = await stranger.receive(1)
    assert (answer["id"], answer["error"]["code"]) == (1, -32600)
    assert answer["error"]["message"].startswith("WIRE-001: ")
    assert end.owner.requests == []
