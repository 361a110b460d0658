"""Calls: what each way of running gives, how each failure is answered, and what stays apart."""

import asyncio
import math
import threading
from typing import Any

import pytest

from executa_protocol.errors import RpcError
from executa_sdk import Plugin, SyncContext, ToolError
from executa_sdk.testing import TestHost


def sample_plugin() -> Plugin:
    plugin = Plugin("sample", "1.0.0")

    @plugin.tool
    async def task(text: str) -> str:
        return text

    @plugin.tool
    def thread(text: str) -> str:
        return f"{text} in {threading.current_thread().name}"

    @plugin.tool(inline=True)
    def inline(text: str) -> str:
        return f"{text} in {threading.current_thread().name}"

    @plugin.tool
    async def fails(kind: str) -> Any:
        if kind == "domain":
            raise ToolError("the shelf is empty", {"shelf": 3})
        if kind == "exit":
            raise SystemExit(3)
        if kind == "interrupt":
            raise KeyboardInterrupt
        if kind == "nan":
            return math.nan
        if kind == "object":
            return object()
        if kind == "cycle":
            cycle: list[Any] = []
            cycle.append(cycle)
            return cycle
        if kind == "surrogate":
            return "\ud800"
        if kind == "bad data":
            raise ToolError("odd", object())
        raise ValueError("no such kind")

    @plugin.tool
    def fails_in_a_thread(kind: str) -> Any:
        return asyncio.run(fails(kind))

    @plugin.tool(inline=True)
    def fails_inline(kind: str) -> Any:
        try:
            fails(kind).send(None)
        except StopIteration as end:
            return end.value

    return plugin


FAILING = ("fails", "fails_in_a_thread", "fails_inline")


async def test_every_way_of_running_gives_what_the_function_returned() -> None:
    async with TestHost(sample_plugin()) as host:
        assert await host.invoke("task", text="a") == "a"
        assert (await host.invoke("thread", text="b")).startswith("b in executa-tool")
        assert await host.invoke("inline", text="c") == "c in MainThread"


async def test_a_result_is_wrapped_with_its_duration() -> None:
    async with TestHost(sample_plugin()) as host:
        raw = await host.peer.request("invoke", b'{"tool":"task","arguments":{"text":"a"}}')

    assert bytes(raw).startswith(b'{"success":true,"data":"a","duration_ms":')


@pytest.mark.parametrize("tool", FAILING)
async def test_a_tool_error_is_a_failure_in_words(tool: str) -> None:
    async with TestHost(sample_plugin()) as host:
        with pytest.raises(ToolError, match="the shelf is empty") as caught:
            await host.invoke(tool, kind="domain")

    assert caught.value.data == {"shelf": 3}


@pytest.mark.parametrize("tool", FAILING)
async def test_a_crash_is_an_internal_error_with_its_story_on_stderr(
    tool: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async with TestHost(sample_plugin()) as host:
        with pytest.raises(RpcError, match="ValueError: no such kind") as caught:
            await host.invoke(tool, kind="other")

    assert caught.value.code == -32603
    assert caught.value.symbol == "INTERNAL_ERROR"
    assert "Traceback" not in caught.value.message
    told = capfd.readouterr().err
    assert "Traceback" in told
    assert 'raise ValueError("no such kind")' in told


@pytest.mark.parametrize("tool", ["fails", "fails_inline"])
@pytest.mark.parametrize("kind", ["exit", "interrupt"])
async def test_a_tool_cannot_end_the_process(tool: str, kind: str) -> None:
    async with TestHost(sample_plugin()) as host:
        with pytest.raises(RpcError, match=r"SystemExit|KeyboardInterrupt"):
            await host.invoke(tool, kind=kind)
        assert await host.invoke("task", text="still here") == "still here"


@pytest.mark.parametrize("tool", FAILING)
@pytest.mark.parametrize("kind", ["nan", "object", "cycle", "surrogate", "bad data"])
async def test_a_result_that_json_cannot_hold_is_an_error_of_that_call(
    tool: str, kind: str
) -> None:
    async with TestHost(sample_plugin()) as host:
        with pytest.raises(RpcError, match="NotEncodable") as caught:
            await host.invoke(tool, kind=kind)
        assert caught.value.code == -32603
        assert await host.invoke("task", text="a") == "a"


async def test_a_plain_function_that_returns_a_coroutine_is_told_to_be_async() -> None:
    plugin = Plugin("a")

    async def later() -> int:
        return 1

    @plugin.tool
    def tool() -> Any:
        return later()

    async with TestHost(plugin) as host:
        with pytest.raises(RpcError, match="async def"):
            await host.invoke("tool")
    assert tool is not None


async def test_an_unknown_tool_is_refused_with_the_ones_there_are() -> None:
    async with TestHost(sample_plugin()) as host:
        with pytest.raises(RpcError) as caught:
            await host.invoke("tusk")

    assert caught.value.code == -32601
    assert caught.value.data["available_tools"] == [
        "task",
        "thread",
        "inline",
        "fails",
        "fails_in_a_thread",
        "fails_inline",
    ]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "text"),
        ({"text": "a", "more": 1}, "more"),
        ({"text": 1}, "text"),
        (["a"], "arguments"),
        ("a", "arguments"),
    ],
)
async def test_bad_arguments_are_refused_before_the_tool_runs(arguments: Any, named: str) -> None:
    async with TestHost(sample_plugin()) as host:
        with pytest.raises(RpcError, match=named) as caught:
            await host.call("task", arguments)

    assert caught.value.code == -32602
    assert caught.value.data["path"] == named


