"""Lines that are read in one step mean what they mean on the long way, and so do all others."""

import random
import re
from typing import Any, Literal

import msgspec
import pytest
from msgspec import Struct

from executa_protocol.aio.transport import Receiver
from executa_sdk import Context, Plugin
from executa_sdk.binding import get_current_invoke_id
from executa_sdk.plainloop import PlainLoop
from executa_sdk.quick import QuickReader
from executa_sdk.server import Server

OFTEN = 8


class Wire:
    """A transport that keeps what is written."""

    queued = taken = 0
    congested = False

    def __init__(self) -> None:
        self.loop: Any = PlainLoop()
        self.outgoing = self
        self.frames: list[bytes] = []

    def write(self, frame: bytes) -> None:
        self.frames.append(frame)

    def withdraw(self, position: int) -> bool:
        del position
        return False

    def start(self, receiver: Receiver) -> None:
        del receiver

    def poll(self) -> None:
        return

    pause_reading = resume_reading = close_writing = close = poll


class Point(Struct):
    """A record, which a decoder may read in part."""

    x: int = 0


plugin = Plugin("quick")


@plugin.tool(inline=True)
def flat(text: str, count: int = 1, part: float | None = None) -> list[Any]:
    return [text, count, part, get_current_invoke_id()]


@plugin.tool(inline=True)
def nested(values: list[Any], kind: Literal["a", "b"] = "a") -> list[Any]:
    return [values, kind]


@plugin.tool(inline=True)
def record(point: Point) -> int:
    return point.x


@plugin.tool(inline=True)
def asks(ctx: Context, text: str) -> list[Any]:
    return [text, ctx.invoke_id, ctx.deadline, dict(ctx.credentials)]


CALLS = {
    "flat": b'{"text":"tea","count":3,"part":0.5}',
    "nested": b'{"values":[1,{"a":[2.5,"x"]}],"kind":"b"}',
    "record": b'{"point":{"x":3}}',
    "asks": b'{"text":"tea"}',
}


def line(tool: str, arguments: bytes, identity: bytes = b"7") -> bytes:
    """An invoke as our host writes it."""
    return (
        b'{"jsonrpc":"2.0","id":%b,"method":"invoke","params":{"tool":"%b","arguments":%b,'
        b'"context":{"invoke_id":"c0ffee","deadline_ms":1760000000000},"invoke_id":"c0ffee"}}\n'
        % (identity, tool.encode(), arguments)
    )


def served(*, quick: bool) -> tuple[Server, Wire]:
    """A server whose tools have all been called often, or that never takes the quick way."""
    wire = Wire()
    server = Server(plugin, b"{}", wire)
    server.open()
    if not quick:
        server.peer.quick = None
    for tool, arguments in CALLS.items() if quick else ():
        for _ in range(OFTEN):
            server.peer.data_received(line(tool, arguments))
    wire.frames.clear()
    return server, wire


LONG_WAY, LONG_WIRE = served(quick=False)
QUICK_WAY, QUICK_WIRE = served(quick=True)


def answers(server: Server, wire: Wire, data: bytes) -> list[bytes]:
    server.peer.data_received(data)
    frames, wire.frames = wire.frames, []
    return [re.sub(rb'"duration_ms":[0-9.]+', b'"duration_ms":0', frame) for frame in frames]


def same(data: bytes) -> list[bytes]:
    """What both ways answer to a line."""
    expected = answers(LONG_WAY, LONG_WIRE, data)
    assert answers(QUICK_WAY, QUICK_WIRE, data) == expected, data
    return expected


def is_quick(data: bytes) -> bool:
    return QUICK_WAY._quick.read(data) is not None  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("tool", ["flat", "nested", "asks"])
def test_an_ordinary_invoke_takes_the_quick_way(tool: str) -> None:
    assert is_quick(line(tool, CALLS[tool]))
    assert b'"success":true' in same(line(tool, CALLS[tool]))[0]


def test_a_tool_takes_it_once_it_has_been_called_often() -> None:
    reader = QuickReader()
    for _ in range(OFTEN):
        assert reader.read(line("flat", CALLS["flat"])) is None
        reader.note(plugin.tools["flat"])
    assert reader.read(line("flat", CALLS["flat"])) is not None


