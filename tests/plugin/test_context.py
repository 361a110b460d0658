"""What a tool may ask of its call, the same in coroutines and in plain functions."""

import asyncio
import math
import threading
from typing import Any

import pytest
from msgspec import Raw

from executa_protocol.errors import CallTimeout, RpcError
from executa_protocol.nexus import Caps, Grants
from executa_sdk import (
    AgentError,
    Context,
    Plugin,
    SamplingClient,
    SamplingError,
    StorageError,
    SyncContext,
    UsageError,
    current_context,
    emit_progress,
    get_current_invoke_id,
)
from executa_sdk.testing import TestHost
from executa_sdk.testing.memory import MemoryStore

EVERYTHING = ["llm.sample", "llm.agent.auto", "aps.kv", "aps.files"]

RUN = [
    {"event": "delta", "text": "Mon"},
    {"event": "delta", "text": "day"},
    {"event": "final", "text": "Monday", "usage": {"output_tokens": 2}},
]


def both(task: Any, thread: Any) -> Plugin:
    """A plugin with the same tool as a coroutine and as a plain function."""
    plugin = Plugin("both", host_capabilities=EVERYTHING)
    plugin.tool(name="task")(task)
    plugin.tool(name="thread")(thread)
    return plugin


async def results(plugin: Plugin, **options: Any) -> list[Any]:
    """What each of the two gives, in a host of its own."""
    found: list[Any] = []
    for tool in plugin.tools:
        async with TestHost(plugin, **options) as host:
            found.append(await host.invoke(tool))
    return found


# --- Completions --------------------------------------------------------------------------------


async def test_sample_gives_the_text_and_what_it_cost() -> None:
    async def task(ctx: Context) -> Any:
        answer = await ctx.sample("Hi", max_tokens=7, system_prompt="Be brief.")
        return [answer.text, str(answer), answer.model, answer.stop_reason, answer.usage]

    def thread(ctx: SyncContext) -> Any:
        answer = ctx.sample("Hi", max_tokens=7, system_prompt="Be brief.")
        return [answer.text, str(answer), answer.model, answer.stop_reason, answer.usage]

    one, other = await results(both(task, thread), sample="Good day")

    usage = {"inputTokens": 0, "outputTokens": 2, "totalTokens": 2}
    assert one == other == ["Good day", "Good day", "scripted", "endTurn", usage]


async def test_a_sampling_call_says_everything_in_the_seeds_spelling() -> None:
    async def task(ctx: Context) -> None:
        await ctx.sample(
            [{"role": "user", "content": {"type": "text", "text": "Hi"}}],
            max_tokens=7,
            system_prompt="Be brief.",
            temperature=0.5,
            stop_sequences=["."],
            model_preferences={"hints": [{"name": "small"}]},
            response_format={"type": "json_object"},
            on_unsupported="text",
        )

    plugin = Plugin("a")
    plugin.tool(task)
    async with TestHost(plugin) as host:
        await host.invoke("task")
        (call,) = host.services.calls

    assert call.method == "sampling/createMessage"
    assert len(call.params.pop("context")["invoke_id"]) == 32
    assert call.params == {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}],
        "maxTokens": 7,
        "systemPrompt": "Be brief.",
        "temperature": 0.5,
        "stopSequences": ["."],
        "modelPreferences": {"hints": [{"name": "small"}]},
        "responseFormat": {"type": "json_object"},
        "onUnsupported": "text",
    }


async def test_complete_gives_the_text() -> None:
    async def task(ctx: Context) -> str:
        return await ctx.complete("Hi", max_tokens=5)

    def thread(ctx: SyncContext) -> str:
        return ctx.complete("Hi", max_tokens=5)

    def model(params: dict[str, Any]) -> str:
        return f"{params['maxTokens']}"

    assert await results(both(task, thread), sample=model) == ["5", "5"]


async def test_refusals_of_the_model_are_sampling_errors() -> None:
    async def task(ctx: Context) -> Any:
        try:
            await ctx.sample("Hi")
        except SamplingError as fault:
            return [fault.code, fault.data["missing"]["step"]]

    def thread(ctx: SyncContext) -> Any:
        try:
            ctx.sample("Hi")
        except SamplingError as fault:
            return [fault.code, fault.data["missing"]["step"]]

    off = Grants(sampling=False, agent=True, storage=True, files=True)

    assert await results(both(task, thread), grants=off) == [[-32001, "grant"]] * 2


