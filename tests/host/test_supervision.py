"""Restarts after faults, with a clock that the test moves (R-25), and probes (R-24)."""

import asyncio
import os
import signal

import pytest

from executa_host import InvokeTimeout, Patience, PluginFaulted, StartFailed
from executa_protocol import transcript
from executa_protocol.errors import ConnectionLost
from executa_protocol.lifecycle import State
from executa_protocol.transcript import AnyEvent
from tests.host.clocks import HostClock
from tests.host.conftest import MakeRig, Rig, soon


async def _reaches(rig: Rig, state: State, after: int = 0) -> None:
    """Wait until the plugin has come to `state` once more than `after` times."""

    def many(_: AnyEvent) -> bool:
        states = [event.state for event in rig.seen(transcript.StateChanged)]
        return states.count(state.value) > after

    await rig.until(many)


async def _die(rig: Rig) -> None:
    with pytest.raises(ConnectionLost):
        await rig.host.invoke("raw", "die")


def _still(make_rig: MakeRig, clock: HostClock) -> Rig:
    return make_rig(clock=clock, jitter=lambda: 0.5)


async def test_faults_are_met_with_a_restart_after_one_two_and_four_seconds_and_then_no_more(
    make_rig: MakeRig,
) -> None:
    clock = HostClock()
    rig = _still(make_rig, clock)
    rig.add()
    for number, delay in enumerate((1.0, 2.0, 4.0)):
        await _die(rig)
        assert rig.host.state("raw") is State.RESTARTING
        clock.advance(delay - 0.01)
        assert rig.host.state("raw") is State.RESTARTING
        clock.advance(0.01)
        await _reaches(rig, State.READY, after=number + 1)
    await _die(rig)
    assert rig.host.state("raw") is State.FAULTED
    assert clock.pending_count == 0
    status = rig.host.status("raw")
    assert (status.launches, status.faults, status.exit_codes) == (4, 4, (3, 3, 3, 3))
    assert "exited with code 3" in status.last_fault
    assert status.last_words == ("about to die",) * 4
    assert status.stderr_lines == 4


async def test_a_faulted_plugin_refuses_at_once_until_somebody_restarts_it(
    make_rig: MakeRig,
) -> None:
    clock = HostClock()
    rig = _still(make_rig, clock)
    rig.add("--die-in", "describe")
    with pytest.raises(StartFailed):
        await rig.host.start("raw")
    for _ in range(3):
        clock.advance(5)
        with pytest.raises(StartFailed, match="exited with code 7"):
            await soon(rig.host.start("raw"))
    with pytest.raises(PluginFaulted, match=r"restart it.*exited with code 7") as refused:
        await rig.host.invoke("raw", "echo")
    assert refused.value.written is False
    with pytest.raises(StartFailed):
        await rig.host.restart("raw")
    assert rig.host.state("raw") is State.RESTARTING


async def test_a_call_during_the_delay_waits_for_the_restart(make_rig: MakeRig) -> None:
    clock = HostClock()
    rig = _still(make_rig, clock)
    rig.add()
    await _die(rig)
    waiting = asyncio.ensure_future(rig.host.invoke("raw", "echo", {"value": {"a": 1}}))
    await asyncio.sleep(0)
    assert not waiting.done()
    clock.advance(1)
    assert (await soon(waiting)).data == {"value": {"a": 1}}


async def test_a_call_during_the_delay_waits_no_longer_than_its_own_time_out(
    make_rig: MakeRig,
) -> None:
    rig = _still(make_rig, HostClock())
    rig.add()
    await _die(rig)
    with pytest.raises(InvokeTimeout, match="not ready within") as late:
        await rig.host.invoke("raw", "echo", timeout=0.05)
    assert late.value.written is False
    assert rig.host.state("raw") is State.RESTARTING


async def test_a_minute_of_stable_run_clears_the_count_and_a_handshake_does_not(
    make_rig: MakeRig,
) -> None:
    clock = HostClock()
    rig = _still(make_rig, clock)
    rig.add()
    for faults in (1, 2):
        await _die(rig)
        assert rig.host.status("raw").faults == faults
        clock.advance(4)
        await _reaches(rig, State.READY, after=faults)
    clock.advance(60)
    await _die(rig)
    assert rig.host.status("raw").faults == 1


