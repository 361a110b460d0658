"""A stub with a clock that tests move, behind both of its doors."""

from collections.abc import AsyncIterator

import pytest

from executa_nexus_stub import NexusStub
from executa_nexus_stub.clock import ManualClock
from executa_nexus_stub.http.server import NexusServer
from executa_protocol.nexus import Nexus
from tests.nexus_stub.http_client import HttpNexus
from tests.support.leaks import LeakCheck


@pytest.fixture
def clock() -> ManualClock:
    """Time stands still until a test advances it."""
    return ManualClock()


@pytest.fixture
async def stub(clock: ManualClock, leak_check: LeakCheck) -> AsyncIterator[NexusStub]:
    """A stub with every default. Nothing may be in flight when a test ends."""
    made = NexusStub(clock=clock)
    leak_check.watch(made)
    yield made
    await made.aclose()


@pytest.fixture(params=["direct", "http"])
async def nexus(request: pytest.FixtureRequest, stub: NexusStub) -> AsyncIterator[Nexus]:
    """The same stub behind each door in turn."""
    if request.param == "direct":
        yield stub
        return
    async with NexusServer(stub) as server:
        client = HttpNexus(server.url)
        yield client
        await client.aclose()


@pytest.fixture
def host_key(monkeypatch: pytest.MonkeyPatch) -> str:
    """A key in the environment, under a name that a configuration can point to."""
    monkeypatch.setenv("NEXUS_TEST_HOST_KEY", "a-key-that-only-hosts-know")
    return "a-key-that-only-hosts-know"
