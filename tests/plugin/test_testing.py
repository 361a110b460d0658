"""The kit for authors' tests: a host in memory, and plugins as processes."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from executa_protocol.errors import CallTimeout, ConnectionLost, RpcError
from executa_protocol.nexus import Grants
from executa_sdk import Context, Plugin, SamplingError, ToolError
from executa_sdk.testing import Clock, PluginProcess, Services, TestHost

HELLO = Path(__file__).parents[2] / "examples" / "hello" / "plugin.py"


def greeter() -> Plugin:
    plugin = Plugin("greeter", "1.0.0")

    @plugin.tool
    def greet(name: str) -> str:
        if not name:
            raise ToolError("nobody", {"name": name})
        return f"Hello, {name}!"

    @plugin.tool
    async def welcome(name: str, ctx: Context) -> str:
        return (await ctx.sample(f"Welcome {name}", max_tokens=5)).text

    @plugin.tool
    async def plan(ctx: Context) -> list[Any]:
        async with ctx.agent() as session:
            return [frame async for frame in session.run("go")]

    return plugin


async def test_a_tool_is_called_like_a_function() -> None:
    async with TestHost(greeter()) as host:
        assert await host.invoke("greet", name="Ada") == "Hello, Ada!"
        assert host.manifest["name"] == "greeter"


async def test_failures_are_exceptions() -> None:
    async with TestHost(greeter()) as host:
        with pytest.raises(ToolError, match="nobody") as failed:
            await host.invoke("greet", name="")
        with pytest.raises(RpcError) as refused:
            await host.invoke("greet")

    assert failed.value.data == {"name": ""}
    assert refused.value.code == -32602


async def test_the_model_says_what_the_script_says() -> None:
    async with TestHost(greeter(), sample="Hi") as host:
        assert [await host.invoke("welcome", name="A") for _ in range(2)] == ["Hi", "Hi"]
    async with TestHost(greeter(), sample=["One", "Two"]) as host:
        assert [await host.invoke("welcome", name="A") for _ in range(2)] == ["One", "Two"]
        with pytest.raises(RpcError, match="2 answers and this is one more"):
            await host.invoke("welcome", name="A")

    def model(params: dict[str, Any]) -> str:
        return params["messages"][0]["content"]["text"].upper()

    async with TestHost(greeter(), sample=model) as host:
        assert await host.invoke("welcome", name="Bo") == "WELCOME BO"
    async with TestHost(greeter(), sample=SamplingError(-32002, "no quota")) as host:
        with pytest.raises(RpcError, match="no quota"):
            await host.invoke("welcome", name="A")


async def test_a_script_that_fails_is_told_and_harms_nothing() -> None:
    def model(params: dict[str, Any]) -> str:
        raise ZeroDivisionError("the test's own mistake")

    async with TestHost(greeter(), sample=model) as host:
        with pytest.raises(RpcError, match="the test's own mistake"):
            await host.invoke("welcome", name="A")
        assert await host.invoke("greet", name="A") == "Hello, A!"


async def test_runs_are_scripted_by_text_or_by_frames() -> None:
    frames: list[dict[str, Any]] = [{"event": "final", "text": "only"}]
    async with TestHost(greeter(), agent="All done.") as host:
        assert [frame["text"] for frame in await host.invoke("plan")] == ["All done.", "All done."]
    async with TestHost(greeter(), agent=frames) as host:
        assert await host.invoke("plan") == frames
        assert await host.invoke("plan") == frames
    async with TestHost(greeter(), agent=["first", frames]) as host:
        assert (await host.invoke("plan"))[-1]["text"] == "first"
        assert await host.invoke("plan") == frames


async def test_a_tool_call_in_a_script_runs_the_plugins_own_tool() -> None:
    def run(params: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {"event": "tool_call", "name": "greeter.greet", "call_id": "1", "args": {"name": "X"}},
            {"event": "tool_call", "name": "greeter.greet", "call_id": "2", "args": {"name": ""}},
            {"event": "tool_call", "name": "other.tool", "call_id": "3", "args": {}},
            {"event": "final", "text": "done"},
        ]

    async with TestHost(greeter(), agent=run) as host:
        frames = await host.invoke("plan")

    results = {frame["call_id"]: frame for frame in frames if frame["event"] == "tool_result"}
    assert results["1"] == {
        "event": "tool_result", "call_id": "1", "ok": True, "data": "Hello, X!",
    }  # fmt: skip
    assert results["2"]["ok"] is False
    assert "3" not in results
    assert [frame["event"] for frame in frames].index("tool_result") == 1


async def test_refusals_are_those_of_the_gate() -> None:
    async with TestHost(greeter(), grants=Grants()) as host:
        with pytest.raises(RpcError, match="has not granted"):
            await host.invoke("welcome", name="A")
        (call,) = host.services.calls
        assert (call.method, call.error) == ("sampling/createMessage", -32001)
    undeclared = Plugin("u", host_capabilities=[])
    undeclared.tool(greeter().tools["welcome"].fn)
    async with TestHost(undeclared) as host:
        with pytest.raises(RpcError, match=r"lack llm\.sample"):
            await host.invoke("welcome", name="A")


async def test_calls_of_no_invoke_are_refused() -> None:
    services = Services()
    async with TestHost(greeter()) as host:
        services.negotiated = host.services.negotiated
        services.declared = host.services.declared
    params = b'{"messages":[{"role":"user","content":{"type":"text","text":"a"}}],"maxTokens":1%b}'
    from msgspec import Raw  # noqa: PLC0415 - one use

    for context, symbol in ((b"", "MISSING"), (b',"context":{"invoke_id":"x"}', "UNKNOWN")):
        with pytest.raises(RpcError) as caught:
            services.serve("sampling/createMessage", Raw(params % context), {})
        assert caught.value.symbol == f"{symbol}_INVOKE_CONTEXT"
    with pytest.raises(RpcError, match="does not serve web/search"):
        services.serve("web/search", Raw(b"{}"), {})


async def test_a_host_that_offers_nothing_gets_nothing() -> None:
    async with TestHost(greeter(), offer={"capabilities": {}}) as host:
        assert host.services.negotiated.keys == frozenset()
        assert await host.invoke("greet", name="A") == "Hello, A!"


async def test_hooks_run_in_a_test_too() -> None:
    plugin, told = greeter(), list[str]()
    plugin.on_startup(lambda: told.append("up"))
    plugin.on_shutdown(lambda: told.append("down"))
    async with TestHost(plugin):
        assert told == ["up"]
    assert told == ["up", "down"]


async def test_a_start_up_that_fails_fails_the_test(capfd: pytest.CaptureFixture[str]) -> None:
    plugin = greeter()
    plugin.on_startup(lambda: 1 / 0)  # type: ignore[arg-type,return-value]
    with pytest.raises(RuntimeError, match="start-up failed"):
        async with TestHost(plugin):
            pytest.fail("not reached")
    assert "ZeroDivisionError" in capfd.readouterr().err


async def test_a_host_is_of_no_use_outside_of_its_block() -> None:
    host = TestHost(greeter())
    with pytest.raises(RuntimeError, match="async with"):
        await host.invoke("greet", name="A")


async def test_two_hosts_serve_one_plugin_side_by_side() -> None:
    plugin = greeter()
    async with TestHost(plugin, sample="one") as first, TestHost(plugin, sample="two") as second:
        answers = await asyncio.gather(
            first.invoke("welcome", name="A"), second.invoke("welcome", name="A")
        )
    assert answers == ["one", "two"]


def test_a_clock_moves_only_forward_and_when_told() -> None:
    clock = Clock(100.0)
    clock.advance(2.5)
    assert clock() == 102.5
    with pytest.raises(ValueError, match="backwards"):
        clock.advance(-1)


def test_the_kit_is_no_test_itself() -> None:
    assert TestHost.__test__ is False


# --- Processes. ---------------------------------------------------------------------------------


def test_a_plugin_runs_as_a_process() -> None:
    with PluginProcess(HELLO, services=Services(sample="Welcome!")) as process:
        assert process.initialize()["server_info"]["name"] == "hello"
        assert process.describe()["host_capabilities"] == ["llm.sample", "aps.kv"]
        assert process.invoke("greet", name="Ada", style="loud") == "HELLO, ADA!"
        assert [process.invoke("count", name="Ada") for _ in range(2)] == [1, 2]
        assert process.invoke("welcome", name="Ada") == "Welcome!"
        with pytest.raises(ToolError, match="nobody"):
            process.invoke("greet", name=" ")
        with pytest.raises(RpcError, match="unexpected argument 'nme'"):
            process.invoke("greet", nme="Ada")
        assert process.request("health")["status"] == "ready"
        assert process.services.storage.values("tool") == {"greeted/Ada": 2}
        assert process.stray == []
        assert process.close() == 0


def test_a_process_that_does_not_answer_or_ends_is_an_error(tmp_path: Path) -> None:
    silent = tmp_path / "silent.py"
    silent.write_text("import sys; print('no JSON', flush=True); sys.stdin.read()")
    with PluginProcess(silent, timeout=0.2) as process:
        with pytest.raises(CallTimeout):
            process.request("describe")
        assert process.stray == [b"no JSON\n"]
    ends = tmp_path / "ends.py"
    ends.write_text("import sys; sys.stdin.readline(); sys.exit('gone')")
    with PluginProcess(ends) as process:
        with pytest.raises(ConnectionLost, match="gone"):
            process.request("describe")
        assert process.close() == 1
    stays = tmp_path / "stays.py"
    stays.write_text("import time; time.sleep(3600)")
    with pytest.raises(subprocess.TimeoutExpired), PluginProcess(stays, timeout=0.2):
        pass


def test_the_fixture_starts_plugins_and_ends_them(executa_process: Any) -> None:
    process = executa_process([sys.executable, str(HELLO)], credentials={"A": "b"})
    other = executa_process(HELLO)

    assert process.invoke("greet", name="Ada") == other.invoke("greet", name="Ada")
