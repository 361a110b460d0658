"""A plugin's process: its descriptors, its manners, and its end, on real pipes."""

import asyncio
import json
import os
import pty
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.driver import WAIT, child, invoke_message

PLUGIN = """
import asyncio, os, subprocess, sys, threading, time
from executa_sdk import Plugin
plugin = Plugin("proc", "1.0.0", grace=5.0)

@plugin.tool
async def echo(text: str) -> str:
    return text

@plugin.tool
def noise() -> str:
    print("a print")
    sys.stdout.write("no newline")
    os.write(1, b"from a C library\\n")
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    assert sys.stdin.read() == ""
    print("gr\\u00fc\\u00dfe", flush=True)
    return "quiet wire"

@plugin.tool
def block(seconds: float) -> str:
    print("blocking", file=sys.stderr, flush=True)
    time.sleep(seconds)
    return "slept"

@plugin.tool
async def nap(seconds: float) -> str:
    print("napping", file=sys.stderr, flush=True)
    await asyncio.sleep(seconds)
    return "napped"

@plugin.tool
async def blocks_the_loop(seconds: float) -> str:
    print("blocking", file=sys.stderr, flush=True)
    time.sleep(seconds)
    return "slept"

@plugin.tool
async def stubborn() -> None:
    print("stubborn", file=sys.stderr, flush=True)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

@plugin.tool
async def leaves_a_task() -> str:
    global left
    left = asyncio.create_task(asyncio.sleep(3600))
    return "left"

@plugin.tool
async def leaves_a_thread() -> str:
    threading.Thread(target=time.sleep, args=(3600,)).start()
    return "left"

plugin.run()
print("after the run", file=sys.stderr)
"""


def _plain(source: str) -> str:
    """The same tools as plain functions, which are served without asyncio."""
    begin, end = source.index("@plugin.tool\nasync def stubborn"), source.rindex("@plugin.tool")
    for old, new in (
        (source[begin:end], ""),
        ("import asyncio, ", "import "),
        ("@plugin.tool\nasync def blocks", "@plugin.tool(inline=True)\ndef blocks"),
        ("async def", "def"),
        ("await asyncio.sleep", "time.sleep"),
    ):
        assert old in source
        source = source.replace(old, new)
    assert "asyncio" not in source
    return source


@pytest.fixture
def coroutines(tmp_path: Path) -> Path:
    path = tmp_path / "plugin.py"
    path.write_text(PLUGIN, encoding="utf-8")
    return path


@pytest.fixture(params=["coroutines", "plain functions"])
def plugin(coroutines: Path, request: pytest.FixtureRequest) -> Path:
    """Served on a loop of asyncio's, or on our own."""
    if request.param == "plain functions":
        coroutines.write_text(_plain(PLUGIN), encoding="utf-8")
    return coroutines


def quick(plugin: Path) -> Path:
    """The same plugin with next to no patience."""
    source = plugin.read_text(encoding="utf-8")
    plugin.write_text(source.replace("grace=5.0", "grace=0.05"), encoding="utf-8")
    return plugin


# --- The wire stays clean. ----------------------------------------------------------------------


async def test_prints_libraries_and_child_processes_cannot_reach_the_wire(plugin: Path) -> None:
    async with child(plugin) as running:
        answer = await running.invoke("noise")
        assert answer["result"]["data"] == "quiet wire"
        assert await running.end() == 0
        for text in ("a print", "no newline", "from a C library", "from a child", "grüße"):
            assert text in running.stderr
        assert running.seen == [answer]


async def test_what_was_printed_before_the_run_but_not_flushed_stays_off_the_wire(
    tmp_path: Path,
) -> None:
    source = "print('a banner')\n" + PLUGIN
    async with child(source, folder=tmp_path, env={"PYTHONUNBUFFERED": ""}) as running:
        answer = await running.invoke("echo", text="a")
        assert running.seen == [answer]
        assert await running.end() == 0
        assert "a banner" in running.stderr


