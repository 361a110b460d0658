"""Answers that come by file: loaded beside the reader, each failing alone (R-12)."""

import asyncio
from typing import Any

import pytest

from executa_protocol.envelope import Message, parse
from executa_protocol.errors import CallTimeout, ConnectionLost, PeerViolation, RpcError
from tests.protocol.aio.conftest import Wiring
from tests.protocol.aio.wires import Changing, Kind, Stranger


class Loader(Changing):
    """Files in memory; each load waits until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, Any] = {}
        self.asked: list[str] = []
        self.ended: list[str] = []
        self.go = asyncio.Event()

    async def load(self, pointer: Message) -> Message:
        path = str(pointer.pointer)
        self.asked.append(path)
        self.changed()
        try:
            await self.go.wait()
        finally:
            self.ended.append(path)
            self.changed()
        content = self.files[path]
        if isinstance(content, Exception):
            raise content
        message = parse(content)
        assert isinstance(message, Message)
        return message


def point(stranger: Stranger, identity: Any, path: str) -> None:
    """Answer with a file."""
    stranger.send({"jsonrpc": "2.0", "id": identity, "__file_transport": path})


async def test_an_answer_by_file_is_the_files_and_says_so(kind: Kind, wiring: Wiring) -> None:
    loader = Loader()
    end, stranger = wiring.peer(kind, load_pointer=loader.load)
    call, inline = end.peer.call("x"), end.peer.call("x")
    loader.files["/a"] = b'{"jsonrpc":"2.0","id":1,"result":{"big":1.10}}'
    point(stranger, 1, "/a")
    stranger.send({"jsonrpc": "2.0", "id": 2, "result": 2})
    assert bytes(await inline.future) == b"2"  # the reader has not waited
    assert end.peer.pending_count == 1
    loader.go.set()
    assert bytes(await call.future) == b'{"big":1.10}'
    assert (call.by_file, inline.by_file) == (True, False)
    assert end.peer.pending_count == 0


async def test_a_file_over_several_lines_gives_one_line(wiring: Wiring) -> None:
    loader = Loader()
    loader.go.set()
    end, stranger = wiring.peer(load_pointer=loader.load)
    call = end.peer.call("x")
    loader.files["/a"] = (
        b'{\n  "jsonrpc": "2.0",\n  "id": 1,\n  "result": [1.10,\n    "a\\nb"]\n}\n'
    )
    point(stranger, 1, "/a")
    assert bytes(await call.future) == b'[1.10,"a\\nb"]'


async def test_an_error_by_file_is_the_error(wiring: Wiring) -> None:
    loader = Loader()
    loader.go.set()
    end, stranger = wiring.peer(load_pointer=loader.load)
    call = end.peer.call("x")
    loader.files["/a"] = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"broken"}}'
    point(stranger, 1, "/a")
    with pytest.raises(RpcError, match="broken"):
        await call.future


@pytest.mark.parametrize("key", ["__file_transport", "__trans_file__"])
async def test_a_file_that_cannot_be_used_fails_its_call_alone(key: str, wiring: Wiring) -> None:
    loader = Loader()
    loader.go.set()
    end, stranger = wiring.peer(load_pointer=loader.load)
    call, other = end.peer.call("x"), end.peer.call("x")
    loader.files["/a"] = PermissionError("not yours")
    stranger.send({"jsonrpc": "2.0", "id": 1, key: "/a"})
    with pytest.raises(PeerViolation, match="cannot be used: not yours"):
        await call.future
    stranger.send({"jsonrpc": "2.0", "id": 2, "result": 2})
    assert bytes(await other.future) == b"2"


async def test_a_loader_that_gives_no_response_fails_the_call(wiring: Wiring) -> None:
    async def load(pointer: Message) -> Message:
        return pointer

    end, stranger = wiring.peer(load_pointer=load)
    call = end.peer.call("x")
    point(stranger, 1, "/a")
    with pytest.raises(PeerViolation, match="holds no response"):
        await call.future


async def test_a_loader_that_fails_before_it_awaits_fails_the_call(wiring: Wiring) -> None:
    def load(pointer: Message) -> Any:
        raise ValueError("at once")

    end, stranger = wiring.peer(load_pointer=load)
    call = end.peer.call("x")
    point(stranger, 1, "/a")
    with pytest.raises(PeerViolation, match="at once"):
        await call.future


async def test_a_pointer_that_nobody_offered_fails_its_call(wiring: Wiring) -> None:
    end, stranger = wiring.peer()
    call = end.peer.call("x")
    point(stranger, 1, "/a")
    with pytest.raises(PeerViolation, match="not offered"):
        await call.future
    assert end.peer.pending_count == 0


async def test_a_pointer_to_nobody_is_not_followed(wiring: Wiring) -> None:
    loader = Loader()
    end, stranger = wiring.peer(load_pointer=loader.load)
    point(stranger, "r-1", "/a")
    await end.owner.until(lambda: end.peer.counts["stray"])
    assert loader.asked == []
    assert end.owner.requests == []


async def test_a_second_answer_while_the_file_is_read_is_a_duplicate(wiring: Wiring) -> None:
    loader = Loader()
    end, stranger = wiring.peer(load_pointer=loader.load)
    call = end.peer.call("x")
    loader.files["/a"] = b'{"jsonrpc":"2.0","id":1,"result":"file"}'
    point(stranger, 1, "/a")
    stranger.send({"jsonrpc": "2.0", "id": 1, "result": "inline"})
    point(stranger, 1, "/b")
    stranger.send(b'{"jsonrpc":"2.0","id":1,"result":NaN}\n')
    await end.owner.until(lambda: end.peer.counts["unreadable"])
    assert end.owner.kinds == ["stray", "stray", "unreadable"]
    loader.go.set()
    assert bytes(await call.future) == b'"file"'
    assert loader.asked == ["/a"]


async def test_a_file_that_takes_too_long_times_out_and_its_load_is_given_up(
    wiring: Wiring,
) -> None:
    loader = Loader()
    end, stranger = wiring.peer(load_pointer=loader.load)
    call = end.peer.call("x", None, 0.05)
    point(stranger, 1, "/a")
    with pytest.raises(CallTimeout):
        await call.future
    await loader.until(lambda: loader.asked == loader.ended == ["/a"])
    assert end.peer.pending_count == 0


async def test_a_call_that_is_forgotten_takes_its_load_with_it(wiring: Wiring) -> None:
    loader = Loader()
    end, stranger = wiring.peer(load_pointer=loader.load)
    call = end.peer.call("x")
    point(stranger, 1, "/a")
    await loader.until(lambda: loader.asked)
    end.peer.forget(call)
    await loader.until(lambda: loader.ended)
    assert end.peer.pending_count == 0


@pytest.mark.parametrize("side", ["this", "other"])
async def test_the_end_while_a_file_is_read_fails_the_call_and_the_load(
    side: str, kind: Kind, wiring: Wiring
) -> None:
    loader = Loader()
    end, stranger = wiring.peer(kind, load_pointer=loader.load)
    call = end.peer.call("x")
    point(stranger, 1, "/a")
    await loader.until(lambda: loader.asked)
    if side == "this":
        end.peer.close()
    else:
        stranger.transport.close()
    with pytest.raises(ConnectionLost) as caught:
        await call.future
    assert caught.value.written is True
    assert end.peer.lost_calls == 1
    await loader.until(lambda: loader.ended == ["/a"])


async def test_a_load_that_somebody_cancels_fails_its_call(wiring: Wiring) -> None:
    loader = Loader()
    end, stranger = wiring.peer(load_pointer=loader.load)
    before = asyncio.all_tasks()
    call = end.peer.call("x")
    point(stranger, 1, "/a")
    await loader.until(lambda: loader.asked)
    (task,) = asyncio.all_tasks() - before
    task.cancel()
    with pytest.raises(PeerViolation, match="cancelled"):
        await call.future
