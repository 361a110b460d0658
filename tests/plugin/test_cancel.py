"""A cancel ends a call, is acknowledged truthfully, and leaves the others alone (R-45)."""

import asyncio
import threading
from typing import Any

import pytest

from executa_protocol.errors import RpcError
from executa_sdk import CallCancelled, Context, Plugin, SyncContext
from executa_sdk.testing import TestHost
from executa_sdk.workers import MOST_THREADS

CANCELLED = -32000


class Never:
    """A model that does not answer until the test lets it."""

    def __init__(self, host: TestHost) -> None:
        self.asked = asyncio.Event()
        self._answer = host.on_request
        host.on_request = self.on_request
        self.held: list[Any] = []

    def on_request(self, request: Any) -> None:
        if request.method == "sampling/createMessage":
            self.held.append(request)
            self.asked.set()
        else:
            self._answer(request)


async def test_a_coroutine_is_cancelled_and_the_call_ends_with_that() -> None:
    plugin, entered = Plugin("a"), asyncio.Event()
    seen: list[Any] = []

    @plugin.tool
    async def tool(ctx: Context) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(ctx.cancelled)

    async with TestHost(plugin) as host:
        running = host.start("tool")
        await entered.wait()
        running.cancel("the user left")
        with pytest.raises(RpcError, match="the user left") as caught:
            await running.result()

    assert caught.value.code == CANCELLED
    assert caught.value.symbol == "INVOKE_CANCELLED"
    assert seen == [True]
    assert tool is not None


async def test_a_tool_that_finishes_all_the_same_gives_its_result() -> None:
    plugin, entered = Plugin("a"), asyncio.Event()

    @plugin.tool
    async def tool() -> str:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done anyway"
        return "unreachable"

    async with TestHost(plugin) as host:
        running = host.start("tool")
        await entered.wait()
        running.cancel()
        assert await running.result() == "done anyway"
    assert tool is not None


async def test_a_waiting_thread_is_let_go_and_may_clean_up() -> None:
    plugin = Plugin("a")
    seen: list[Any] = []

    @plugin.tool
    def tool(ctx: SyncContext) -> None:
        with ctx.agent():
            try:
                ctx.sample("x")
            except CallCancelled:
                seen.append(ctx.cancelled)
                raise

    async with TestHost(plugin) as host:
        model = Never(host)
        running = host.start("tool")
        await model.asked.wait()
        running.cancel()
        with pytest.raises(RpcError) as caught:
            await running.result()
        assert caught.value.symbol == "INVOKE_CANCELLED"
        assert seen == [True]
        assert host.services.sessions == set(), "the agent session was deleted on the way out"
    assert tool is not None


async def test_a_thread_that_does_not_look_is_not_said_to_have_stopped() -> None:
    plugin, entered, leave = Plugin("a"), threading.Event(), threading.Event()

    @plugin.tool
    def tool(ctx: SyncContext) -> bool:
        entered.set()
        leave.wait(20)
        return ctx.cancelled

    async with TestHost(plugin) as host:
        running = host.start("tool")
        await asyncio.to_thread(entered.wait, 20)
        running.cancel()
        await host.peer.request("health")
        assert not running.done
        leave.set()
        assert await running.result() is True
    assert tool is not None


async def test_after_a_cancel_the_host_is_no_longer_asked() -> None:
    plugin, entered, leave = Plugin("a"), threading.Event(), threading.Event()

    @plugin.tool
    def tool(ctx: SyncContext) -> None:
        entered.set()
        leave.wait(20)
        ctx.check()

    async with TestHost(plugin) as host:
        running = host.start("tool")
        await asyncio.to_thread(entered.wait, 20)
        running.cancel("enough")
        await host.peer.request("health")
        leave.set()
        with pytest.raises(RpcError, match="enough") as caught:
            await running.result()
    assert caught.value.symbol == "INVOKE_CANCELLED"
    assert tool is not None


async def test_a_call_that_waits_for_a_thread_never_starts() -> None:
    plugin, leave = Plugin("a"), threading.Event()
    begun: list[int] = []

    @plugin.tool
    def tool(number: int) -> int:
        begun.append(number)
        leave.wait(20)
        return number

    async with TestHost(plugin) as host:
        busy = [host.start("tool", number=n) for n in range(MOST_THREADS)]
        waiting = host.start("tool", number=99)
        await host.peer.request("health")
        waiting.cancel()
        with pytest.raises(RpcError) as caught:
            await waiting.result()
        assert caught.value.symbol == "INVOKE_CANCELLED"
        leave.set()
        assert [await call.result() for call in busy] == list(range(MOST_THREADS))
        assert await host.invoke("tool", number=100) == 100

    assert 99 not in begun
    assert tool is not None


async def test_other_calls_go_on() -> None:
    plugin, gate = Plugin("a"), asyncio.Event()

    @plugin.tool
    async def tool(number: int) -> int:
        await gate.wait()
        return number

    async with TestHost(plugin) as host:
        calls = [host.start("tool", number=n) for n in range(3)]
        await host.peer.request("health")
        calls[1].cancel()
        with pytest.raises(RpcError):
            await calls[1].result()
        gate.set()
        assert [await calls[0].result(), await calls[2].result()] == [0, 2]
    assert tool is not None


@pytest.mark.parametrize(
    "params", [b'{"invoke_id":"gone"}', b'{"invoke_id":7}', b"[]", b"{}", None]
)
async def test_a_cancel_of_nothing_changes_nothing(params: bytes | None) -> None:
    plugin = Plugin("a")

    @plugin.tool
    async def tool() -> int:
        return 1

    async with TestHost(plugin) as host:
        host.peer.notify("executa/cancel", params)
        assert bytes(await host.peer.request("executa/cancel", params)) == b"{}"
        assert await host.invoke("tool") == 1
    assert tool is not None


async def test_a_task_that_cancels_itself_has_failed() -> None:
    plugin = Plugin("a")

    @plugin.tool
    async def tool() -> None:
        raise asyncio.CancelledError

    async with TestHost(plugin) as host:
        with pytest.raises(RpcError) as caught:
            await host.invoke("tool")
    assert caught.value.symbol == "INTERNAL_ERROR"
    assert tool is not None