@pytest.mark.parametrize(
    ("params", "named"),
    [
        (None, "tool"),
        (b"{}", "tool"),
        (b'{"tool":7}', "tool"),
        (b'{"tool":""}', "tool"),
        (b"[]", ""),
        (b'{"tool":"task","context":[]}', "context"),
        (b'{"tool":"task","context":{"credentials":{"A":1}}}', "context.credentials"),
    ],
)
async def test_bad_params_are_refused(params: bytes | None, named: str) -> None:
    async with TestHost(sample_plugin()) as host:
        with pytest.raises(RpcError) as caught:
            await host.peer.request("invoke", params)

    assert caught.value.code == -32602
    assert named in caught.value.message


async def test_an_unknown_method_is_refused_and_shutdown_is_answered() -> None:
    async with TestHost(sample_plugin()) as host:
        with pytest.raises(RpcError) as caught:
            await host.peer.request("tools/list")
        assert caught.value.code == -32601
        assert bytes(await host.peer.request("shutdown")) == b"{}"
        assert await host.invoke("task", text="a") == "a"


async def test_health_counts_the_calls_in_flight() -> None:
    plugin, entered, leave = Plugin("a"), asyncio.Event(), asyncio.Event()

    @plugin.tool
    async def wait() -> None:
        entered.set()
        await leave.wait()

    async with TestHost(plugin) as host:
        running = host.start("wait")
        await entered.wait()
        busy = bytes(await host.peer.request("health"))
        leave.set()
        await running.result()
        free = bytes(await host.peer.request("health"))

    assert busy == b'{"status":"ready","message":"","details":{"in_flight":1}}'
    assert free == b'{"status":"ready","message":"","details":{"in_flight":0}}'
    assert wait is not None


async def test_a_blocked_thread_holds_up_nobody() -> None:
    plugin, leave = Plugin("a"), threading.Event()

    @plugin.tool
    def block() -> str:
        leave.wait(20)
        return "free"

    @plugin.tool
    async def task() -> str:
        return "quick"

    async with TestHost(plugin) as host:
        blocked = [host.start("block") for _ in range(40)]
        assert await host.invoke("task") == "quick"
        leave.set()
        assert [await call.result() for call in blocked] == ["free"] * 40
    assert block is not task


async def test_calls_run_side_by_side_and_keep_their_answers_apart() -> None:
    plugin, gate = Plugin("a"), asyncio.Event()

    @plugin.tool
    async def task(number: int) -> int:
        if number == 199:
            gate.set()
        await gate.wait()
        return number

    @plugin.tool
    def thread(number: int) -> int:
        return number

    async with TestHost(plugin) as host:
        results = await asyncio.gather(
            *(host.invoke(name, number=n) for n in range(200) for name in ("task", "thread"))
        )

    assert results == [n for n in range(200) for _ in range(2)]
    assert task is not thread


async def test_two_calls_of_one_invoke_id_are_both_answered() -> None:
    async with TestHost(sample_plugin()) as host:
        params = b'{"tool":"%s","arguments":{"text":"a"},"context":{"invoke_id":"same"}}'
        first = host.peer.request("invoke", params % b"task")
        second = host.peer.request("invoke", params % b"thread")
        answers = await asyncio.gather(first, second)

    assert all(b'"success":true' in bytes(answer) for answer in answers)


async def test_a_nested_call_gets_a_thread_when_all_are_taken() -> None:
    """A plain function may wait for an agent run that calls this very plugin (R-36)."""
    plugin, barrier = Plugin("self"), threading.Barrier(32)

    @plugin.tool
    def outer(ctx: SyncContext) -> list[Any]:
        barrier.wait(20)  # now every thread of the pool is taken
        with ctx.agent() as session:
            return [frame for frame in session.run("go") if frame["event"] == "tool_result"]

    @plugin.tool
    def inner(word: str) -> str:
        return word.upper()

    call = {"event": "tool_call", "name": "self.inner", "call_id": "c", "args": {"word": "x"}}
    frames = [call, {"event": "final", "text": "done"}]
    async with TestHost(plugin, agent=lambda params: list(frames)) as host:
        results = await asyncio.gather(*(host.invoke("outer") for _ in range(32)))

    assert results == [[{"event": "tool_result", "call_id": "c", "ok": True, "data": "X"}]] * 32
    assert outer is not inner
