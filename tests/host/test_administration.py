"""Plugins come, go and change while the host runs; each has a status."""

import asyncio
import json
import os

import pytest

from executa_host import Patience, PluginSpec, SpawnFailed
from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.faults import FaultConfig, FaultRule
from executa_protocol import transcript
from executa_protocol.errors import ConnectionLost, UsageError
from executa_protocol.lifecycle import State
from tests.host.clocks import HostClock
from tests.host.conftest import MakeRig, Rig, raw_command, soon


def _spec(*options: str, name: str = "raw", **members: object) -> PluginSpec:
    return PluginSpec(name=name, command=raw_command(*options), **members)  # type: ignore[arg-type]


async def _hang(rig: Rig, name: str = "raw") -> "asyncio.Task[object]":
    hanging = asyncio.ensure_future(rig.host.invoke(name, "hang"))
    await rig.until(lambda event: isinstance(event, transcript.InvokeStarted))
    return hanging


# --- Come and go -----------------------------------------------------------------------------


async def test_a_name_is_taken_once(rig: Rig) -> None:
    rig.add()
    with pytest.raises(UsageError, match="known already"):
        rig.add()
    assert [spec.name for spec in rig.host.plugins()] == ["raw"]


async def test_a_plugin_that_was_removed_is_unknown_and_its_process_gone(rig: Rig) -> None:
    rig.add()
    await rig.host.start("raw")
    await rig.host.remove("raw")
    with pytest.raises(UsageError, match="no plugin is named 'raw'"):
        await rig.host.invoke("raw", "echo")
    assert rig.host.statuses() == []
    assert rig.seen(transcript.Exited)[0].code == 0
    with pytest.raises(UsageError, match="no plugin is named"):
        await rig.host.remove("raw")


async def test_a_removed_name_can_be_used_again_once_its_process_has_gone(
    make_rig: MakeRig,
) -> None:
    rig = make_rig(patience=Patience(stop=0.2))
    rig.add("--ignore-eof")
    await rig.host.start("raw")
    removing = asyncio.ensure_future(rig.host.remove("raw"))
    await asyncio.sleep(0)
    with pytest.raises(UsageError, match="still being removed"):
        rig.add()
    await soon(removing)
    rig.add()
    assert (await rig.host.invoke("raw", "echo", {"value": {}})).success


async def test_removing_lets_running_invokes_end_and_refuses_new_ones(rig: Rig) -> None:
    rig.add("--take", "cancellation")
    handle = rig.host.begin("raw", "cancelled", {"mode": "complete"})
    await rig.until(lambda event: isinstance(event, transcript.Stderr))
    removing = asyncio.ensure_future(rig.host.remove("raw", drain=10))
    await asyncio.sleep(0)
    with pytest.raises(UsageError):
        await rig.host.invoke("raw", "echo", {"value": {}})
    assert not removing.done()
    await handle.cancel("go on")
    assert (await handle.result()).data == "done all the same"
    await soon(removing)


# --- Change ----------------------------------------------------------------------------------


async def test_a_reload_starts_the_new_spec_where_the_plugin_ran(rig: Rig) -> None:
    rig.add()
    pid = (await rig.host.invoke("raw", "whoami")).data["pid"]
    await rig.host.reload(_spec(env={"GREETING": "hello"}))
    assert rig.host.state("raw") is State.READY
    seen = (await rig.host.invoke("raw", "whoami")).data
    assert seen["pid"] != pid
    assert seen["env"]["GREETING"] == "hello"


async def test_a_reload_of_a_plugin_that_does_not_run_starts_nothing(rig: Rig) -> None:
    rig.add()
    await rig.host.reload(_spec(env={"GREETING": "hello"}))
    assert not rig.seen(transcript.Spawned)
    assert (await rig.host.invoke("raw", "whoami")).data["env"]["GREETING"] == "hello"
    with pytest.raises(UsageError, match="no plugin is named 'other'"):
        await rig.host.reload(_spec(name="other"))


