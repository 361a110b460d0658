"""This host behind the conformance kit's adapter protocol: commands in, answers out."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from executa_host.adapter.commands import AnyCommand, Failure, Kind, Pace, ToolAnswer
from executa_host.adapter.session import SERVES, Session
from executa_nexus_stub import create
from executa_nexus_stub.http.server import NexusServer
from tests.host.conftest import raw_command

Object = dict[str, Any]


class Kit:
    """The other side: gives commands and takes answers."""

    def __init__(self) -> None:
        self.lines: list[Object] = []
        self._told = asyncio.Event()
        self.session = Session(self._take)

    def _take(self, line: bytes) -> None:
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        self.lines.append(msgspec.json.decode(line))
        self._told.set()

    def say(self, **command: Any) -> None:
        """Give a command."""
        self.session.take(msgspec.json.encode(command))

    async def answer(self, identity: int | None) -> Object:
        """The answer to a command."""
        async with asyncio.timeout(20):
            while True:
                for line in self.lines:
                    if line["id"] == identity and "progress" not in line:
                        return line
                self._told.clear()
                await self._told.wait()

    async def ask(self, identity: int, **command: Any) -> Object:
        """Give a command and wait for its answer."""
        self.say(id=identity, **command)
        return await self.answer(identity)


@asynccontextmanager
async def kit(**hello: Any) -> AsyncGenerator[Kit]:
    """A conversation that has begun, over a stub."""
    stub = create({})
    kit = Kit()
    async with NexusServer(stub) as server:
        try:
            nexus = {"url": server.url, "key": "k"}
            begun = await kit.ask(0, op="hello", adapter=1, nexus=nexus, **hello)
            assert begun["ok"]["name"] == "executa-host"
            yield kit
        finally:
            await kit.session.close()
            await stub.aclose()


async def test_a_plugin_is_started_invoked_and_stopped() -> None:
    async with kit() as one:
        started = await one.ask(1, op="start", plugin="raw", command=raw_command())
        assert started["ok"] == {"protocol": "2.0"}
        arguments = {"value": {"n": 2**63 + 1, "t": "\u2028"}}
        said = await one.ask(2, op="invoke", plugin="raw", tool="echo", arguments=arguments)
        assert said["ok"] == {"success": True, "data": arguments, "error": ""}
        assert (await one.ask(3, op="stop", plugin="raw"))["ok"] == {}


async def test_a_cancelled_invoke_says_what_became_of_it() -> None:
    async with kit(pace={"cancel": 0.1}) as one:
        await one.ask(1, op="start", plugin="raw", command=raw_command())
        one.say(id=2, op="invoke", plugin="raw", tool="hang")
        cancelled = await one.ask(3, op="cancel", invoke=2, reason="enough")
        assert cancelled["ok"]["outcome"] in ("confirmed", "unanswered")
        assert (await one.answer(2))["error"]["kind"] == "cancelled"


async def test_what_does_not_start_is_told_as_that() -> None:
    async with kit() as one:
        failed = await one.ask(1, op="start", plugin="none", command=["/no/such/program"])
        assert failed["error"]["kind"] == "start"


async def test_a_time_out_and_an_unknown_plugin_are_told_apart() -> None:
    async with kit() as one:
        await one.ask(1, op="start", plugin="raw", command=raw_command())
        late = await one.ask(2, op="invoke", plugin="raw", tool="hang", timeout=0.1)
        assert late["error"]["kind"] == "timeout"
        unknown = await one.ask(3, op="invoke", plugin="nobody", tool="echo")
        assert unknown["error"]["kind"] == "usage"


async def test_the_pace_is_kept_and_told() -> None:
    kit = Kit()
    nexus = {"url": "http://127.0.0.1:1"}
    begun = await kit.ask(0, op="hello", adapter=1, nexus=nexus, pace={"stop": 0.5, "restart": 0.1})
    assert begun["ok"]["pace"] == {
        "initialize": 5.0,
        "describe": 5.0,
        "health": 3.0,
        "stop": 0.5,
        "cancel": 5.0,
        "restart": 0.1,
    }
    await kit.session.close()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ({"op": "start", "plugin": "a", "command": ["x"]}, "first command is hello"),
        ({"op": "hello", "adapter": 2}, "adapter protocol 2"),
        ({"op": "hello", "adapter": 1}, "address of a nexus"),
        ({"op": "hello", "adapter": 1, "nexus": {"url": "here"}}, "address of nexus"),
        (
            {"op": "hello", "adapter": 1, "nexus": {"url": "http://h"}, "pace": {"stop": 0}},
            "seconds above 0",
        ),
        ({"op": "dance"}, "dance"),
        ({"op": "stop"}, "plugin"),
    ],
    ids=["no hello", "version", "no nexus", "no address", "no time", "unknown", "missing member"],
)
async def test_a_wrong_command_is_answered_with_what_is_wrong(command: Object, words: str) -> None:
    kit = Kit()
    failed = await kit.ask(5, **command)
    assert failed["error"]["kind"] == "usage"
    assert words in failed["error"]["message"]
    await kit.session.close()


async def test_a_line_that_is_no_command_is_answered_without_an_id() -> None:
    kit = Kit()
    kit.session.take(b"dance\n")
    kit.session.take(b"\n")
    assert (await kit.answer(None))["error"]["kind"] == "usage"
    assert len(kit.lines) == 1


async def test_what_is_under_way_is_answered_before_the_end() -> None:
    async with kit() as one:
        await one.ask(1, op="start", plugin="raw", command=raw_command())
        one.say(id=2, op="invoke", plugin="raw", tool="hang")
        await asyncio.sleep(0)
    assert "error" in await one.answer(2)


def test_every_word_of_the_protocol_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/conformance/host-adapter.md").read_text()
    words = {
        *(kind.__struct_config__.tag for kind in get_args(AnyCommand)),
        *(field for kind in get_args(AnyCommand) for field in kind.__struct_encode_fields__),
        *get_args(Kind),
        *Failure.__struct_fields__,
        *ToolAnswer.__struct_fields__,
        *Pace.__struct_fields__,
        *SERVES,
    }
    assert [word for word in sorted(map(str, words)) if f"`{word}`" not in page] == []
