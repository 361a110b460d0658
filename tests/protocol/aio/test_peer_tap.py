"""The tap: sees every line as it crosses, and cannot change what happens."""

import asyncio
from typing import Any

from tests.protocol.aio.conftest import Wiring
from tests.protocol.aio.wires import Kind


async def test_a_tap_sees_every_line_of_both_directions(kind: Kind, wiring: Wiring) -> None:
    seen: list[tuple[str, bytes]] = []

    def tap(direction: str, line: bytes) -> None:
        seen.append((direction, line))

    end, stranger = wiring.peer(kind, tap=tap)
    end.echo()
    stranger.send(b"noise\r\n", b'{"jsonrpc":"2.0","id":7,"method":"x"}\n')
    await stranger.receive(1)
    call = end.peer.call("y")
    stranger.send(b'{"jsonrpc":"2.0","id":1,"result":1}\n')
    await call.future
    assert seen == [
        ("in", b"noise\r\n"),
        ("in", b'{"jsonrpc":"2.0","id":7,"method":"x"}\n'),
        ("out", b'{"jsonrpc":"2.0","id":7,"result":null}\n'),
        ("out", b'{"jsonrpc":"2.0","id":1,"method":"y"}\n'),
        ("in", b'{"jsonrpc":"2.0","id":1,"result":1}\n'),
    ]


async def test_a_tap_that_fails_is_taken_off_and_told_of(wiring: Wiring) -> None:
    faults: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))

    def failing(direction: str, line: bytes) -> None:
        raise OSError("no space left")

    end, stranger = wiring.peer(tap=failing)
    end.echo()
    stranger.send(b'{"jsonrpc":"2.0","id":7,"method":"x"}\n')
    await stranger.receive(1)
    assert [str(fault["exception"]) for fault in faults] == ["no space left"]