async def test_an_uncaught_refusal_names_its_cause() -> None:
    async def task(ctx: Context) -> Any:
        await ctx.sample("Hi")

    plugin = Plugin("a", host_capabilities=[])
    plugin.tool(task)
    async with TestHost(plugin) as host:
        with pytest.raises(RpcError, match="SamplingError") as caught:
            await host.invoke("task")

    assert caught.value.code == -32603
    assert caught.value.data["cause"] == {"code": -32008, "errorCode": "not_negotiated"}


async def test_over_budget_is_terminal_for_the_invoke() -> None:
    async def task(ctx: Context) -> list[int]:
        codes: list[int] = []
        for _ in range(5):
            try:
                await ctx.sample("Hi", max_tokens=1)
                codes.append(0)
            except SamplingError as fault:
                codes.append(fault.code)
        return codes

    plugin = Plugin("a")
    plugin.tool(task)
    async with TestHost(plugin, caps=Caps(sampling_calls=3)) as host:
        assert await host.invoke("task") == [0, 0, 0, -32006, -32006]
        assert await host.invoke("task") == [0, 0, 0, -32006, -32006]


async def test_a_call_that_takes_too_long_is_a_sampling_error() -> None:
    async def task(ctx: Context) -> Any:
        try:
            await ctx.sample("Hi", timeout=0.001)
        except SamplingError as fault:
            return [fault.code, fault.symbol]

    plugin = Plugin("a")
    plugin.tool(task)
    async with TestHost(plugin) as host:
        asleep = asyncio.Event()
        host.on_request = lambda request: asleep.set()  # nobody answers
        running = host.start("task")
        await asleep.wait()
        assert await running.result() == [-32005, "TIMEOUT"]
        assert CallTimeout is not None


# --- Agent sessions -----------------------------------------------------------------------------


async def test_a_run_gives_its_frames_one_by_one_and_the_block_deletes_the_session() -> None:
    async def task(ctx: Context) -> Any:
        async with ctx.agent(label="plan") as session:
            return [frame["text"] async for frame in session.run("When?")]

    def thread(ctx: SyncContext) -> Any:
        with ctx.agent(label="plan") as session:
            return [frame["text"] for frame in session.run("When?")]

    plugin = both(task, thread)
    for tool in plugin.tools:
        async with TestHost(plugin, agent=RUN) as host:
            assert await host.invoke(tool) == ["Mon", "day", "Monday"]
            assert [call.method for call in host.services.calls] == [
                "agent/session.create",
                "agent/session.run",
                "agent/session.delete",
            ]
            assert host.services.calls[0].params["label"] == "plan"
            assert len(host.services.calls[1].params["run_id"]) == 32
            assert host.services.sessions == set()


async def test_a_run_has_its_text_with_or_without_a_final_frame() -> None:
    async def task(ctx: Context) -> Any:
        async with ctx.agent() as session:
            return [await session.run("a").text(), await session.run("b").text()]

    def thread(ctx: SyncContext) -> Any:
        with ctx.agent() as session:
            return [session.run("a").text(), session.run("b").text()]

    script = [RUN, RUN[:2]]

    assert await results(both(task, thread), agent=script) == [["Monday", "Monday"]] * 2


async def test_a_session_that_was_awaited_lives_until_it_is_deleted() -> None:
    async def task(ctx: Context) -> Any:
        session = await ctx.agent(fixed_client_id="notes.find")
        assert session.kind == "fixed"
        run = session.run("a")
        assert run.run_id == session.run_id
        assert await session.cancel() == {"cancelled": False, "run_id": run.run_id}
        assert await session.history() == []
        await session.refresh()
        assert session.expires_in == 600
        assert [found["app_session_uuid"] for found in await ctx.agents.list()] == [session.uuid]
        return await session.delete()

    plugin = Plugin("a")
    plugin.tool(task)
    async with TestHost(plugin, granted_tools=("notes.find",)) as host:
        assert await host.invoke("task") == {"deleted": True}