@pytest.mark.parametrize("locale", ["C", "POSIX", "en_US.ISO-8859-1", "tr_TR.UTF-8"])
async def test_the_wire_is_utf8_whatever_the_locale(plugin: Path, locale: str) -> None:
    env = {"LC_ALL": locale, "LANG": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    async with child(plugin, env=env) as running:
        text = "grüße \u2028 日本 \U0001f600 İı"
        answer = await running.invoke("echo", text=text)
        assert answer["result"]["data"] == text
        assert (await running.invoke("noise", 2))["result"]["success"]
        assert await running.end() == 0


async def test_it_works_without_uvloop(coroutines: Path) -> None:
    code = "import sys, runpy; sys.modules['uvloop'] = None; runpy.run_path(sys.argv[1])"
    async with child(coroutines, command=(sys.executable, "-c", code)) as running:
        assert (await running.invoke("echo", text="a"))["result"]["data"] == "a"
        assert (await running.invoke("block", 2, seconds=0))["result"]["data"] == "slept"
        assert await running.end() == 0
        assert "after the run" in running.stderr


# --- Bad input. ---------------------------------------------------------------------------------


async def test_bad_lines_are_answered_or_reported_and_the_next_call_works(plugin: Path) -> None:
    async with child(plugin) as running:
        running.write(
            b"\n",
            b"not json\n",
            b"[1, 2]\n",
            b'{"jsonrpc":"2.0","id":5}\n',
            b'{"jsonrpc":"2.0","id":6,"result":{"to":"nobody"}}\n',
            b'{"jsonrpc":"2.0","id":"p1","error":{"code":1,"message":"late"}}\n',
            b'{"jsonrpc":"2.0","id":7,"method":8}\n',
            b'{"jsonrpc":"2.0","id":8,"method":"describe","params":{"a":"\xff"}}\n',
            b'{"jsonrpc":"2.0","id":9,"method":"describe","params":{"a":1e999}}\n',
            b'{"jsonrpc":"2.0","id":10,"method":"describe","params":' + b"[" * 500 + b"\n",
            b'{"jsonrpc":"2.0","method":"notifications/whatever"}\n',
            invoke_message(99, "echo", text="a"),
        )
        await running.answers(99)
        answers = {repr(message["id"]): message for message in running.seen}

    codes = {key: answer["error"]["code"] for key, answer in answers.items() if "error" in answer}
    assert codes["None"] == -32700
    assert codes["7"] == -32600
    assert codes["8"] == codes["9"] == codes["10"] == -32700
    assert answers["99"]["result"]["data"] == "a"
    assert not {"5", "6", "'p1'"} & answers.keys()
    assert "stray" in running.stderr


async def test_two_open_requests_with_one_id_are_answered_once_each(plugin: Path) -> None:
    async with child(plugin) as running:
        running.write(
            invoke_message(5, "block", seconds=0.2),
            invoke_message(5, "echo", text="again"),
            invoke_message(6, "echo", text="other"),
        )
        await running.answers(6)
        refused = await running.answers(5) if running.seen[-1]["id"] != 5 else running.seen[-1:]
        while len([m for m in running.seen if m["id"] == 5]) < 2:
            await running.read()
        first, second = (message for message in running.seen if message["id"] == 5)
        assert refused

    assert first["error"]["data"]["errorCode"] == "DUPLICATE_REQUEST_ID"
    assert second["result"]["data"] == "slept"


async def test_ids_come_back_as_they_were(plugin: Path) -> None:
    async with child(plugin) as running:
        for identity in (0, "", "7", -1, 2**60, "ü\n"):
            answer = await running.invoke("echo", identity, text="a")
            assert answer["id"] == identity
            assert type(answer["id"]) is type(identity)


async def test_an_input_that_ends_in_the_middle_of_a_line_is_the_end(plugin: Path) -> None:
    async with child(plugin) as running:
        assert running.process.stdin
        running.write(invoke_message(1, "echo", text="whole"), b'{"jsonrpc":"2.0","id":2,"meth')
        running.process.stdin.close()
        answers = await running.read_all()
        assert await running.gone() == 0

    assert [answer["id"] for answer in answers if answer.get("result")] == [1]


async def test_a_last_line_without_its_newline_still_counts(plugin: Path) -> None:
    async with child(plugin) as running:
        assert running.process.stdin
        running.write(json.dumps(invoke_message(1, "echo", text="a")).encode())
        running.process.stdin.close()
        (answer,) = await running.read_all()
        assert answer["result"]["data"] == "a"
        assert await running.gone() == 0


# --- The end. -----------------------------------------------------------------------------------


async def test_calls_in_flight_are_finished_after_the_end_of_input(plugin: Path) -> None:
    async with child(plugin) as running:
        assert running.process.stdin
        running.write(
            invoke_message(1, "nap", seconds=0.2),
            invoke_message(2, "block", seconds=0.2),
            invoke_message(3, "echo", text="a"),
        )
        running.process.stdin.close()
        answers = await running.read_all()
        assert await running.gone() == 0
        assert "after the run" in running.stderr

    assert {answer["id"]: answer["result"]["data"] for answer in answers} == {
        1: "napped",
        2: "slept",
        3: "a",
    }


async def test_calls_that_outlast_the_grace_are_ended_and_the_exit_is_clean(
    coroutines: Path,
) -> None:
    async with child(quick(coroutines)) as running:
        assert running.process.stdin
        running.write(
            invoke_message(1, "nap", seconds=3600),
            invoke_message(2, "block", seconds=3600),
            invoke_message(3, "stubborn"),
        )
        await running.until_told("stubborn")
        running.process.stdin.close()
        (answer,) = await running.read_all()
        assert await running.gone() == 0

    assert answer["id"] == 1
    assert answer["error"]["data"]["errorCode"] == "INVOKE_CANCELLED"


async def test_a_thread_that_python_would_wait_for_cannot_hold_the_exit(plugin: Path) -> None:
    async with child(quick(plugin)) as running:
        assert (await running.invoke("leaves_a_thread"))["result"]["data"] == "left"
        assert await running.end() == 0


async def test_threads_that_outlast_the_grace_do_not_hold_the_exit(plugin: Path) -> None:
    async with child(quick(plugin)) as running:
        running.write(invoke_message(2, "block", seconds=3600))
        await running.until_told("blocking")
        assert await running.end() == 0


async def test_a_task_that_a_tool_left_behind_ends_with_the_plugin(coroutines: Path) -> None:
    async with child(coroutines) as running:
        assert (await running.invoke("leaves_a_task"))["result"]["data"] == "left"
        assert await running.end() == 0
        assert "destroyed" not in running.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_cleanly(plugin: Path, number: signal.Signals) -> None:
    async with child(plugin) as running:
        await running.invoke("echo", text="a")
        running.process.send_signal(number)
        assert await running.gone() == 0


async def test_a_signal_lets_the_calls_in_flight_finish(plugin: Path) -> None:
    async with child(plugin) as running:
        running.write(invoke_message(1, "nap", seconds=0.2))
        await running.until_told("napping")
        running.process.send_signal(signal.SIGTERM)
        (answer,) = await running.answers(1)
        assert answer["result"]["data"] == "napped"
        assert await running.gone() == 0


async def test_a_signal_ends_it_also_when_a_tool_blocks_the_loop(plugin: Path) -> None:
    async with child(quick(plugin)) as running:
        running.write(invoke_message(1, "blocks_the_loop", seconds=3600))
        await running.until_told("blocking")
        running.process.send_signal(signal.SIGTERM)
        assert await running.gone() == 0


async def test_a_host_that_is_gone_is_the_end(plugin: Path) -> None:
    """Both pipes break at once, as when the host was killed."""
    async with child(plugin) as running:
        running.write(invoke_message(1, "nap", seconds=0.2))
        await running.until_told("napping")
        transport: Any = vars(running.process)["_transport"]
        for number in (0, 1):
            transport.get_pipe_transport(number).close()
        assert await running.gone() == 0
        assert "Traceback" not in running.stderr


# --- Hooks. -------------------------------------------------------------------------------------

HOOKS = """
import asyncio, sys, threading
from executa_sdk import Plugin
plugin = Plugin("hooks", "1.0.0")
told = []

@plugin.on_startup
async def first():
    told.append("first")

@plugin.on_startup
def second():
    told.append("second" if threading.current_thread() is not threading.main_thread() else "loop")
    sys.stdin_gate.wait(20) if hasattr(sys, "stdin_gate") else None
    WHAT

@plugin.on_shutdown
async def third():
    print("shut down", file=sys.stderr, flush=True)

@plugin.tool
async def tell() -> list[str]:
    return told

plugin.run()
"""


async def test_hooks_run_before_the_first_call_and_after_the_last(tmp_path: Path) -> None:
    async with child(HOOKS.replace("WHAT", "pass"), folder=tmp_path) as running:
        answer = await running.invoke("tell")
        assert answer["result"]["data"] == ["first", "second"]
        assert "shut down" not in running.stderr
        assert await running.end() == 0
        assert "shut down" in running.stderr


async def test_the_handshake_does_not_wait_for_start_up_but_calls_do(tmp_path: Path) -> None:
    waits = f"open({str(tmp_path / 'gate')!r}).read()"
    os.mkfifo(tmp_path / "gate")
    async with child(HOOKS.replace("WHAT", waits), folder=tmp_path) as running:
        assert (await running.initialize())["protocolVersion"] == "2.0"
        assert (await running.request("health", None, 5))["result"]["status"] == "initializing"
        running.write(invoke_message(6, "tell"))
        assert (await running.request("describe", None, 7))["result"]["name"] == "hooks"
        assert 6 not in [message["id"] for message in running.seen]
        gate = await asyncio.to_thread(os.open, tmp_path / "gate", os.O_WRONLY)
        os.close(gate)
        (answer,) = await running.answers(6)
        assert answer["result"]["data"] == ["first", "second"]
        assert (await running.request("health", None, 8))["result"]["status"] == "ready"
        assert await running.end() == 0


async def test_an_end_of_input_while_starting_up_is_no_fault(tmp_path: Path) -> None:
    source = HOOKS.replace("WHAT", "threading.Event().wait()")
    source = source.replace('Plugin("hooks", "1.0.0")', 'Plugin("hooks", "1.0.0", grace=0.05)')
    async with child(source, folder=tmp_path) as running:
        await running.initialize()
        assert await running.end() == 0


async def test_a_start_up_that_fails_is_a_real_fault(tmp_path: Path) -> None:
    async with child(HOOKS.replace("WHAT", "1 / 0"), folder=tmp_path) as running:
        assert await running.gone() == 1
        assert "ZeroDivisionError" in running.stderr


async def test_a_plugin_that_cannot_be_described_fails_before_it_serves(tmp_path: Path) -> None:
    source = """
from executa_sdk import Plugin
plugin = Plugin("bad", "1.0.0")
@plugin.tool
def tool(thing): ...
plugin.run()
"""
    async with child(source, folder=tmp_path) as running:
        assert await running.gone() == 1
        assert "a type hint is needed" in running.stderr


async def test_undeclared_capabilities_are_told_at_the_start(tmp_path: Path) -> None:
    source = """
from executa_sdk import Context, Plugin
plugin = Plugin("bad", "1.0.0", host_capabilities=["llm.sample"])
@plugin.tool
async def tool(ctx: Context) -> None:
    await ctx.storage.tool.get("a")
plugin.run()
"""
    async with child(source, folder=tmp_path) as running:
        assert await running.end() == 0
        assert "aps.kv" in running.stderr


# --- Whatever descriptors 0 and 1 are. ----------------------------------------------------------


async def test_input_and_output_may_be_files(plugin: Path, tmp_path: Path) -> None:
    wire = tmp_path / "in"
    wire.write_bytes(json.dumps(invoke_message(1, "echo", text="a")).encode() + b"\n")
    with wire.open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
        async with child(plugin, stdin=stdin, stdout=stdout) as running:
            assert await running.gone() == 0

    assert json.loads((tmp_path / "out").read_bytes())["result"]["data"] == "a"


async def test_input_may_be_the_null_device(plugin: Path) -> None:
    async with child(plugin, stdin=asyncio.subprocess.DEVNULL) as running:
        assert await running.gone() == 0


async def test_input_and_output_may_be_one_socket(plugin: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        async with child(plugin, stdin=theirs, stdout=theirs) as running:
            theirs.close()
            ours.setblocking(False)
            loop = asyncio.get_running_loop()
            message = json.dumps(invoke_message(1, "echo", text="a")).encode() + b"\n"
            await loop.sock_sendall(ours, message)
            data = await asyncio.wait_for(loop.sock_recv(ours, 65536), WAIT)
            assert json.loads(data)["result"]["data"] == "a"
            ours.shutdown(socket.SHUT_WR)
            assert await running.gone() == 0


async def test_on_a_terminal_it_says_what_it_is_and_how_to_try_it(plugin: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        async with child(plugin, stdin=theirs, stdout=theirs) as running:
            await running.until_told("is an Executa plugin")
            assert '{"jsonrpc":"2.0","id":1,"method":"describe"}' in running.stderr
            message = json.dumps(invoke_message(1, "echo", text="a")).encode() + b"\n"
            await asyncio.to_thread(os.write, ours, message)
            seen = b""
            while b'"success":true' not in seen:
                seen += await asyncio.wait_for(asyncio.to_thread(os.read, ours, 65536), WAIT)
            await asyncio.to_thread(os.write, ours, b"\x04")
            assert await running.gone() == 0
    finally:
        os.close(ours)
        os.close(theirs)


async def test_a_closed_stderr_does_no_harm(plugin: Path) -> None:
    code = "import os, sys, runpy; os.close(2); runpy.run_path(sys.argv[1])"
    async with child(plugin, command=(sys.executable, "-c", code)) as running:
        assert (await running.invoke("noise"))["result"]["data"] == "quiet wire"
        assert await running.end() == 0
