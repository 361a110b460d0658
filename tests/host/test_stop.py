"""The stop ladder (R-26): bounded whatever the plugin does, and nothing is left behind."""

import asyncio
import fcntl
import logging
import os
import shlex
import signal
import time

import pytest

from executa_host import InvokeRefused, Patience, PluginSpec, StartFailed
from executa_host.clock import SystemClock
from executa_host.process import spawn
from executa_host.rate import RateLimit
from executa_host.stderr import StderrLog
from executa_protocol import transcript
from executa_protocol.errors import ConnectionLost
from executa_protocol.lifecycle import State
from executa_protocol.limits import PIPE_BYTES
from tests.host.conftest import MakeRig, Rig, raw_command, soon
from tests.host.processes import gone, lives

QUICK = Patience(stop=0.2, kill=0.2)


async def _pid_of(rig: Rig) -> int:
    """The process of the plugin itself, which a wrapper may stand before."""
    return (await rig.host.invoke("raw", "whoami")).data["pid"]


def _behind_a_shell(*options: str) -> tuple[str, ...]:
    # What follows keeps the shell from becoming the plugin.
    return ("sh", "-c", f"{shlex.join(raw_command(*options))}; exit $?")


async def test_a_plugin_behind_a_shell_is_stopped_with_it(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.host.add(PluginSpec(name="raw", command=_behind_a_shell()))
    pid = await _pid_of(rig)
    assert pid != rig.host.pid("raw")
    await rig.host.stop("raw")
    (exited,) = rig.seen(transcript.Exited)
    assert (exited.code, exited.rung, exited.fault) == (0, "stdin", False)
    assert await gone(pid)


async def test_a_wrapper_that_forwards_no_signals_leaves_no_orphan(make_rig: MakeRig) -> None:
    rig = make_rig(patience=QUICK)
    rig.host.add(PluginSpec(name="raw", command=_behind_a_shell("--ignore-eof")))
    pid = await _pid_of(rig)
    await rig.host.stop("raw")
    (exited,) = rig.seen(transcript.Exited)
    assert exited.rung == "SIGTERM"
    assert not exited.fault
    assert await gone(pid)


async def test_what_ignores_eof_and_sigterm_is_killed_and_its_children_with_it(
    make_rig: MakeRig,
) -> None:
    rig = make_rig(patience=QUICK)
    rig.host.add(PluginSpec(name="raw", command=_behind_a_shell("--ignore-eof", "--ignore-term")))
    pid = await _pid_of(rig)
    child = (await rig.host.invoke("raw", "child")).data
    await rig.host.stop("raw")
    (exited,) = rig.seen(transcript.Exited)
    # The shell itself goes at SIGTERM, and what is left of its group is ended then.
    assert exited.rung in ("SIGTERM", "SIGKILL")
    assert rig.host.state("raw") is State.STOPPED
    assert await gone(pid)
    assert await gone(child)


async def test_a_plugin_that_ignores_everything_goes_at_the_last_rung(make_rig: MakeRig) -> None:
    rig = make_rig(patience=QUICK)
    rig.add("--ignore-eof", "--ignore-term")
    await rig.host.start("raw")
    await rig.host.stop("raw")
    (exited,) = rig.seen(transcript.Exited)
    assert (exited.code, exited.rung, exited.fault) == (-9, "SIGKILL", False)
    assert (await rig.host.invoke("raw", "echo", {"value": {}})).success


async def test_a_grandchild_that_holds_the_pipes_goes_with_its_parent_and_holds_nobody(
    rig: Rig,
) -> None:
    rig.add()
    child = (await rig.host.invoke("raw", "child")).data
    other = asyncio.ensure_future(rig.host.invoke("raw", "hang"))
    await rig.until(lambda _: len(rig.seen(transcript.InvokeStarted)) == 2)
    await rig.host.invoke("raw", "echo", {"value": {}})  # so the request before it was read
    os.kill(rig.host.pid("raw") or 0, signal.SIGKILL)
    async with asyncio.timeout(2):
        with pytest.raises(ConnectionLost, match="SIGKILL"):
            await other
    assert await gone(child)


async def test_a_daemon_that_left_the_group_and_keeps_the_pipes_does_not_hold_the_host(
    rig: Rig,
) -> None:
    rig.add_rude()
    other = asyncio.ensure_future(rig.host.invoke("raw", "hang"))
    await rig.until(lambda event: isinstance(event, transcript.InvokeStarted))
    daemon = (await rig.host.invoke("raw", "daemon")).data
    try:
        started = time.monotonic()
        with pytest.raises(ConnectionLost, match="exited with code 0"):
            await other
        assert time.monotonic() - started < 0.9  # it waits for no end of the pipe
        assert lives(daemon)
        await rig.host.stop("raw")
        assert rig.host.state("raw") is State.STOPPED
    finally:
        os.kill(daemon, signal.SIGKILL)


async def test_each_plugin_has_a_session_of_its_own_so_ctrl_c_reaches_the_host_alone(
    rig: Rig,
) -> None:
    rig.add()
    await rig.host.start("raw")
    pid = rig.host.pid("raw") or 0
    assert os.getsid(pid) == pid == os.getpgid(pid)
    assert os.getsid(pid) != os.getsid(0)


async def test_a_stop_goes_on_when_whoever_asked_for_it_has_been_cancelled(
    make_rig: MakeRig,
) -> None:
    rig = make_rig(patience=QUICK)
    rig.add("--ignore-eof", "--ignore-term")
    await rig.host.start("raw")
    first = asyncio.ensure_future(rig.host.stop("raw"))
    await asyncio.sleep(0)
    first.cancel()
    await rig.host.stop("raw")  # waits for the same ladder
    assert rig.host.state("raw") is State.STOPPED
    assert rig.seen(transcript.Exited)[0].rung == "SIGKILL"


async def test_a_call_during_a_stop_starts_the_plugin_again_afterwards(make_rig: MakeRig) -> None:
    rig = make_rig(patience=QUICK)
    rig.add("--ignore-eof")
    await rig.host.start("raw")
    stopping = asyncio.ensure_future(rig.host.stop("raw"))
    await asyncio.sleep(0)
    assert (await rig.host.invoke("raw", "echo", {"value": {}})).success
    await soon(stopping)
    assert rig.host.status("raw").launches == 2


async def test_calls_that_run_when_stdin_closes_may_still_be_answered(make_rig: MakeRig) -> None:
    rig = make_rig(patience=Patience(stop=0.5))
    rig.add("--ignore-eof", "--take", "cancellation")
    handle = rig.host.begin("raw", "cancelled", {"mode": "complete"})
    await rig.until(lambda event: isinstance(event, transcript.Stderr))
    stopping = asyncio.ensure_future(handle.cancel("so that it answers"))
    await rig.host.stop("raw")
    assert (await handle.result()).data == "done all the same"
    await soon(stopping)


async def test_closing_the_host_while_plugins_start_leaves_nothing(make_rig: MakeRig) -> None:
    rig = make_rig(patience=QUICK)
    rig.add("--silent-init")
    starting = asyncio.ensure_future(rig.host.start("raw"))
    await rig.until(lambda event: isinstance(event, transcript.Spawned))
    await rig.host.close()
    with pytest.raises(StartFailed, match="stopped while it started"):
        await soon(starting)


async def test_a_host_that_is_closing_starts_nothing_any_more(make_rig: MakeRig) -> None:
    rig = make_rig(patience=QUICK)
    rig.add("--ignore-eof")
    rig.add(name="other")
    await rig.host.start("raw")
    closing = asyncio.ensure_future(rig.host.close())
    await asyncio.sleep(0)
    for name in ("raw", "other"):
        with pytest.raises(InvokeRefused) as refused:
            await rig.host.invoke(name, "echo", {"value": {}})
        assert refused.value.symbol == "HOST_STOPPING"
    await closing
    await rig.host.close()
    assert len(rig.seen(transcript.Spawned)) == 1


async def test_a_process_that_even_the_kernel_does_not_let_go_is_left_and_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limit = RateLimit(1, SystemClock.monotonic)
    child = spawn(["sleep", "60"], StderrLog(limit, print, print))
    child.signal_group = lambda number: None
    with caplog.at_level(logging.ERROR):
        await child.stop(lambda: None, 0.05, 0.05)
    assert "cannot be killed" in caplog.text
    assert child.ended.result() == -signal.SIGKILL
    os.kill(child.pid, signal.SIGKILL)
    await asyncio.to_thread(child._popen.wait)  # pyright: ignore[reportPrivateUsage]
    for fd in (child.stdin_fd, child.stdout_fd):
        os.close(fd)


async def test_without_a_pidfd_a_thread_waits_for_the_process(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_descriptor(pid: int, flags: int = 0) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", no_descriptor)
    rig = make_rig()
    rig.add()
    assert (await rig.host.invoke("raw", "echo", {"value": {}})).success
    await rig.host.stop("raw")
    assert rig.seen(transcript.Exited)[0].code == 0


@pytest.mark.skipif(not hasattr(fcntl, "F_GETPIPE_SZ"), reason="pipes have no settable size here")
async def test_the_pipes_of_frames_are_wider_than_usual_and_that_of_stderr_is_not() -> None:
    child = spawn(["cat"], StderrLog(RateLimit(1, SystemClock.monotonic), print, print))
    try:
        sizes = [fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ) for fd in (child.stdin_fd, child.stdout_fd)]
        assert sizes == [PIPE_BYTES] * 2
    finally:
        for fd in (child.stdin_fd, child.stdout_fd):
            os.close(fd)
        await child.ended
