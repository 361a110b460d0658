"""The API over real HTTP on loopback: before an engine in memory, or before the real one."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from aiohttp import web

from executa_host.api.visit import Pace
from executa_host.client import Client
from tests.api.flaky import KEY, Flaky
from tests.api.rigs import EngineRig, Rig, Serving, no_pause
from tests.support.leaks import LeakCheck

MakeRig: TypeAlias = Callable[[Pace], Rig]


@pytest.fixture
async def rig(tmp_path: Path, leak_check: LeakCheck) -> AsyncIterator[Rig]:
    """A server with quick clocks before an engine in memory."""
    rig = Rig(tmp_path)
    leak_check.watch(rig.server, "server")
    async with rig.server:
        yield rig
        await rig.close()


@pytest.fixture
def make_rig(tmp_path: Path) -> MakeRig:
    """A server of the test's own, which enters and closes it."""
    return lambda pace: Rig(tmp_path, pace)


@pytest.fixture
async def engine(tmp_path: Path, leak_check: LeakCheck) -> AsyncIterator[EngineRig]:
    """The same before the real engine."""
    rig = EngineRig(tmp_path)
    await rig.start()
    yield rig
    await rig.close()
    await rig.stop()
    leak_check.watch(rig.engine, "engine")
    leak_check.watch(rig.server, "server")


@pytest.fixture(params=["memory", "engine"])
async def either(
    request: pytest.FixtureRequest, tmp_path: Path, leak_check: LeakCheck
) -> AsyncIterator[Serving]:
    """Each of the two in turn."""
    if request.param == "memory":
        rig = Rig(tmp_path)
        async with rig.server:
            yield rig
            await rig.close()
        return
    real = EngineRig(tmp_path)
    await real.start()
    yield real
    await real.close()
    await real.stop()
    leak_check.watch(real.engine, "engine")


@pytest.fixture
async def flaky() -> AsyncIterator[Flaky]:
    server = Flaky()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield server
    await runner.cleanup()
    assert server.script == []


@pytest.fixture
async def client(flaky: Flaky) -> AsyncIterator[Client]:
    async with Client(flaky.url, KEY, pause=no_pause, jitter=lambda: 1.0) as made:
        yield made