async def test_refusals_of_agent_calls_are_agent_errors_and_sampling_errors() -> None:
    async def task(ctx: Context) -> Any:
        session = await ctx.agent()
        await session.delete()
        try:
            await session.run("a").text()
        except SamplingError as fault:
            return [fault.code, fault.symbol, isinstance(fault, AgentError)]

    plugin = Plugin("a")
    plugin.tool(task)
    async with TestHost(plugin) as host:
        assert await host.invoke("task") == [-32044, "AGENT_UNKNOWN_SESSION", True]


# --- Storage ------------------------------------------------------------------------------------


async def test_values_of_each_scope_come_back_as_they_were_stored() -> None:
    async def task(ctx: Context) -> Any:
        for bucket in (ctx.storage.user, ctx.storage.tool):
            etag = await bucket.set("a/b", {"n": [1, None]}, tags=["x"], metadata={"m": 1})
            assert (await bucket.entry("a/b")).etag == etag
        await ctx.storage.tool.set("nothing", None)
        await ctx.storage.user.delete("a/b")
        await ctx.storage.user.delete("a/b")
        return [
            await ctx.storage.user.get("a/b", "gone"),
            await ctx.storage.tool.get("a/b"),
            await ctx.storage.tool.get("nothing", "default"),
            [item["key"] for item in await ctx.storage.tool.list()],
        ]

    def thread(ctx: SyncContext) -> Any:
        for bucket in (ctx.storage.user, ctx.storage.tool):
            etag = bucket.set("a/b", {"n": [1, None]}, tags=["x"], metadata={"m": 1})
            assert bucket.entry("a/b").etag == etag
        ctx.storage.tool.set("nothing", None)
        ctx.storage.user.delete("a/b")
        ctx.storage.user.delete("a/b")
        return [
            ctx.storage.user.get("a/b", "gone"),
            ctx.storage.tool.get("a/b"),
            ctx.storage.tool.get("nothing", "default"),
            [item["key"] for item in ctx.storage.tool.list()],
        ]

    expected = ["gone", {"n": [1, None]}, None, ["a/b", "nothing"]]

    assert await results(both(task, thread)) == [expected] * 2


async def test_a_listing_follows_all_pages_or_stops_at_its_limit() -> None:
    async def task(ctx: Context) -> Any:
        for number in range(150):
            await ctx.storage.tool.set(f"n/{number:03}", number)
        return [len(await ctx.storage.tool.list("n/", limit=n)) for n in (None, 120, 3)]

    plugin = Plugin("a")
    plugin.tool(task)
    async with TestHost(plugin) as host:
        assert await host.invoke("task") == [150, 120, 3]


async def test_a_scope_outside_the_token_is_refused() -> None:
    async def task(ctx: Context) -> Any:
        try:
            await ctx.storage.app.get("a")
        except StorageError as fault:
            return [fault.code, fault.symbol]

    plugin = Plugin("a")
    plugin.tool(task)
    async with TestHost(plugin) as host:
        assert await host.invoke("task") == [-32021, "forbidden_scope"]
    async with TestHost(plugin, scopes=("user", "tool", "app")) as host:
        assert await host.invoke("task") is None


async def test_a_key_with_a_life_is_gone_when_it_has_passed() -> None:
    async def task(ctx: Context, keep: bool) -> Any:
        if keep:
            await ctx.storage.tool.set("a", 1, ttl=60)
        return await ctx.storage.tool.get("a", "gone")

    plugin = Plugin("a")
    plugin.tool(task)
    async with TestHost(plugin) as host:
        assert await host.invoke("task", keep=True) == 1
        host.clock.advance(59)
        assert await host.invoke("task", keep=False) == 1
        host.clock.advance(1)
        assert await host.invoke("task", keep=False) == "gone"


async def test_updates_of_one_process_never_lose_one_another() -> None:
    async def task(ctx: Context) -> int:
        return await ctx.storage.tool.update("n", lambda n: n + 1, default=0)

    def thread(ctx: SyncContext) -> int:
        return ctx.storage.tool.update("n", lambda n: n + 1, default=0)

    plugin = both(task, thread)
    async with TestHost(plugin) as host:
        counts = await asyncio.gather(*(host.invoke(t) for _ in range(25) for t in plugin.tools))
        assert sorted(counts) == list(range(1, 51))
        assert host.services.storage.values("tool") == {"n": 50}
        assert len(host.services.calls) == 100


