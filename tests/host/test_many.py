"""Many restarts and many plugins: nothing is left behind, and all of them answer."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from executa_host import Host, PluginSpec
from executa_nexus_stub import NexusStub
from executa_protocol.lifecycle import State
from tests.host.conftest import SUPPORT, MakeRig

SMALL = ("/bin/sh", str(SUPPORT / "small_plugin.sh"))
RESTARTS = int(os.environ.get("EXECUTA_TEST_RESTARTS", "10000"))
SIDE_BY_SIDE = 8


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_the_smallest_plugin_works(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.host.add(PluginSpec(name="small", command=SMALL))
    for _ in range(3):
        assert (await rig.host.invoke("small", "ping")).data == "pong"
    assert rig.host.state("small") is State.V1


@pytest.mark.slow
async def test_ten_thousand_restarts_leave_no_descriptor_and_no_task() -> None:
    nexus = NexusStub()
    async with Host(nexus) as host:
        names = [f"small{number}" for number in range(SIDE_BY_SIDE)]
        for name in names:
            host.add(PluginSpec(name=name, command=SMALL))
        await asyncio.gather(*map(host.start, names))
        descriptors = _descriptors()
        tasks = len(asyncio.all_tasks())

        async def restart(name: str) -> None:
            for _ in range(RESTARTS // SIDE_BY_SIDE):
                await host.restart(name)

        await asyncio.gather(*map(restart, names))
        assert all(host.state(name) is State.V1 for name in names)
        assert [(await host.invoke(name, "ping")).data for name in names] == ["pong"] * SIDE_BY_SIDE
        assert _descriptors() == descriptors
        assert len(asyncio.all_tasks()) == tasks
        launches = sum(status.launches for status in host.statuses())
        assert launches == SIDE_BY_SIDE * (RESTARTS // SIDE_BY_SIDE + 1)
    await nexus.aclose()


@pytest.mark.slow
async def test_two_hundred_plugins_at_once_all_answer(make_rig: MakeRig) -> None:
    rig = make_rig()
    names = [f"small{number}" for number in range(200)]
    for name in names:
        rig.host.add(PluginSpec(name=name, command=SMALL))
    started = time.monotonic()
    outcomes = await asyncio.gather(*(rig.host.invoke(name, "ping") for name in names))
    assert [outcome.data for outcome in outcomes] == ["pong"] * 200
    assert len({status.pid for status in rig.host.statuses()}) == 200
    rounds = await asyncio.gather(
        *(rig.host.invoke(name, "ping") for name in names for _ in range(5))
    )
    assert all(outcome.success for outcome in rounds)
    assert time.monotonic() - started < 60
