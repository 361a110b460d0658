"""A host with plugins of ours, written with the SDK, for the tests of this folder."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from executa_host import Host, PluginSpec
from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.grants import Plan
from tests.support.leaks import LeakCheck

PLUGINS = Path(__file__).parent / "plugins"
EXAMPLES = Path(__file__).parents[2] / "examples"


def plugin_spec(file: Path, name: str = "") -> PluginSpec:
    """How to run a plugin's file with this Python."""
    name = name or (file.parent.name if file.name == "plugin.py" else file.stem)
    return PluginSpec(name=name, command=(sys.executable, str(file)))


@pytest.fixture
async def nexus(leak_check: LeakCheck) -> AsyncIterator[NexusStub]:
    """The stand-in for nexus, in this process, with room for many runs at a time."""
    stub = NexusStub(StubConfig(plans={"": Plan(concurrent_runs=100)}))
    yield stub
    await stub.aclose()
    leak_check.watch(stub, "nexus")


@pytest.fixture
async def host(nexus: NexusStub) -> AsyncIterator[Host]:
    """A host that knows the plugins of this folder and the examples."""
    async with Host(nexus) as host:
        for file in (*PLUGINS.glob("*.py"), *EXAMPLES.glob("*/plugin.py")):
            host.add(plugin_spec(file))
        yield host