async def test_an_update_starts_over_when_somebody_else_wrote_meanwhile() -> None:
    others: list[MemoryStore] = []

    async def task(ctx: Context) -> int:
        async def change(value: int) -> int:
            if value < 3:  # another process is faster, three times
                others[0].put("tool", "n", raw(value + 1), 1)
            return value + 10

        return await ctx.storage.tool.update("n", change, default=0)

    plugin = Plugin("a")
    plugin.tool(task)
    async with TestHost(plugin) as host:
        others.append(host.services.storage)
        others[0].put("tool", "n", raw(0), 1)
        assert await host.invoke("task") == 13
        assert host.services.storage.values("tool") == {"n": 13}


async def test_an_update_gives_up_when_others_are_always_faster() -> None:
    others: list[MemoryStore] = []

    def thread(ctx: SyncContext) -> Any:
        def change(value: int) -> int:
            others[0].put("tool", "n", raw(value + 1), 1)
            return value

        try:
            ctx.storage.tool.update("n", change, default=0)
        except StorageError as fault:
            return fault.code

    plugin = Plugin("a")
    plugin.tool(thread)
    async with TestHost(plugin) as host:
        others.append(host.services.storage)
        others[0].put("tool", "n", raw(0), 1)
        assert await host.invoke("thread") == -32023
        assert host.services.storage.values("tool") == {"n": 10}


def raw(value: int) -> Raw:
    return Raw(b"%d" % value)


# --- Files --------------------------------------------------------------------------------------


async def test_files_are_saved_and_read_in_one_step_each(tmp_path: Any) -> None:
    local = tmp_path / "local.bin"
    local.write_bytes(bytes(range(256)) * 1000)

    async def task(ctx: Context) -> Any:
        saved = await ctx.files.save("notes/a.txt", "grüße")
        await ctx.files.save("b.bin", local, scope="user", content_type="x/y")
        content = await ctx.files.read("b.bin", scope="user")
        assert content == local.read_bytes()
        listed = [item["path"] for item in await ctx.files.list()]
        text = (await ctx.files.read("notes/a.txt")).decode()
        await ctx.files.delete("notes/a.txt")
        try:
            await ctx.files.read("notes/a.txt")
        except StorageError as fault:
            return [saved["path"], saved["size_bytes"], listed, text, fault.code]

    def thread(ctx: SyncContext) -> Any:
        saved = ctx.files.save("notes/a.txt", "grüße")
        ctx.files.save("b.bin", local, scope="user", content_type="x/y")
        content = ctx.files.read("b.bin", scope="user")
        assert content == local.read_bytes()
        listed = [item["path"] for item in ctx.files.list()]
        text = ctx.files.read("notes/a.txt").decode()
        assert ctx.files.url("notes/a.txt").startswith("http://127.0.0.1:")
        ctx.files.delete("notes/a.txt")
        try:
            ctx.files.read("notes/a.txt")
        except StorageError as fault:
            return [saved["path"], saved["size_bytes"], listed, text, fault.code]

    expected = ["notes/a.txt", 7, ["notes/a.txt"], "grüße", -32022]

    assert await results(both(task, thread)) == [expected] * 2


async def test_a_store_that_fails_is_a_storage_error() -> None:
    async def task(ctx: Context) -> Any:
        try:
            await ctx.files.save("a", b"x")
        except StorageError as fault:
            return [fault.code, fault.message]

    plugin = Plugin("a")
    plugin.tool(task)
    async with TestHost(plugin) as host:
        for url, what in (("http://127.0.0.1:1/x", "not be reached"), ("file:///x", "HTTP URL")):
            host.services.blobs.url = lambda name, url=url: url
            code, message = await host.invoke("task")
            assert code == -32029
            assert what in message


# --- Progress -----------------------------------------------------------------------------------


async def test_progress_needs_no_waiting_and_may_be_awaited() -> None:
    async def task(ctx: Context) -> None:
        await ctx.progress(0, 2, "first")
        ctx.progress(2, 2)
        await ctx.update({"page": 3})

    def thread(ctx: SyncContext) -> None:
        ctx.progress(0, 2, "first")
        ctx.progress(2, 2)
        ctx.update({"page": 3})

    plugin = both(task, thread)
    for tool in plugin.tools:
        async with TestHost(plugin) as host:
            await host.invoke(tool)
            assert host.progress == [
                {"done": 0, "total": 2, "note": "first"},
                {"done": 2, "total": 2},
                {"page": 3},
            ]


