"""What a plugin gets to know when nexus over HTTP fails: the code of its chapter, and soon."""

import contextlib
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from aiohttp import web

from executa_host import Host, InvokeRefused, PluginSpec
from executa_host.nexus.http import HttpNexus, NexusTimeouts
from tests.host.conftest import raw_command
from tests.host.nexus_server import Reply, ScriptedNexus, answers, hangs, hangs_up, streams

GRANT = (
    b'{"grants":{"sampling":true,"agent":true,"storage":true,"files":true},'
    b'"granted_tools":["*"],"sampling_token":{"value":"s","expires_at":9999999999},'
    b'"storage_token":{"value":"k","expires_at":9999999999,"scopes":["tool"]}}'
)
MINTED = b'{"app_session_uuid":"u","token":"t","thread_id":"th","expires_at":9999999999}'
TEXT = {"role": "user", "content": {"type": "text", "text": "x"}}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "sampling": ("sampling/createMessage", {"messages": [TEXT], "maxTokens": 5}),
    "complete": ("agent/complete", {"prompt": "x", "max_tokens": 5}),
    "agent": ("agent/session.create", {"kind": "agent", "agent_submode": "auto"}),
    "storage": ("storage/set", {"key": "k", "scope": "tool", "value": 1}),
    "files": ("files/list", {"scope": "tool"}),
}
SHORT = NexusTimeouts(sampling=0.1, storage=0.1, create=0.1, run=0.3)


class Plugin:
    """A plugin over a nexus whose answers to its reverse calls are scripted."""

    def __init__(self, host: Host, server: ScriptedNexus) -> None:
        self.host = host
        self.server = server

    async def reverse(self, call: str) -> dict[str, Any]:
        method, params = CALLS[call]
        return await self.call(method, params)

    async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        outcome = await self.host.invoke("raw", "reverse", {"method": method, "params": params})
        return outcome.data

    async def run(self) -> dict[str, Any]:
        await self.reverse("agent")
        return await self.call("agent/session.run", {"app_session_uuid": "u", "content": "x"})


async def _no_pause(seconds: float) -> None:
    del seconds


@contextlib.asynccontextmanager
async def plugin_over(reply: Reply, *, run: Reply | None = None) -> AsyncGenerator[Plugin]:
    """`reply` answers reverse calls; with `run`, it answers runs and sessions can be made."""

    async def dispatch(request: web.Request) -> web.StreamResponse:
        if "/executa/invokes" in request.path:
            return await answers(GRANT)(request)
        if run is not None:
            if request.path.endswith("/from_sampling"):
                return await answers(MINTED)(request)
            if request.path.endswith("/copilot/app/agent"):
                return await run(request)
        return await reply(request)

    async with ScriptedNexus(dispatch) as server:
        nexus = HttpNexus(server.url, timeouts=SHORT, pause=_no_pause)
        async with Host(nexus, closes_nexus=True) as host:
            host.add(PluginSpec(name="raw", command=raw_command()))
            yield Plugin(host, server)


@pytest.mark.parametrize(
    ("reply", "codes"),
    [
        (answers(status=500), (-32003, -32046, -32046, -32029, -32029)),
        (answers(status=429), (-32002, -32046, -32046, -32026, -32026)),
        (answers(status=401), (-32018, -32018, -32018, -32018, -32018)),
        (answers(b"<html>", status=200), (-32003, -32046, -32046, -32029, -32029)),
        (hangs_up(), (-32003, -32046, -32046, -32029, -32029)),
        (hangs(), (-32005, -32046, -32046, -32030, -32030)),
    ],
    ids=["500", "429", "401", "nonsense", "hangs up", "slow"],
)
async def test_a_failure_has_the_code_of_its_chapter(reply: Reply, codes: tuple[int, ...]) -> None:
    async with plugin_over(reply) as plugin:
        told = [(await plugin.reverse(call))["error"]["code"] for call in CALLS]
        assert tuple(told) == codes


@pytest.mark.parametrize(
    ("run", "code", "words"),
    [
        (answers(status=500), -32046, "500"),
        (answers(status=401), -32018, "401"),
        (streams(b'data: {"event":"delta","text":"a"}\n\n', end="cut"), -32046, "cut"),
        (streams(b'data: {"event":"delta","text":"a"}\n\n'), -32046, "before the run's final"),
        (streams(end="never"), -32046, "within 0.3 s"),
        (streams(b'data: {"event":"error","code":"x","message":"sorry"}\n\n'), -32046, "sorry"),
    ],
    ids=["500", "401", "cut", "without an end", "slow", "failed"],
)
async def test_a_run_that_fails_is_an_agent_error(run: Reply, code: int, words: str) -> None:
    async with plugin_over(answers(b'{"cancelled":true}'), run=run) as plugin:
        error = (await plugin.run())["error"]
        assert error["code"] == code
        assert words in error["message"]


async def test_malformed_events_are_skipped() -> None:
    stream = (
        b'data: {"event":"delta","text":"\xff\n\n'
        b'data: {"event":"delta","text":"ok"}\n\n'
        b"data: nonsense\n\n"
        b'data: {"event":7}\n\n'
        b'data: {"event":"final","text":"ok"}\n\n'
    )  # fmt: skip
    async with plugin_over(answers(), run=streams(stream)) as plugin:
        result = (await plugin.run())["result"]
        assert [frame["event"] for frame in result["frames"]] == ["delta", "final"]
        assert result["final"]["text"] == "ok"


async def test_a_nexus_that_is_down_refuses_the_invoke_and_says_where_it_was_looked_for() -> None:
    async with ScriptedNexus(answers()) as server:
        url = server.url
    async with Host(HttpNexus(url, pause=_no_pause), closes_nexus=True) as host:
        host.add(PluginSpec(name="raw", command=raw_command()))
        with pytest.raises(InvokeRefused, match=r"cannot be reached at 127\.0\.0\.1"):
            await host.invoke("raw", "echo", {"value": {}})


async def test_a_key_that_nexus_refuses_is_no_fault_of_the_plugin() -> None:
    async with (
        ScriptedNexus(answers(status=401)) as server,
        Host(HttpNexus(server.url), closes_nexus=True) as host,
    ):
        host.add(PluginSpec(name="raw", command=raw_command()))
        with pytest.raises(InvokeRefused, match="EXECUTA_NEXUS_KEY") as refused:
            await host.invoke("raw", "echo", {"value": {}})
    assert refused.value.symbol == "INTERNAL_ERROR"


async def test_what_is_between_plugin_and_host_does_not_reach_nexus() -> None:
    method, params = CALLS["sampling"]
    async with plugin_over(answers(status=422)) as plugin:
        await plugin.call(method, {**params, "_clientTimeoutS": 40, "context": {}})
        asked = next(seen for seen in plugin.server.seen if seen.path.endswith("/sampling"))
        assert json.loads(asked.body).keys() == {"messages", "maxTokens"}