async def test_a_clean_exit_without_a_call_is_no_fault_and_the_next_call_starts_it_cold(
    make_rig: MakeRig,
) -> None:
    clock = HostClock()
    rig = _still(make_rig, clock)
    rig.add()
    assert (await rig.host.invoke("raw", "answer_and_exit")).success
    await _reaches(rig, State.STOPPED)
    assert clock.pending_count == 0
    assert rig.host.status("raw").faults == 0
    assert (await rig.host.invoke("raw", "echo", {"value": {}})).success
    assert rig.host.status("raw").launches == 2


async def test_stopping_a_plugin_during_the_delay_ends_the_delay(make_rig: MakeRig) -> None:
    clock = HostClock()
    rig = _still(make_rig, clock)
    rig.add()
    await _die(rig)
    await rig.host.stop("raw")
    assert rig.host.state("raw") is State.STOPPED
    assert clock.pending_count == 0
    clock.advance(10)
    assert rig.host.state("raw") is State.STOPPED


async def test_a_crash_while_idle_is_a_fault_and_restarts_by_itself(make_rig: MakeRig) -> None:
    clock = HostClock()
    rig = _still(make_rig, clock)
    rig.add()
    await rig.host.start("raw")
    os.kill(rig.host.pid("raw") or 0, signal.SIGSEGV)
    await _reaches(rig, State.RESTARTING)
    assert "SIGSEGV" in rig.host.status("raw").last_fault
    clock.advance(1)
    await _reaches(rig, State.READY, after=1)


# --- Suspicion (R-24) ----------------------------------------------------------------------


QUICK = Patience(health=0.3, stop=0.2)


async def test_a_plugin_that_lets_a_call_time_out_and_answers_a_probe_goes_on(
    make_rig: MakeRig,
) -> None:
    rig = make_rig(patience=QUICK)
    rig.add()
    await rig.host.start("raw")
    pid = rig.host.pid("raw")
    with pytest.raises(InvokeTimeout) as late:
        await rig.host.invoke("raw", "hang", timeout=0.1)
    assert late.value.written is True
    assert (await rig.host.health("raw")).status == "ready"
    assert rig.host.pid("raw") == pid
    assert rig.host.state("raw") is State.READY


async def test_a_plugin_that_also_misses_the_probe_is_replaced_and_its_calls_fail_at_once(
    make_rig: MakeRig,
) -> None:
    rig = make_rig(patience=QUICK, jitter=lambda: 0.0)
    rig.add("--no-health", "--ignore-eof", "--ignore-term")
    other = asyncio.ensure_future(rig.host.invoke("raw", "hang"))
    await rig.until(lambda event: isinstance(event, transcript.InvokeStarted))
    with pytest.raises(InvokeTimeout):
        await rig.host.invoke("raw", "hang", timeout=0.1)
    with pytest.raises(ConnectionLost, match="missed a health probe"):
        await soon(other)
    await _reaches(rig, State.RESTARTING)
    states = [event.state for event in rig.seen(transcript.StateChanged)]
    assert states[-3:] == ["ready", "unhealthy", "restarting"]
    (exited,) = rig.seen(transcript.Exited)
    assert (exited.fault, exited.rung) == (True, "SIGKILL")
    assert rig.host.status("raw").faults == 1
    assert (await rig.host.invoke("raw", "echo", {"value": {}})).success


async def test_a_plugin_that_never_reads_is_replaced_and_the_request_was_never_written(
    make_rig: MakeRig,
) -> None:
    rig = make_rig(patience=QUICK)
    rig.add("--deaf")
    await rig.host.start("raw")
    big = {"value": {"text": "x" * 300_000}}  # more than a pipe holds
    first = asyncio.ensure_future(rig.host.invoke("raw", "echo", big))
    await asyncio.sleep(0)
    with pytest.raises(InvokeTimeout) as late:
        await rig.host.invoke("raw", "echo", {"value": {}}, timeout=0.1)
    assert late.value.written is False
    with pytest.raises(ConnectionLost, match="after the request was written"):
        await soon(first)
    await _reaches(rig, State.RESTARTING)
