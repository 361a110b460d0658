"""The leak check, checked: a run of small tests that leak on purpose, each in its own way.

One child run holds all of them, so that it also shows that a leak fails the test that made it and
no other. It runs on asyncio's loop and on uvloop's, alone and as an xdist worker.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.leaks import LeakCheck

_ROOT = Path(__file__).parents[2]

_INI = """\
[pytest]
addopts = --import-mode=importlib -p no:cacheprovider -p tests.support.leak_plugin
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
filterwarnings = error
"""

_CONFTEST = """\
import asyncio, json, os
from pathlib import Path
import uvloop
from tests.support import leaks

leaks.SETTLE_DELAYS = (0.0, 0.05, 0.1)  # every leak here stays, however long one waits

def pytest_asyncio_loop_factories():
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}

def pytest_runtest_logreport(report):
    if report.outcome == "failed" and "PYTEST_XDIST_WORKER" not in os.environ:
        name = report.nodeid.partition("::")[2].partition("[")[0]
        with (Path(__file__).parent / "failures").open("a") as out:
            print(json.dumps([name, report.when, report.longreprtext]), file=out)
"""

_TESTS = """\
import asyncio, gc, os, socket, subprocess, sys, threading
import pytest

KEPT = []

class Peer:
    def __init__(self):
        self.in_flight = 0
        self.pending = {}

    @property
    def pending_count(self):
        return len(self.pending)

@pytest.fixture
async def worker():
    task = asyncio.create_task(asyncio.Event().wait())
    yield task
    task.cancel()

@pytest.fixture(scope="module")
def kept_open_by_the_module():
    with open(os.devnull) as opened:
        yield opened

async def child():
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", "input()", stdin=subprocess.PIPE, stdout=subprocess.PIPE)

# --- Nothing is left behind. ---

def test_clean():
    pass

def test_clean_module_resource(kept_open_by_the_module):
    assert not kept_open_by_the_module.closed

async def test_clean_fixture(worker):
    assert not worker.done()

async def test_clean_cancelled():
    task = asyncio.create_task(asyncio.Event().wait())
    await asyncio.sleep(0)
    task.cancel()

async def test_clean_process_and_threads():
    process = await child()
    await asyncio.to_thread(threading.get_ident)
    await process.communicate(b"end")
    assert process.returncode == 0

async def test_clean_server():
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()

async def test_clean_peer(leak_check):
    leak_check.watch(Peer())
    leak_check.watch(lambda: None)

def test_clean_ending_thread():
    release = threading.Event()
    thread = threading.Thread(target=lambda: release.wait(0.02))
    thread.start()

def test_clean_cycle():
    left, right = os.pipe()
    class Cycle:
        def __init__(self): self.me = self
        def __del__(self): os.close(left); os.close(right)
    Cycle()

# --- Something is. ---

async def test_task():
    KEPT.append(asyncio.create_task(asyncio.Event().wait(), name="forgotten"))

def test_process():
    KEPT.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))

def test_unreaped():
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    KEPT.append(process)

async def test_process_on_loop():
    KEPT.append(await child())

def test_file():
    KEPT.append(open(__file__))

def test_socket():
    KEPT.append(socket.socket())

def test_thread():
    release = threading.Event()
    thread = threading.Thread(target=release.wait, name="forgotten")
    thread.start()
    KEPT.append(release)

async def test_pending(leak_check):
    peer = Peer()
    peer.pending[7] = "answer"
    leak_check.watch(peer, "host side")

def test_in_flight(leak_check):
    peer = Peer()
    peer.in_flight = {3: "invoke"}
    leak_check.watch(peer)

def test_probe(leak_check):
    leak_check.watch(lambda: "a lease is still held", "agent")

def test_clean_after_all():
    for kept in KEPT:
        if isinstance(kept, threading.Event):
            kept.set()  # or the interpreter would wait for the thread
"""

# What each leaking test must be told, by test name.
_EXPECTED = {
    "test_task": "task <Task pending name='forgotten'",
    "test_process": "-c input() (state S)",
    "test_unreaped": "unreaped (state Z)",
    "test_process_on_loop": "-c input() (state S)",
    "test_file": "test_leaks.py",
    "test_socket": "socket:[",
    "test_thread": "thread forgotten",
    "test_pending": "host side.pending_count is 1, not empty",
    "test_in_flight": "Peer.in_flight is {3: 'invoke'}, not empty",
    "test_probe": "agent: a lease is still held",
}


def _run(folder: Path, *options: str) -> list[tuple[str, str, str]]:
    """Run the leaking tests in a child; give (test, phase, text) of every failure."""
    (folder / "pytest.ini").write_text(_INI)
    (folder / "conftest.py").write_text(_CONFTEST)
    (folder / "test_leaks.py").write_text(_TESTS)
    # What an outer run, its workers or its coverage tell their children is not for this one.
    clean = {key: os.environ[key] for key in os.environ if not key.startswith(("PYTEST", "COV"))}
    command = [sys.executable, "-m", "pytest", "-c", "pytest.ini", "test_leaks.py", *options]
    done = subprocess.run(
        command,
        cwd=folder,
        env=clean | {"PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    lines = (folder / "failures").read_text().splitlines()
    return [(name, when, text) for name, when, text in map(json.loads, lines)]


@pytest.mark.parametrize("options", [(), ("-n1",)], ids=["alone", "as a worker"])
def test_each_kind_of_leak_fails_the_test_that_made_it_and_no_other(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    failures = _run(tmp_path, *options)

    assert {name for name, _, _ in failures} == _EXPECTED.keys()
    for name, when, text in failures:
        assert when == "teardown", text
        assert _EXPECTED[name] in text, text


def test_what_counts_nothing_and_is_not_callable_cannot_be_watched(leak_check: LeakCheck) -> None:
    with pytest.raises(TypeError, match="is not callable"):
        leak_check.watch(object())  # pyright: ignore[reportArgumentType] - that is the point