async def test_progress_is_kept_below_what_hosts_take() -> None:
    def thread(ctx: SyncContext) -> None:
        for done in range(1001):
            ctx.progress(done, 1000, "x" * 10_000)

    plugin = Plugin("a")
    plugin.tool(thread)
    async with TestHost(plugin) as host:
        await host.invoke("thread")
        assert host.progress[-1]["done"] == 1000
        assert len(host.progress) < 60
        assert all(len(event["note"]) == 2000 for event in host.progress)


async def test_an_event_that_no_host_takes_is_refused() -> None:
    def thread(ctx: SyncContext) -> None:
        ctx.update({"text": "x" * 9000})

    plugin = Plugin("a")
    plugin.tool(thread)
    async with TestHost(plugin) as host:
        with pytest.raises(RpcError, match="at most 8,192"):
            await host.invoke("thread")


async def test_emit_progress_goes_through_the_running_plugin() -> None:
    async def task() -> Any:
        return [emit_progress("tool_update", {"n": 1}), get_current_invoke_id() is not None]

    def thread() -> Any:
        return [emit_progress("odd", {"n": 1}), get_current_invoke_id() is not None]

    plugin = both(task, thread)
    for tool in plugin.tools:
        async with TestHost(plugin) as host:
            assert await host.invoke(tool) == [True, True]
            assert host.progress == [{"n": 1}]


# --- The call itself ----------------------------------------------------------------------------


async def test_a_call_knows_its_id_tool_and_deadline() -> None:
    async def task(ctx: Context) -> Any:
        return [len(ctx.invoke_id), ctx.tool, ctx.remaining, ctx.cancelled, repr(ctx)[:24]]

    plugin = Plugin("a")
    plugin.tool(task)
    async with TestHost(plugin) as host:
        length, tool, remaining, cancelled, shown = await host.call("task", timeout=50)
        assert (length, tool, cancelled, shown) == (32, "task", False, "Context(tool='task', inv")
        assert remaining == pytest.approx(50, abs=0.01)


async def test_a_call_without_a_deadline_has_for_ever() -> None:
    def thread(ctx: SyncContext) -> Any:
        return [ctx.deadline, ctx.remaining == math.inf]

    plugin = Plugin("a")
    plugin.tool(thread)
    async with TestHost(plugin) as host:
        assert await host.invoke("thread") == [None, True]


async def test_the_remaining_time_follows_the_hosts_clock() -> None:
    plugin, moved, told = Plugin("a"), asyncio.Event(), asyncio.Event()

    async def task(ctx: Context) -> Any:
        told.set()
        await moved.wait()
        return ctx.remaining

    plugin.tool(task)
    async with TestHost(plugin) as host:
        running = asyncio.create_task(host.call("task", timeout=50))
        await told.wait()
        host.clock.advance(49)
        moved.set()
        assert await running == pytest.approx(1, abs=0.01)


async def test_credentials_come_by_name_and_hide_their_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def thread(ctx: SyncContext) -> Any:
        found = ctx.credentials
        assert "s3cret" not in repr(found)
        with pytest.raises(KeyError, match="has the user entered it"):
            found["MISSING"]
        return [found["TOKEN"], found["REGION"], found["LOCAL"], sorted(found)]

    monkeypatch.setenv("LOCAL", "from the environment")
    region = {"name": "REGION", "default": "eu"}
    plugin = Plugin("a", credentials=["TOKEN", region, "LOCAL", "MISSING"])
    plugin.tool(thread)
    async with TestHost(plugin, credentials={"TOKEN": "s3cret"}) as host:
        token, where, local, names = await host.invoke("thread")

    assert (token, where, local) == ("s3cret", "eu", "from the environment")
    assert names == ["LOCAL", "REGION", "TOKEN"]


async def test_a_crash_does_not_tell_credentials(capfd: pytest.CaptureFixture[str]) -> None:
    def thread(ctx: SyncContext) -> None:
        raise ValueError(f"bad token {ctx.credentials['TOKEN']}")

    plugin = Plugin("a", credentials=["TOKEN"])
    plugin.tool(thread)
    async with TestHost(plugin, credentials={"TOKEN": "s3cret"}) as host:
        with pytest.raises(RpcError, match=r"bad token \*\*\*"):
            await host.invoke("thread")

    assert "s3cret" not in capfd.readouterr().err