async def test_a_reload_drains_running_invokes_while_new_ones_wait_for_the_new_process(
    rig: Rig,
) -> None:
    rig.add("--take", "cancellation")
    handle = rig.host.begin("raw", "cancelled", {"mode": "complete"})
    await rig.until(lambda event: isinstance(event, transcript.Stderr))
    reloading = asyncio.ensure_future(rig.host.reload(_spec(env={"GREETING": "hello"})))
    await asyncio.sleep(0)
    waiting = asyncio.ensure_future(rig.host.invoke("raw", "whoami"))
    await asyncio.sleep(0)
    assert not reloading.done()
    assert len(rig.seen(transcript.Spawned)) == 1
    await handle.cancel("go on")
    assert (await handle.result()).success
    assert (await soon(waiting)).data["env"]["GREETING"] == "hello"
    await soon(reloading)


async def test_an_invoke_that_is_still_being_opened_at_nexus_is_drained_too(
    make_rig: MakeRig,
) -> None:
    rule = FaultRule(kind="latency", endpoint="open_invoke", seconds=0.2, times=1)
    rig = make_rig(NexusStub(StubConfig(faults=FaultConfig(rules=(rule,)))))
    rig.add()
    await rig.host.start("raw")
    invoking = asyncio.ensure_future(rig.host.invoke("raw", "echo", {"value": {}}))
    await rig.until(lambda event: isinstance(event, transcript.InvokeStarted))
    await rig.host.reload(_spec())
    assert (await soon(invoking)).success


async def test_what_does_not_end_within_the_drain_fails(rig: Rig) -> None:
    rig.add()
    hanging = await _hang(rig)
    await rig.host.reload(_spec(), drain=0.05)
    with pytest.raises(ConnectionLost):
        await soon(hanging)
    assert rig.host.state("raw") is State.READY


async def test_a_reload_tells_what_is_wrong_with_the_new_spec(rig: Rig) -> None:
    rig.add()
    await rig.host.start("raw")
    with pytest.raises(SpawnFailed, match="command not found"):
        await rig.host.reload(PluginSpec(name="raw", command=("no-such-command",)))
    assert rig.host.state("raw") is State.STOPPED


async def test_a_restart_by_hand_gives_a_new_process_and_the_manifest(rig: Rig) -> None:
    rig.add()
    await rig.host.start("raw")
    pid = rig.host.pid("raw")
    manifest = await rig.host.restart("raw")
    assert manifest.tool("echo") is not None
    assert rig.host.pid("raw") != pid


async def test_somebody_with_less_patience_ends_a_drain(rig: Rig) -> None:
    rig.add()
    hanging = await _hang(rig)
    patient = asyncio.ensure_future(rig.host.stop("raw", drain=60))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await rig.host.stop("raw")
    await soon(patient)
    with pytest.raises(ConnectionLost):
        await soon(hanging)


# --- Idle ------------------------------------------------------------------------------------


async def test_an_idle_process_is_stopped_after_its_time_and_the_next_call_starts_it(
    make_rig: MakeRig,
) -> None:
    clock = HostClock()
    rig = make_rig(clock=clock, idle_after=30.0)
    rig.add("--manifest", json.dumps({"host_capabilities": []}))
    await rig.host.invoke("raw", "echo", {"value": {}})
    clock.advance(20)
    await rig.host.invoke("raw", "echo", {"value": {}})
    clock.advance(20)  # 20 s after the last call only
    assert rig.host.state("raw") is State.READY
    clock.advance(10)
    assert rig.host.state("raw") is State.STOPPING
    await rig.until(lambda event: isinstance(event, transcript.Exited))
    assert rig.host.state("raw") is State.STOPPED
    assert clock.pending_count == 0
    assert (await rig.host.invoke("raw", "echo", {"value": {}})).success
    assert rig.host.status("raw").faults == 0


async def test_a_process_with_an_invoke_is_not_idle(make_rig: MakeRig) -> None:
    clock = HostClock()
    rig = make_rig(clock=clock)
    rig.add(idle_after=30.0)
    hanging = await _hang(rig)
    clock.advance(300)
    assert rig.host.state("raw") is State.READY
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(hanging)


