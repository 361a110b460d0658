"""The loop for plain functions: what asyncio's would do, and who is served on which."""

import os
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from executa_sdk.plainfuture import Cancelled, PlainFuture
from executa_sdk.plainloop import PlainLoop
from tests.plugin.driver import child, invoke_message


@pytest.fixture
def loop() -> Generator[PlainLoop]:
    loop = PlainLoop()
    yield loop
    loop.close()


async def until(loop: PlainLoop, seconds: float) -> None:
    over = loop.create_future()
    loop.call_later(seconds, over.set_result, None)
    await over


# --- Callbacks and timers ---------------------------------------------------------------------


def test_callbacks_run_in_order_and_those_they_add_a_turn_later(loop: PlainLoop) -> None:
    seen: list[str] = []

    def first() -> None:
        seen.append("first")
        loop.call_soon(seen.append, "added")

    async def main() -> None:
        loop.call_soon(first)
        loop.call_soon(seen.append, "second")
        await until(loop, 0)
        await until(loop, 0)

    loop.run_until_complete(main())

    assert seen == ["first", "second", "added"]


def test_timers_fire_in_the_order_of_their_instants_and_never_early(loop: PlainLoop) -> None:
    fired: list[tuple[float, float]] = []
    begun = time.monotonic()

    def fire(wanted: float) -> None:
        fired.append((wanted, time.monotonic() - begun))

    async def main() -> None:
        for seconds in (0.03, 0.001, 0.01, 0.0):
            loop.call_later(seconds, fire, seconds)
        await until(loop, 0.04)

    loop.run_until_complete(main())

    assert [wanted for wanted, _ in fired] == [0.0, 0.001, 0.01, 0.03]
    assert all(wanted <= after for wanted, after in fired)


def test_a_timer_that_was_cancelled_never_fires_and_does_not_pile_up(loop: PlainLoop) -> None:
    fired: list[int] = []

    async def main() -> None:
        for number in range(1000):
            loop.call_later(0.001, fired.append, number).cancel()
        assert len(vars(loop)["_timers"]) <= 66
        await until(loop, 0.01)

    loop.run_until_complete(main())

    assert not fired