# --- Across threads and tasks -------------------------------------------------------------------


async def test_the_invokes_id_follows_into_tasks_and_threads() -> None:
    async def task(ctx: Context) -> Any:
        async def inner() -> str:
            return (await current_context().sample("in a task")).text

        def in_thread() -> str:
            return SyncContext.current().sample("in a thread").text

        await asyncio.gather(inner(), asyncio.to_thread(in_thread))
        await asyncio.to_thread(lambda: ctx.blocking().sample("by hand"))
        return ctx.invoke_id

    plugin = Plugin("a")
    plugin.tool(task)
    async with TestHost(plugin) as host:
        invoke_id = await host.invoke("task")
        ids = [call.params["context"]["invoke_id"] for call in host.services.calls]

    assert ids == [invoke_id] * 3


async def test_threads_of_a_plain_function_may_use_its_context() -> None:
    def thread(ctx: SyncContext) -> Any:
        answers: list[str] = []
        threads = [
            threading.Thread(target=lambda: answers.append(ctx.sample("x").text)) for _ in range(4)
        ]
        for started in threads:
            started.start()
        for started in threads:
            started.join(20)
        return answers

    plugin = Plugin("a")
    plugin.tool(thread)
    async with TestHost(plugin, sample="yes") as host:
        assert await host.invoke("thread") == ["yes"] * 4


async def test_low_level_clients_inside_a_plugin_use_its_connection() -> None:
    sampling = SamplingClient()
    message = {"role": "user", "content": {"type": "text", "text": "Hi"}}

    async def task() -> str:
        result = await sampling.create_message(messages=[message], max_tokens=9)
        return result["content"]["text"]

    def thread() -> str:
        return asyncio.run(task())

    plugin = both(task, thread)
    for tool in plugin.tools:
        async with TestHost(plugin, sample="Hello") as host:
            assert await host.invoke(tool) == "Hello"
            assert "context" in host.services.calls[0].params


async def test_inline_tools_cannot_call_the_host_and_are_told_why() -> None:
    def inline(ctx: SyncContext) -> str:
        ctx.progress(1)
        return ctx.sample("x").text

    plugin = Plugin("a")
    plugin.tool(inline=True)(inline)
    async with TestHost(plugin) as host:
        with pytest.raises(RpcError, match=r"UsageError.*inline=True"):
            await host.invoke("inline")
        assert host.progress == [{"done": 1}]


async def test_a_context_on_the_wrong_side_is_refused_instead_of_hanging() -> None:
    async def task(ctx: Context) -> Any:
        told: list[str] = []
        try:
            ctx.blocking().sample("on the loop")
        except UsageError as fault:
            told.append(str(fault))

        def in_thread() -> None:
            try:
                ctx.sample("in a thread").send(None)
            except UsageError as fault:
                told.append(str(fault))

        await asyncio.to_thread(in_thread)
        return told

    plugin = Plugin("a")
    plugin.tool(task)
    async with TestHost(plugin) as host:
        on_loop, in_thread = await host.invoke("task")

    assert "event loop" in on_loop
    assert "ctx.blocking()" in in_thread


async def test_a_context_outside_of_a_call_is_refused() -> None:
    with pytest.raises(UsageError, match="inside tools"):
        current_context()
    with pytest.raises(UsageError, match="inside tools"):
        Context.current()
    with pytest.raises(UsageError, match="inside tools"):
        SyncContext.current()


async def test_a_context_is_of_no_use_after_its_call() -> None:
    kept: list[Context] = []

    async def task(ctx: Context) -> None:
        kept.append(ctx)

    plugin = Plugin("a")
    plugin.tool(task)
    async with TestHost(plugin) as host:
        await host.invoke("task")
        with pytest.raises(UsageError, match="has ended"):
            await kept[0].sample("late")
        kept[0].progress(1)
        await host.peer.request("health")
        assert host.progress == []


async def test_the_kind_of_context_is_that_of_the_tool() -> None:
    async def task(ctx: SyncContext) -> str:
        return type(ctx).__name__ + type(current_context()).__name__

    def thread(ctx: Context) -> str:
        return type(ctx).__name__ + type(current_context()).__name__

    assert await results(both(task, thread)) == ["ContextContext", "SyncContextSyncContext"]