ODD = [
    line("record", CALLS["record"]),
    line("record", b'{"point":{"x":3,"y":1e999}}'),
    line("flat", b'{"text":"a","text":"b"}'),
    line("flat", b'{"text":1e999,"text":"b"}'),
    line("flat", b'{"text":"a","part":1e999}'),
    line("flat", b'{"text":"a","count":1.5}'),
    line("flat", b'{"text":"a","count":%b}' % (b"9" * 30)),
    line("flat", b'{"text":"a","count":%b}' % (b"9" * 5000)),
    line("flat", b'{"text":"a","more":1}'),
    line("flat", b"{}"),
    line("flat", b"null"),
    line("flat", b"[]"),
    line("flat", b"0").replace(b'"arguments":0,', b""),
    line("asks", b"0").replace(b'"arguments":0,', b""),
    line("flat", b'{"text":"\\ud800"}'),
    line("flat", b'{"text":"\\u00e9\xc3\xa9"}'),
    line("flat", b'{"text":"\xff"}'),
    line("flat", b'{"text":"' + b"[" * 1000 + b'"}'),
    line("nested", b'{"values":%b%b}' % (b"[" * 124, b"]" * 124)),
    line("nested", b'{"values":%b%b}' % (b"[" * 125, b"]" * 125)),
    line("nested", b'{"values":%b%b}' % (b"[" * 126, b"]" * 126)),
    line("nested", b'{"values":%b%b}' % (b"[" * 3000, b"]" * 3000)),
    line("nested", b'{"values":[1e999]}'),
    line("nested", b'{"values":[NaN]}'),
    line("nested", b'{"values":[],"kind":"c"}'),
    line("none", b"{}"),
    line("flat", CALLS["flat"], b"1.0"),
    line("flat", CALLS["flat"], b"true"),
    line("flat", CALLS["flat"], b"null"),
    line("flat", CALLS["flat"], b'"x"'),
    line("flat", CALLS["flat"], b"9" * 40),
    line("flat", CALLS["flat"]).replace(b'"2.0"', b'"1.0"'),
    line("flat", CALLS["flat"]).replace(b'"jsonrpc":"2.0",', b""),
    line("flat", CALLS["flat"]).replace(b"1760000000000", b"1e999"),
    line("flat", CALLS["flat"]).replace(b"1760000000000", b"null"),
    line("flat", CALLS["flat"]).replace(b'"invoke_id":"c0ffee"}}', b'"old":1e999}}'),
    line("flat", CALLS["flat"]).replace(b'"invoke_id":"c0ffee"}}', b'"old":1}}'),
    line("flat", CALLS["flat"]).replace(b'"params"', b'"result":1e999,"params"'),
    line("flat", CALLS["flat"]).replace(b'"arguments"', b'"arguments":1e999,"arguments"'),
    line("flat", CALLS["flat"]).replace(b'"arguments"', b'"arguments":{"text":"x"},"arguments"'),
    line("flat", CALLS["flat"]).replace(b'"tool":"flat"', b'"tool":"flat","tool":"nested"'),
    line("flat", CALLS["flat"]).replace(b'"context":{', b'"context":{"credentials":{"A":"b"},'),
    line("asks", CALLS["asks"]).replace(b'"context":{', b'"context":{"credentials":{"A":"b"},'),
    line("flat", CALLS["flat"]).replace(b'"context":{', b'"context":{"new":1e999,'),
    line("flat", CALLS["flat"]).replace(b"\n", b"\r\n"),
    line("flat", CALLS["flat"]).replace(b"\n", b" x\n"),
    line("flat", CALLS["flat"]).replace(b":", b": "),
    line('flat","arguments":{"text":"a"},"x":"', CALLS["flat"]),
]


@pytest.mark.parametrize("data", ODD)
def test_odd_lines_mean_what_they_mean_on_the_long_way(data: bytes) -> None:
    same(data)


def test_lines_with_random_faults_mean_what_they_mean_on_the_long_way() -> None:
    dice = random.Random(7)  # noqa: S311 - no secret
    pieces = [b'"', b"}", b"{", b",", b"1e999", b"\\", b"\xff", b"[", b" ", b"null", b"0"]
    for _ in range(4_000):
        tool = dice.choice(list(CALLS))
        data = line(tool, CALLS[tool])[:-1]
        for _ in range(dice.choice((0, 1, 1, 2))):
            at = dice.randrange(len(data))
            data = data[:at] + dice.choice(pieces) + data[at + dice.randrange(3) :]
        same(data.replace(b"\n", b" ") + b"\n")


def test_an_id_that_is_open_is_refused_on_both_ways() -> None:
    for server, wire in ((LONG_WAY, LONG_WIRE), (QUICK_WAY, QUICK_WIRE)):
        assert server.peer.admit(9)  # as of a tool that is slow
        refusal = msgspec.json.decode(answers(server, wire, line("flat", CALLS["flat"], b"9"))[0])
        assert refusal["error"]["data"]["errorCode"] == "DUPLICATE_REQUEST_ID"
        server.peer.reply(9, b"{}")