def test_a_callback_that_fails_harms_nobody_else(
    loop: PlainLoop, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[str] = []

    def fail() -> None:
        raise ValueError("on purpose")

    async def main() -> None:
        loop.call_soon(fail)
        loop.call_later(0, fail)
        loop.call_soon(seen.append, "after")
        await until(loop, 0.001)

    loop.run_until_complete(main())

    assert seen == ["after"]
    assert capsys.readouterr().err.count("ValueError: on purpose") == 2


def test_threads_wake_the_loop_and_are_told_when_it_has_closed() -> None:
    loop = PlainLoop()
    seen: list[int] = []
    over: PlainFuture[None] = loop.create_future()

    def post() -> None:
        for number in range(100_000):  # more wake-ups than the pipe holds
            loop.call_soon_threadsafe(seen.append, number)
        loop.call_soon_threadsafe(over.set_result, None)

    async def main() -> None:
        await over

    thread = threading.Thread(target=post)
    thread.start()
    loop.run_until_complete(main())
    thread.join()
    loop.close()

    assert seen == list(range(100_000))
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_soon_threadsafe(print)


# --- Descriptors -----------------------------------------------------------------------------


def test_it_waits_for_a_descriptor_in_both_directions_and_for_its_end(loop: PlainLoop) -> None:
    reading, writing = os.pipe()
    seen: list[bytes] = []
    ended = loop.create_future()

    def readable() -> None:
        data = os.read(reading, 100)
        seen.append(data)
        if not data:
            loop.remove_reader(reading)
            loop.remove_reader(reading)  # once more does no harm
            ended.set_result(None)

    def writable() -> None:
        loop.remove_writer(writing)
        loop.remove_writer(writing)
        os.write(writing, b"hello")
        loop.call_later(0.001, os.close, writing)

    async def main() -> None:
        loop.add_reader(reading, readable)
        loop.add_writer(writing, writable)
        await ended

    loop.run_until_complete(main())
    os.close(reading)

    assert seen == [b"hello", b""]


# --- Futures and tasks -----------------------------------------------------------------------


def test_a_future_has_one_outcome(loop: PlainLoop) -> None:
    future = loop.create_future()
    with pytest.raises(RuntimeError, match="not there"):
        future.result()
    future.set_result(1)

    assert (future.done(), future.cancelled(), future.result(), future.exception()) == (
        True,
        False,
        1,
        None,
    )
    assert not future.cancel()
    for again in (lambda: future.set_result(2), lambda: future.set_exception(ValueError())):
        with pytest.raises(RuntimeError, match="already"):
            again()


def test_a_fault_is_raised_wherever_it_is_awaited(loop: PlainLoop) -> None:
    async def fail() -> None:
        await until(loop, 0)
        raise ValueError("on purpose")

    async def main() -> None:
        await loop.create_task(fail())

    with pytest.raises(ValueError, match="on purpose"):
        loop.run_until_complete(main())


def test_a_callback_of_a_future_runs_once_also_when_it_comes_late(loop: PlainLoop) -> None:
    seen: list[object] = []
    future = loop.create_future()
    future.add_done_callback(seen.append)

    async def main() -> None:
        future.set_result("x")
        assert not seen, "not before the next turn"
        future.add_done_callback(seen.append)
        await until(loop, 0)

    loop.run_until_complete(main())

    assert seen == [future, future]


@pytest.mark.parametrize("begun", [False, True])
def test_a_task_that_is_cancelled_may_tidy_up(loop: PlainLoop, *, begun: bool) -> None:
    seen: list[str] = []

    async def work() -> None:
        seen.append("begun")
        try:
            await loop.create_future()
        finally:
            seen.append("tidied")

    async def main() -> None:
        task = loop.create_task(work())
        if begun:
            await until(loop, 0)
        assert task.cancel()
        with pytest.raises(Cancelled):
            await task
        assert task.cancelled()
        assert not task.cancel()

    loop.run_until_complete(main())

    assert seen == (["begun", "tidied"] if begun else [])


# --- Who is served on it ----------------------------------------------------------------------

PLAIN = """
import sys
from executa_sdk import Plugin, SyncContext
plugin = Plugin("plain", "1.0.0", host_capabilities=["llm.sample"])

@plugin.tool
def loaded() -> list[str]:
    return sorted({"asyncio", "uvloop"} & set(sys.modules))

@plugin.tool
def ask(ctx: SyncContext, timeout: float = 60.0) -> str:
    return ctx.sample("hello", timeout=timeout).text

@plugin.tool
def report(ctx: SyncContext) -> str:
    ctx.progress(1, 2)
    return "reported"
"""
RUN = "\nplugin.run()\n"


async def test_plain_functions_are_served_without_asyncio(tmp_path: Path) -> None:
    async with child(PLAIN + RUN, folder=tmp_path) as running:
        assert (await running.invoke("loaded"))["result"]["data"] == []


@pytest.mark.parametrize(
    "what",
    [
        "@plugin.tool\nasync def other() -> None: ...",
        "@plugin.on_startup\ndef hook() -> None: ...",
        "@plugin.on_shutdown\ndef hook() -> None: ...",
        "import asyncio",
    ],
)
async def test_what_may_want_asyncio_gets_it(tmp_path: Path, what: str) -> None:
    async with child(f"{PLAIN}\n{what}\n{RUN}", folder=tmp_path) as running:
        assert "asyncio" in (await running.invoke("loaded"))["result"]["data"]
        assert await running.end() == 0


async def _asked(running: Any) -> Any:
    message = await running.read()
    assert message["method"] == "sampling/createMessage"
    return message


async def test_a_plain_function_calls_the_host(tmp_path: Path) -> None:
    async with child(PLAIN + RUN, folder=tmp_path) as running:
        await running.initialize()
        running.write(invoke_message(1, "ask"))
        asked = await _asked(running)
        result = {"role": "assistant", "content": {"type": "text", "text": "hi"}}
        running.write({"jsonrpc": "2.0", "id": asked["id"], "result": {**result, "model": "m"}})
        (answer,) = await running.answers(1)
        assert answer["result"]["data"] == "hi"
        assert (await running.invoke("report", 2))["result"]["data"] == "reported"
        assert running.seen[-2]["method"] == "executa/progress"
        assert (await running.invoke("loaded", 3))["result"]["data"] == []
        assert await running.end() == 0


async def test_a_call_to_a_host_that_does_not_answer_times_out(tmp_path: Path) -> None:
    async with child(PLAIN + RUN, folder=tmp_path) as running:
        await running.initialize()
        running.write(invoke_message(1, "ask", timeout=0.05))
        await _asked(running)
        (answer,) = await running.answers(1)
        assert "error" in answer
        assert await running.end() == 0


async def test_a_plain_function_that_waits_for_the_host_is_cancelled(tmp_path: Path) -> None:
    async with child(PLAIN + RUN, folder=tmp_path) as running:
        await running.initialize()
        message = invoke_message(1, "ask")
        running.write(message)
        await _asked(running)
        params = {"invoke_id": message["params"]["context"]["invoke_id"]}
        running.write({"jsonrpc": "2.0", "method": "executa/cancel", "params": params})
        (answer,) = await running.answers(1)
        assert answer["error"]["data"]["errorCode"] == "INVOKE_CANCELLED"
        assert await running.end() == 0