async def test_nothing_is_stopped_for_idleness_by_default(make_rig: MakeRig) -> None:
    clock = HostClock()
    rig = make_rig(clock=clock)
    rig.add()
    await rig.host.start("raw")
    assert clock.pending_count == 0


# --- Status ----------------------------------------------------------------------------------


async def test_a_status_tells_state_process_memory_and_last_words(make_rig: MakeRig) -> None:
    clock = HostClock()
    rig = make_rig(clock=clock)
    rig.add()
    before = rig.host.status("raw")
    assert (before.state, before.pid, before.launches) == (State.STOPPED, None, 0)
    hanging = await _hang(rig)
    clock.advance(5)
    status = rig.host.status("raw")
    assert (status.plugin, status.user_id, status.protocol) == ("raw", "local", "2.0")
    assert (status.state, status.pid, status.in_flight) == (State.READY, rig.host.pid("raw"), 1)
    assert status.uptime == 5
    assert status.resident_bytes is not None
    assert status.resident_bytes > 1_000_000
    assert rig.host.statuses() == [status]
    with pytest.raises(ConnectionLost):
        await rig.host.invoke("raw", "die", {"code": 5})
    with pytest.raises(ConnectionLost):
        await soon(hanging)
    status = rig.host.status("raw")
    assert (status.state, status.pid, status.exit_codes) == (State.RESTARTING, None, (5,))
    assert (status.protocol, status.uptime, status.resident_bytes) == ("", None, None)
    assert status.last_words == ("about to die",)


async def test_a_plugin_that_fell_back_has_its_protocol_in_its_status(rig: Rig) -> None:
    rig.add("--v1")
    await rig.host.start("raw")
    assert rig.host.status("raw").protocol == "1.1"


async def test_memory_is_that_of_the_whole_group_of_a_wrapper(rig: Rig) -> None:
    command = ("sh", "-c", " ".join(raw_command()) + "; exit $?")
    rig.host.add(PluginSpec(name="raw", command=command))
    await rig.host.start("raw")
    resident = rig.host.status("raw").resident_bytes
    assert resident is not None
    assert resident > 5_000_000  # a shell alone has less


# --- Users -----------------------------------------------------------------------------------


async def test_each_user_has_a_process_of_his_own(rig: Rig) -> None:
    rig.add()
    first = await rig.host.invoke("raw", "whoami", user_id="ann")
    second = await rig.host.invoke("raw", "whoami", user_id="bob")
    again = await rig.host.invoke("raw", "whoami", user_id="ann")
    assert first.data["pid"] == again.data["pid"] != second.data["pid"]
    assert {(s.plugin, s.user_id) for s in rig.host.statuses()} == {("raw", "ann"), ("raw", "bob")}
    await rig.host.stop("raw", user_id="ann")
    assert rig.host.state("raw", user_id="bob") is State.READY
    assert {event.user_id for event in rig.seen(transcript.Spawned)} == {"ann", "bob"}


async def test_the_local_user_goes_without_a_name_in_events(rig: Rig) -> None:
    rig.add()
    await rig.host.invoke("raw", "echo", {"value": {}})
    assert {event.user_id for event in rig.events} == {""}
    assert {event.plugin for event in rig.events} == {"raw"}


# --- Starting at the same time ---------------------------------------------------------------


async def test_no_more_plugins_start_at_the_same_time_than_may(make_rig: MakeRig) -> None:
    rig = make_rig(starts_at_once=2)
    for number in range(6):
        rig.add(name=f"raw{number}")
    starting = 0
    most = 0

    def count(event: object) -> None:
        nonlocal starting, most
        starting += isinstance(event, transcript.Spawned)
        starting -= isinstance(event, transcript.Described)
        most = max(most, starting)

    rig.host.follow(count)
    await asyncio.gather(*(rig.host.start(f"raw{number}") for number in range(6)))
    assert most == 2


async def test_an_environment_variable_that_the_host_hides_reaches_no_plugin(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "secret")
    rig = make_rig(hide_env=("DATABASE_PASSWORD",))
    rig.add()
    assert "DATABASE_PASSWORD" not in (await rig.host.invoke("raw", "whoami")).data["env"]
    assert "DATABASE_PASSWORD" in os.environ
